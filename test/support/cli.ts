import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { execa } from 'execa'
import { withValidDocument } from './documents.ts'

export const bin = fileURLToPath(new URL('../../bin/platformctl.js', import.meta.url))

export interface Run {
  readonly cwd: string
  readonly env?: Record<string, string>
  /** Another build's CLI, or the executable. */
  readonly program?: string
  /** What a daemon serves, where the definition has other services than the default platform. */
  readonly services?: readonly string[]
}

export interface Finished {
  readonly exitCode: number | undefined
  readonly stdout: string
  readonly stderr: string
}

/**
 * Runs the built CLI with its own environment, so that nothing leaks in from the test runner. The `--` before the script
 * is needed, or Node itself would read an --env-file after it, and exit if the file is missing.
 */
export async function platformctl(
  args: readonly string[],
  { cwd, env = {}, program = bin }: Run,
): Promise<Finished> {
  const { exitCode, stdout, stderr } = await execa(...commandLine(program, args), {
    cwd,
    env: bare(env, cwd),
    extendEnv: false,
    reject: false,
    timeout: 30_000,
  })
  return { exitCode, stdout: program === bin ? withValidDocument(stdout, args) : stdout, stderr }
}

/** The daemon of the built CLI, once it has said where it listens. */
export interface Daemon {
  readonly urls: Readonly<Record<'web' | 'api' | 'agent', string>>
  readonly pid: number
  /** Every line of standard output so far, parsed. */
  readonly lines: readonly Record<string, unknown>[]
  /** Resolves when the daemon exits by itself, after all of its lines were read. */
  readonly ended: Promise<{ readonly exitCode: number | undefined; readonly stderr: string }>
  /** Sends the signal and gives the exit code. */
  stop(signal?: 'SIGTERM' | 'SIGINT' | 'SIGKILL'): Promise<number | undefined>
}

export async function startDaemon(
  args: readonly string[],
  { cwd, env = {}, program = bin, services = ['web', 'api', 'agent'] }: Run,
): Promise<Daemon> {
  const ports = [...services.flatMap((service) => [`--${service}-port`, '0']), '--grace', '0']
  const child = execa(...commandLine(program, ['daemon', ...ports, ...args]), {
    cwd,
    env: bare(env, cwd),
    extendEnv: false,
    reject: false,
    buffer: { stdout: false },
  })
  const lines: Record<string, unknown>[] = []
  const stopped = child.then((result) => result)
  const { promise: listening, resolve, reject } = Promise.withResolvers<Record<string, unknown>>()
  const read = (async () => {
    for await (const line of child.iterable()) {
      const parsed = JSON.parse(line) as Record<string, unknown>
      lines.push(parsed)
      if (parsed.event === 'listening') resolve(parsed)
    }
    const { stderr, exitCode } = await stopped
    reject(new Error(`the daemon ended with ${exitCode} before it listened: ${stderr}`))
  })().catch(reject)
  const { web, api, agent } = await listening
  return {
    urls: { web: String(web), api: String(api), agent: String(agent) },
    pid: Number(child.pid),
    lines,
    ended: read.then(() => stopped).then(({ exitCode, stderr }) => ({ exitCode, stderr })),
    async stop(signal = 'SIGTERM') {
      child.kill(signal)
      return (await stopped).exitCode
    },
  }
}

function commandLine(program: string, args: readonly string[]): [string, readonly string[]] {
  return program.endsWith('.js') ? [process.execPath, ['--', program, ...args]] : [program, args]
}

export function bare(env: Record<string, string>, cwd: string): Record<string, string> {
  // Environment variables that a program needs on any system; none that configures the platform.
  const kept = ['PATH', 'HOME', 'TMPDIR', 'SystemRoot', 'TEMP', 'TMP'].flatMap((name) => {
    const value = process.env[name]
    return value === undefined ? [] : [[name, value] as const]
  })
  // Daemons of other tests run on this machine too: a command finds only those that were started in its folder.
  return { ...Object.fromEntries(kept), XDG_STATE_HOME: path.join(cwd, '.state'), ...env }
}
