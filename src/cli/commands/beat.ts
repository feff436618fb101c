import { spawn } from 'node:child_process'
import { constants } from 'node:os'
import { PATHS } from '../../core/paths.ts'
import type { Configure, Context } from '../context.ts'
import { CommandError, type ExitCode, wrongUsage } from '../exit.ts'
import { envFileOption } from '../options.ts'
import { printText } from '../print.ts'

export const configure: Configure = (command, context, settle) => {
  command
    .description(
      'Report that a job ran, or run a command and report how it ended. The definition names the heartbeats; a late or failed one raises an alert.',
    )
    .argument('<name>', 'the heartbeat')
    .argument('[command...]', 'after --: what to run; its output, signals and exit code pass through')
    .option('--url <url>', 'address of the web service (default: NEXT_PUBLIC_SITE_URL)')
    .option('--local', 'write into this machine’s store, without the web service')
    .option(
      '--data <folder>',
      'with --local: the data folder, when STORE_URL is not set (default: .platformctl)',
    )
    .addOption(envFileOption())
    .addHelpText(
      'after',
      `
The secret is EMAIL_DISPATCH_SECRET. With a command, the exit code is the command's own, even if the
service cannot be reached: a line on standard error says so, and the heartbeat becomes late.

Exit codes without a command: 0 recorded, 2 wrong usage, 3 not reached or refused.

Examples:
  platformctl beat backup --url https://www.example.com -- ./backup.sh
  platformctl beat backup --local --data /var/lib/platformctl`,
    )
    .action(async (name: string, words: readonly string[], options: BeatOptions) =>
      settle(await beat(context, name, words, options)),
    )
}

async function beat(
  context: Context,
  name: string,
  words: readonly string[],
  options: BeatOptions,
): Promise<ExitCode> {
  if (words.length === 0) {
    if (options.local && options.url !== undefined) throw wrongUsage('choose one of --local and --url.')
    const { nextBy } = await reportBeat(context, { ...options, name, exitCode: 0 })
    return printText(context, `recorded ${name}; the next one is due by ${nextBy}\n`)
  }
  const { exitCode, interrupted } = await runWrapped(context, words)
  // Exit with the command's own code, even if the report fails.
  const reporting = Object.create(context, { signal: { value: interrupted } }) as Context
  await reportBeat(reporting, { ...options, name, exitCode }).catch((error: unknown) =>
    context.stderr.write(
      `platformctl: the heartbeat ${name} was not recorded: ${error instanceof CommandError ? error.message : 'internal fault.'}\n`,
    ),
  )
  // Another program's exit code can be any number.
  return exitCode as ExitCode
}

interface BeatOptions {
  readonly url?: string
  readonly local?: true
  readonly data?: string
  readonly envFile: readonly string[]
}

/** Reports a heartbeat to the web service, or writes it into this machine's store; gives when the next one is due. */
async function reportBeat(
  context: Context,
  { name, exitCode, ...options }: BeatOptions & { readonly name: string; readonly exitCode: number },
): Promise<{ readonly nextBy: string }> {
  const { loadEnvironment } = await import('../environment.ts')
  const { env } = await loadEnvironment(context, options.envFile)
  if (!options.local) {
    const { postToWeb, webEndpoint } = await import('../dispatch/web-endpoint.ts')
    const path = PATHS.heartbeat.replace(':name', encodeURIComponent(name))
    const answer = await postToWeb(context, {
      ...webEndpoint(env, options.url, path, context.daemon),
      body: { exitCode },
    })
    return { nextBy: String(answer.nextBy) }
  }
  const definition = context.platform.heartbeats.find((one) => one.name === name)
  if (definition === undefined) {
    const known = context.platform.heartbeats.map((one) => one.name).join(', ')
    throw wrongUsage(
      `the definition has no heartbeat ${JSON.stringify(name)}${known === '' ? ', nor any other: run this where platform.config.ts is, or name the file with --config' : `; it has ${known}`}.`,
    )
  }
  const { openLocalStore } = await import('../local.ts')
  const { heartbeatState } = await import('../../core/heartbeats.ts')
  const store = await openLocalStore(context, env, options.data)
  try {
    const now = context.clock.now()
    const failed = exitCode === 0 ? undefined : { exitCode }
    const record = await store.heartbeats.beat({ name, now, failed })
    return { nextBy: new Date(heartbeatState(definition, record, now).dueBy).toISOString() }
  } finally {
    await store.close()
  }
}

/** The exit codes of a shell for a command that does not exist, and for one that is not executable. */
const NOT_FOUND = 127
const NOT_RUNNABLE = 126

/**
 * Runs a command on this process's own streams, and gives its exit code as a shell would: 128 and the signal's number
 * for one that a signal ended. Signals that this process gets go to the command, and after its end to `interrupted`.
 */
export function runWrapped(
  context: Context,
  [file = '', ...args]: readonly string[],
): Promise<{ readonly exitCode: number; readonly interrupted: AbortSignal }> {
  const interrupt = new AbortController()
  const interrupted = interrupt.signal
  if (context.signal.aborted)
    return Promise.resolve({ exitCode: 128 + constants.signals.SIGTERM, interrupted })
  return new Promise((resolve) => {
    const child = spawn(file, args, {
      stdio: 'inherit',
      cwd: context.cwd,
      // Node takes an environment whose values may be undefined.
      env: context.env as NodeJS.ProcessEnv,
    })
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
      resolve({ exitCode: missing ? NOT_FOUND : NOT_RUNNABLE, interrupted })
    })
    child.once('exit', (code, signal) =>
      resolve({ exitCode: code ?? 128 + (signal === null ? 0 : constants.signals[signal]), interrupted }),
    )
  })
}
