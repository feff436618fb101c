import { hostname, userInfo } from 'node:os'
import { addAbortSignal } from 'node:stream'
import type { Operator } from '../core/audit.ts'
import type { Environment } from '../core/env/settings.ts'
import { systemClock, systemRandom } from '../core/host.ts'
import { attempt } from '../core/is-record.ts'
import { useProxies } from '../core/network/proxy.ts'
import { learning } from '../presets/learning/platform.ts'
import { choosePlatform, ownWords, takeConfigWords } from './choose-platform.ts'
import { type Context, EXIT, type ExitCode, isLive, type Output, withGuardedOutput } from './context.ts'
import { complain } from './output/text.ts'
import { reportFault, runProgram } from './program.ts'

const IP = /^[\da-f.:]{2,45}$/i

/** The person at this terminal for the audit log: the user (in a container maybe only an id), who sudo was called by, the machine, and where SSH came from. */
export function currentOperator(env: Environment): Operator {
  const known = attempt(() => userInfo().username) ?? `uid ${process.getuid?.() ?? 'unknown'}`
  const user = known.replace(/^nobody$/, 'the user nobody')
  const behind = env.SUDO_USER && env.SUDO_USER !== user ? ` (sudo by ${env.SUDO_USER})` : ''
  const from = env.SSH_CONNECTION?.split(' ')[0] ?? ''
  return { name: `${user}${behind}`, place: `${hostname()}${IP.test(from) ? ` (ssh from ${from})` : ''}` }
}

const REPORT_MS = 1000

/** Colour is decided once: a flag beats NO_COLOR and FORCE_COLOR (no-color.org, force-color.org), which beat CI and the terminal. */
export function wantsColour(argv: readonly string[], env: Context['env'], stream: Output): boolean {
  if (argv.includes('--no-color')) return false
  if (argv.includes('--color')) return true
  if (env.NO_COLOR) return false
  if (env.FORCE_COLOR) return env.FORCE_COLOR !== '0'
  return isLive({ env }, stream)
}

/** Further signals that are forwarded to a command that runs in place of this one. */
const FORWARDED = ['SIGHUP', 'SIGQUIT', 'SIGUSR1', 'SIGUSR2'] as const

/** The standard streams that were used: opening one loads sockets or files, which a command that is quiet there need not pay for. */
const streams = new Set<NodeJS.WriteStream>()
/** Who serves others goes on when the log cannot be written. */
let serves = false
let isOutputLost = false

function opened(name: 'stdout' | 'stderr', interrupt: AbortController): NodeJS.WriteStream {
  const stream = process[name]
  if (streams.has(stream)) return stream
  stream.on('error', ({ code }: NodeJS.ErrnoException) => {
    // A reader that went away (`| head`) is no fault of ours, nor a reason to report a check that failed as passed. A
    // command without an end stops as it does on Ctrl-C, unless it serves others: whatever collects the log may crash.
    const isGone = code === 'EPIPE' || (code === 'EIO' && stream.isTTY)
    if (isGone && !serves) return interrupt.abort(new Error('the reader of the output is gone'))
    if (name === 'stdout' && !isOutputLost)
      opened('stderr', interrupt).write(
        `platformctl: cannot write the output (${code}): ${code === 'ENOSPC' ? 'free some space, or ' : ''}write it elsewhere.\n`,
      )
    isOutputLost = true
    if (!serves) process.exit(EXIT.usage)
  })
  streams.add(stream)
  return stream
}

/** Runs the CLI on this process: the only reader of `process.argv` and `process.env`. */
export async function start(): Promise<void> {
  const cwd = attempt(() => process.cwd())
  if (cwd === undefined) {
    process.stderr.write('platformctl: the working directory is gone: change to another one.\n')
    process.exitCode = EXIT.usage
    return
  }
  useProxies(process.env)
  const words = takeConfigWords(process.argv.slice(2))
  const argv = ownWords(words.rest)
  const others = words.rest.slice(argv.length)
  const named = argv.find((word) => !word.startsWith('-')) ?? ''
  serves = /^(?:daemon|witness)$/.test(named)
  const interrupt = new AbortController()
  let forward: ((signal: NodeJS.Signals) => void) | undefined
  const onSignal = (signal: NodeJS.Signals) => {
    if (forward !== undefined) return forward(signal)
    // The first signal asks for a clean end; the second means it.
    if (interrupt.signal.aborted) process.exit(signal === 'SIGINT' ? 130 : 143)
    interrupt.abort(new Error(`ended by ${signal}`))
  }
  process.on('SIGINT', onSignal).on('SIGTERM', onSignal)
  // Its files go when its terminal is closed, too.
  if (named === 'demo') process.on('SIGHUP', onSignal)
  const context: Context = {
    platform: learning,
    env: process.env,
    cwd,
    get stdin() {
      return addAbortSignal(interrupt.signal, process.stdin)
    },
    get stdout() {
      return opened('stdout', interrupt)
    },
    get stderr() {
      return opened('stderr', interrupt)
    },
    colour: {
      get stdout() {
        return wantsColour(argv, process.env, context.stdout)
      },
      get stderr() {
        return wantsColour(argv, process.env, context.stderr)
      },
    },
    clock: systemClock,
    random: systemRandom,
    operator: () => currentOperator(process.env),
    signal: interrupt.signal,
    takeSignals(to) {
      forward = to
      for (const signal of FORWARDED) process.on(signal, onSignal)
    },
    onFault(given) {
      report = given
      exitCode = EXIT.failed
    },
  }
  let report = (error: unknown): unknown => reportFault(error, withGuardedOutput(context))
  let exitCode: ExitCode = EXIT.internal
  let failed: number | undefined
  // The first fault, also an unhandled rejection, ends the process, even if its report hangs: its state is unknown then.
  process.once('uncaughtException', (error) => {
    // Keep this exit code even if a signal ends the command cleanly before the report is sent.
    const code = exitCode
    failed = code
    process.on('uncaughtException', () => process.exit(code))
    setTimeout(() => process.exit(code), REPORT_MS)
    void (async () => report(error))().finally(() => process.exit(code))
  })

  const say = (sentence: string) => complain(withGuardedOutput(context), sentence)
  const rest = [...argv.filter((word) => word !== '--color' && word !== '--no-color'), ...others]
  const code = await choosePlatform({ ...words, rest }, { cwd, env: process.env, say }).then(
    (choice) =>
      runProgram(
        rest,
        // Not copied: a copy would call its getters and open the streams, which are opened on first use.
        Object.defineProperties(context, Object.getOwnPropertyDescriptors(choice)),
      ),
    async (error: unknown) => {
      const guarded = withGuardedOutput(context)
      const refused = reportFault(error, guarded)
      if (named === 'daemon')
        await (await import('./commands/daemon.ts')).tellUndefined(guarded, argv, error).catch(() => {})
      return refused
    },
  )
  process.exitCode = failed ?? code
  // Some systems write pipes in the background: wait for the output before the process ends.
  await Promise.all(
    [...streams].map((stream) => new Promise<void>((resolve) => stream.write('', () => resolve()))),
  )
  // A name resolution that hangs holds the process open for tens of seconds and cannot be cancelled.
  setTimeout(() => process.exit(), 250).unref()
}
