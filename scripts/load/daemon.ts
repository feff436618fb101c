import { type ChildProcess, spawn } from 'node:child_process'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'

const bin = fileURLToPath(new URL('../../bin/platformctl.js', import.meta.url))

/** The built daemon as a child, for runs that load it. */
export interface LoadedDaemon {
  readonly urls: Readonly<Record<'web' | 'api' | 'agent', string>>
  readonly child: ChildProcess
  /** Lines of the log at level error, and whatever came on standard error. */
  readonly complaints: readonly string[]
  readonly exited: Promise<{ readonly code: number | null; readonly signal: NodeJS.Signals | null }>
  /** Resident memory in MB; undefined where the system has no /proc. */
  rss(): Promise<number | undefined>
}

export async function spawnDaemon({
  folder,
  env = {},
  args = [],
  nodeArgs = [],
}: {
  readonly folder: string
  readonly env?: Readonly<Record<string, string>>
  readonly args?: readonly string[]
  readonly nodeArgs?: readonly string[]
}): Promise<LoadedDaemon> {
  const ports = ['--web-port', '0', '--api-port', '0', '--agent-port', '0']
  const child = spawn(
    process.execPath,
    [...nodeArgs, '--', bin, 'daemon', '--data', folder, '--grace', '0', ...ports, ...args],
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
      if (line.includes('"level":"error"')) complaints.push(line)
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
    async rss() {
      const { readFile } = await import('node:fs/promises')
      const text = await readFile(`/proc/${child.pid}/status`, 'utf8').catch(() => '')
      const kilobytes = /^VmRSS:\s+(\d+) kB$/m.exec(text)?.[1]
      return kilobytes === undefined ? undefined : Number(kilobytes) / 1024
    },
  }
}
