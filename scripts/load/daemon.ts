import { type ChildProcess, spawn } from 'node:child_process'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import type { Measured } from './inside.ts'

const inside = new URL('inside.ts', import.meta.url)
const bin = fileURLToPath(new URL('../../bin/platformctl.js', import.meta.url))

/** The built daemon as a child, for runs that load it. */
export interface LoadedDaemon {
  readonly urls: Readonly<Record<'web' | 'api' | 'agent', string>>
  readonly child: ChildProcess
  /** Lines of the log at level error, and whatever came on standard error. */
  readonly complaints: readonly string[]
  readonly exited: Promise<{ readonly code: number | null; readonly signal: NodeJS.Signals | null }>
  /** Needs `measured: true`. */
  measure(): Promise<Measured>
}

export async function spawnDaemon({
  folder,
  env = {},
  args = [],
  measured = false,
}: {
  readonly folder: string
  readonly env?: Readonly<Record<string, string>>
  readonly args?: readonly string[]
  /** Loads what answers `measure` into the process. */
  readonly measured?: boolean
}): Promise<LoadedDaemon> {
  const ports = ['--web-port', '0', '--api-port', '0', '--agent-port', '0']
  const child = spawn(
    process.execPath,
    [
      ...(measured ? ['--expose-gc', `--import=${inside}`] : []),
      '--',
      bin,
      'daemon',
      '--data',
      folder,
      '--grace',
      '0',
      ...ports,
      ...args,
    ],
    {
      cwd: folder,
      env: { PATH: process.env.PATH, HOME: process.env.HOME, ...env },
      stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
    },
  )
  const complaints: string[] = []
  const exited = new Promise<{ code: number | null; signal: NodeJS.Signals | null }>((resolve) =>
    child.once('exit', (code, signal) => resolve({ code, signal })),
  )
  child.stderr?.on('data', (chunk) => complaints.push(String(chunk)))
  const urls = await new Promise<LoadedDaemon['urls']>((resolve, reject) => {
    const lines = createInterface({ input: child.stdout ?? process.stdin })
    lines.on('line', (line) => {
      // Ignore reports of missing dependencies: they concern the test setup, not the daemon.
      if (line.includes('"level":"error"') && !line.includes('"event":"health_changed"'))
        complaints.push(line)
      if (!line.includes('"event":"listening"')) return
      const { web, api, agent } = JSON.parse(line) as LoadedDaemon['urls']
      resolve({ web, api, agent })
    })
    void exited.then(({ code }) =>
      reject(new Error(`the daemon ended with ${code}: ${complaints.join('\n')}`)),
    )
  })
  return {
    urls,
    child,
    complaints,
    exited,
    measure: () =>
      new Promise((resolve, reject) => {
        child.once('message', (measured) => resolve(measured as Measured))
        void exited.then(() => reject(new Error('the daemon has ended')))
        child.send('measure')
      }),
  }
}
