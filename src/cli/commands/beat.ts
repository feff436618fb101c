import { spawn } from 'node:child_process'
import { constants } from 'node:os'
import { heartbeatState } from '../../core/heartbeats.ts'
import { PATHS } from '../../core/paths.ts'
import { command, type Define, withStore } from '../command.ts'
import { CommandError, type Context, type ExitCode, wrongUsage } from '../context.ts'
import { loadEnvironment } from '../environment.ts'
import { ENV_FILE, type Values } from '../inputs.ts'
import { complain, iso } from '../output/text.ts'

const INPUTS = {
  '<name>': 'the heartbeat',
  '[command...]': 'after --: what to run; its output, signals and exit code pass through',
  '--url <url>': 'address of the web service (default: NEXT_PUBLIC_SITE_URL)',
  '--local': 'write into this machine’s store, without the web service',
  '--data <folder>': 'with --local: the data folder, when STORE_URL is not set (default: .platformctl)',
  ...ENV_FILE,
} as const

export const define: Define = () =>
  command({
    description:
      'Report that a job ran, or run a command and report how it ended. The definition names the heartbeats; a late or failed one raises an alert.',
    notes: `The secret is EMAIL_DISPATCH_SECRET. With a command, the exit code is the command's own, even if the
service cannot be reached: a line on standard error says so, and the heartbeat becomes late.

Exit codes without a command: 0 recorded, 2 wrong usage, 3 not reached or refused.`,
    examples: [
      'backup --url https://www.example.com -- ./backup.sh',
      'backup --local --data /var/lib/platformctl',
    ],
    inputs: INPUTS,
    async run(context, values) {
      const { name, command: words } = values
      if (words.length === 0) {
        if (values.local && values.url !== undefined) throw wrongUsage('choose one of --local and --url.')
        return `recorded ${name}; the next one is due by ${await reportBeat(context, values, 0)}\n`
      }
      const { exitCode, interrupted } = await runWrapped(context, words)
      // Exit with the command's own code, even if the report fails.
      const reporting = Object.create(context, { signal: { value: interrupted } }) as Context
      await reportBeat(reporting, values, exitCode).catch((error: unknown) => {
        const why = error instanceof CommandError ? error.message : 'internal fault.'
        complain(context, `the heartbeat ${name} was not recorded: ${why}`)
      })
      // Another program's exit code can be any number.
      return exitCode as ExitCode
    },
  })

async function reportBeat(context: Context, values: Values<typeof INPUTS>, exitCode: number) {
  const { name, local, url, ...place } = values
  if (!local) {
    const { env } = await loadEnvironment(context, place.envFile)
    const { postToWeb, webEndpoint } = await import('../web-endpoint.ts')
    const path = PATHS.heartbeat.replace(':name', encodeURIComponent(name))
    const endpoint = webEndpoint(context, env, url, path)
    return postToWeb(context, { ...endpoint, body: { exitCode } }, 'nextBy')
  }
  const definition = context.platform.heartbeats.find((one) => one.name === name)
  if (definition === undefined) {
    const known = context.platform.heartbeats.map((one) => one.name).join(', ')
    throw wrongUsage(
      `the definition has no heartbeat ${JSON.stringify(name)}${known === '' ? ', nor any other: run this where platform.config.ts is, or name the file with --config' : `; it has ${known}`}.`,
    )
  }
  return withStore(context, place, async ({ store }) => {
    const now = context.clock.now()
    const failed = exitCode === 0 ? undefined : { exitCode }
    const record = await store.heartbeats.beat({ name, now, failed })
    return iso(heartbeatState(definition, record, now).dueBy)
  })
}

/** Runs a command on this process's streams, and gives its exit code as a shell would. It gets the signals; after its end, `interrupted`. */
export function runWrapped(context: Context, [file = '', ...args]: readonly string[]) {
  const interrupt = new AbortController()
  return new Promise<{ readonly exitCode: number; readonly interrupted: AbortSignal }>((settle) => {
    const resolve = (exitCode: number) => settle({ exitCode, interrupted: interrupt.signal })
    if (context.signal.aborted) return resolve(128 + constants.signals.SIGTERM)
    // Node takes an environment whose values may be undefined.
    const env = context.env as NodeJS.ProcessEnv
    const child = spawn(file, args, { stdio: 'inherit', cwd: context.cwd, env })
    context.takeSignals?.((signal) => {
      if (child.exitCode !== null || child.signalCode !== null) return interrupt.abort()
      // Ctrl-C already reaches the command through the terminal. Many programs take a second signal as "quit at once".
      const fromTerminal = (signal === 'SIGINT' || signal === 'SIGQUIT') && process.stdin.isTTY
      if (!fromTerminal) child.kill(signal)
    })
    child.once('error', (error: NodeJS.ErrnoException) => {
      const missing = error.code === 'ENOENT'
      context.stderr.write(
        `platformctl: the command could not be started: ${missing ? 'there is no such program' : (error.code ?? 'unknown fault')}\n`,
      )
      // As a shell says that there is no such command, and that it is not executable.
      resolve(missing ? 127 : 126)
    })
    child.once('exit', (code, signal) => resolve(code ?? 128 + (signal ? constants.signals[signal] : 0)))
  })
}
