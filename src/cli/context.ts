import { existsSync } from 'node:fs'
import path from 'node:path'
import type { Operator } from '../core/audit.ts'
import type { DaemonRecord, Places, RecordedPlatform } from '../core/daemon-record.ts'
import { embedded } from '../core/embedded.ts'
import type { Environment } from '../core/env/settings.ts'
import { codeOf } from '../core/errors.ts'
import type { Host } from '../core/host.ts'
import type { LiveNetwork } from '../core/live/network.ts'
import { type ResolvedPlatform, recordedPlatform } from '../core/platform.ts'

/** Where a command writes. `isTTY`, `columns` and `rows` decide about colour, progress and what fits. */
export interface Output {
  write(text: string): unknown
  readonly isTTY?: boolean
  readonly columns?: number
  readonly rows?: number
  /** The stream without its guard, for a library that draws on it; what it draws must be `shown` by its caller. */
  readonly drawn?: Output
}

/** Off a terminal. A terminal that does not know its size says 0. */
const COLUMNS = 100

/** A running daemon: what it was started with, and where it listens. */
export type UsedDaemon = Pick<Places, 'dataFolder' | 'envFiles'> & Pick<DaemonRecord, 'urls'>

export const terminalColumns = (output: Output) => output.columns || COLUMNS

/** The width to wrap lists for: what is piped to a file or another program keeps one line an entry. */
export const listColumns = (output: Output) => output.columns || Number.POSITIVE_INFINITY

/** The user who runs the command, for the audit log; a placeholder if the context does not say, as in a test. */
export const operatorOf = (context: Context) => context.operator?.() ?? { name: 'unknown', place: 'unknown' }

/** Everything a command may touch of the process, so that tests can give their own. Only the asked-for document goes to `stdout`. */
export interface Context extends Pick<Host, 'clock' | 'random'> {
  readonly platform: ResolvedPlatform
  /** The folders in which there was no definition; absent if there is one, or if none was wanted. */
  readonly searched?: readonly string[]
  /** The daemon of this machine whose files the command uses, because it names none itself. */
  readonly daemon?: UsedDaemon
  /** Why a daemon that runs here is not the one that the command uses. */
  readonly unused?: string
  readonly env: Environment
  readonly cwd: string
  readonly stdin: AsyncIterable<Uint8Array>
  readonly stdout: Output
  readonly stderr: Output
  /** May colour be written to standard output / standard error? Already decided from flags, NO_COLOR, CI and the terminal. */
  readonly colour: { readonly stdout: boolean; readonly stderr: boolean }
  readonly operator?: () => Operator
  /** Aborted by Ctrl-C or SIGTERM: finish what is in flight, clean up, return. */
  readonly signal: AbortSignal
  /** Forwards signals from now on, instead of ending this process: for a command that runs in its place. */
  readonly takeSignals?: (forward: (signal: NodeJS.Signals) => void) => void
  /** The outside for live checks; the system's when absent. */
  readonly network?: LiveNetwork
  /** Reports unhandled faults from now on, before exit code 1: Node would print the error, whose text may contain anything. */
  readonly onFault?: (report: (error: unknown) => void | Promise<void>) => void
}

/** `--data`, else the folder of the daemon that is used, else `.platformctl` in the working directory. */
export const dataFolder = (context: Context, option: string | undefined) =>
  path.resolve(context.cwd, option ?? context.daemon?.dataFolder ?? '.platformctl')

/** One sentence without an end: which platform runs, or that none was found. */
export function whichPlatform({ searched, platform }: Pick<Context, 'platform' | 'searched'>): string {
  return searched === undefined || platform.definition
    ? platformText(recordedPlatform(platform))
    : `no definition found in ${searched.join(' or ')}: running the default platform`
}

export function platformText({ name, definition, fingerprint }: RecordedPlatform): string {
  return definition === null
    ? 'the default platform'
    : `${name}, defined by ${definition} (fingerprint ${fingerprint})`
}

/** How a person starts this program: `platformctl` where that is a command, otherwise by its file or through npx. */
export function programName(env: Context['env']): string {
  // Started by npm or npx there may be a command that is gone with this process.
  const folders = env.npm_lifecycle_event === undefined ? (env.PATH?.split(path.delimiter) ?? []) : []
  const isThere = folders.some((folder) =>
    ['platformctl', 'platformctl.cmd'].some((file) => existsSync(path.join(folder, file))),
  )
  return isThere ? 'platformctl' : (embedded?.root ?? 'npx -- platformctl')
}

/** Exit codes (CONTRACT §7). */
export const EXIT = {
  /** Passed: warnings and degraded allowed. */
  passed: 0,
  /** A check failed (with `--strict` also warnings and degraded). */
  failed: 1,
  /** Wrong usage or unreadable input. */
  usage: 2,
  /** Could not reach, or was refused by, the remote side. */
  remote: 3,
  internal: 70,
} as const

export type ExitCode = (typeof EXIT)[keyof typeof EXIT]

/** A sentence for the operator that names the fix, and the exit code: printed without a stack trace. */
export class CommandError extends Error {
  override readonly name = 'CommandError'
  readonly exitCode: ExitCode

  constructor(exitCode: ExitCode, message: string) {
    super(message)
    this.exitCode = exitCode
  }
}

export const wrongUsage = (message: string) => new CommandError(EXIT.usage, message)

export const failure = (message: string) => new CommandError(EXIT.failed, message)

const WRITE_REFUSALS: Readonly<Record<string, string>> = {
  EEXIST: 'something else has this name. Move it away',
  ENOTDIR: 'something else has this name. Move it away',
  EACCES: 'permission denied. Check who owns the folder',
  EPERM: 'permission denied. Check who owns the folder',
  EROFS: 'the disk is read-only. Choose another folder',
  ENOSPC: 'the disk is full. Free some space',
}

/** Why a file cannot be written, and what to do before the next try. */
export function writeRefusal(error: unknown): string {
  const code = codeOf(error)
  return WRITE_REFUSALS[code] ?? `the system says ${code || 'no more'}. Check the folder`
}

/** Error text for a mail that does not compile, with the file's path relative to the working directory. */
export function templateFaultText(cwd: string, { message }: Error): string {
  const inside = message.startsWith(cwd) && /^[\\/]/.test(message.slice(cwd.length))
  return `a mail does not compile: ${inside ? message.slice(cwd.length + 1) : message}.`
}

/**
 * Nobody else can know it, and the CLI's own escape sequences carry it. All other text goes through `withGuardedOutput`:
 * answers of servers, names of files, ids, subjects, words of the command line. So it cannot move the cursor, change the
 * title of a window or give a command to the workflow whose log it is in.
 */
let number: string | undefined

/** Escape sequences (`\u001b[31m`) that the guard lets pass. They have no width, as any others. */
export function ours(text: string): string {
  // In groups of four digits, which is what programs that measure text take for a sequence.
  number ??= [...crypto.getRandomValues(new Uint16Array(5))].map((one) => String(one % 10_000)).join(';')
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for.
  return text.replace(/\u001b\[([?\d;]*)([A-Za-z])/g, `\u001b[$1;${number}$2`)
}

/** An escape sequence with a number, which may be ours; or any control character but tab, line feed and the CR of a CRLF. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for.
const CONTROL = /\u001b\[([?\d;]*)([A-Za-z])|[\0-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f]|\r(?!\n)/g
/** Characters that change the order or the look of others. Spelled out on a screen only; documents in files keep them. */
const INVISIBLE =
  /[\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\u{e0000}-\u{e007f}]/gu
/** What GitHub would take for a workflow command at the beginning of a line. */
const COMMAND = /(?<![^\n\r])([^\S\n\r]*)(?=::)/g
/** What the runners of GitHub and Azure look for anywhere in a line, in JSON too. */
const RUNNER_COMMAND = /##(?=(?:vso)?\[)/gi

/** The text with every control character spelled out (`\u001b`), and with our own sequences as they are. */
export function shown(text: string, isTerminal: boolean): string {
  const inert = text
    .replace(COMMAND, '$1\\')
    .replace(RUNNER_COMMAND, '#\\u0023')
    .replace(CONTROL, (found, parameters: string | undefined, final: string | undefined) => {
      const own = number !== undefined && parameters?.endsWith(`;${number}`) === true
      if (!own) return spelled(found)
      return final === 'Z' ? '' : `\u001b[${parameters.slice(0, -(number?.length ?? 0) - 1)}${final}`
    })
  return isTerminal ? inert.replace(INVISIBLE, spelled) : inert
}

/** As JSON spells it, so that a document stays one. */
const spelled = (text: string) =>
  text.replaceAll(/[^ -~]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)

/** One line of JSON whose texts hold no control character once they are parsed. */
export function inertJson(line: string): string {
  return line.replace(/\\(u[0-9a-f]{4}|.)/gi, (whole, code: string) =>
    /^(?:u00(?:[01].|7f|[89].)|[bfnr])$/i.test(code) ? `\\\\${code}` : whole,
  )
}

export function withGuardedOutput(context: Context): Context {
  // Opened when they are used: a quiet command does not pay for a stream.
  let stdout: Output | undefined
  let stderr: Output | undefined
  // Everything else is inherited from `context`, getters included.
  return Object.create(context, {
    stdout: { get: () => (stdout ??= behindGuard(context.stdout)) },
    stderr: { get: () => (stderr ??= behindGuard(context.stderr)) },
  }) as Context
}

function behindGuard(output: Output): Output {
  // The same stream but for `write`.
  return Object.create(output, {
    write: { value: (text: string) => output.write(shown(text, output.isTTY === true)) },
    drawn: { value: output },
  }) as Output
}

/** The styles that the CLI uses. A state is never shown by colour alone, so plain text says the same. */
const STYLES = ['bold', 'dim', 'red', 'green', 'yellow', 'cyan'] as const

export type Paint = Readonly<Record<(typeof STYLES)[number], (text: string) => string>>

/** Colours when there are any to write, else the text as it is. */
export async function loadPaint(colour: boolean): Promise<Paint> {
  const chalk = colour ? new (await import('chalk')).Chalk({ level: 1 }) : undefined
  const styles = STYLES.map((name) => {
    // The sequences pass the guard of the output; one in the text does not become one of ours.
    const [open = '', close = ''] = chalk?.[name]('|').split('|').map(ours) ?? []
    return [name, (text: string) => open + text + close]
  })
  // Each style is there.
  return Object.fromEntries(styles) as Paint
}

/** Whether lines can be drawn over: not in the log of a CI system, nor on a terminal without a cursor to move. */
export const isLive = ({ env }: Pick<Context, 'env'>, { isTTY }: Output) =>
  isTTY === true && !env.CI && env.TERM !== 'dumb'

/** Whether a spinner can be drawn. On a terminal without a width, as a serial console, ora would erase lines without end. */
export const canSpin = (context: Context) => context.stderr.columns !== 0 && isLive(context, context.stderr)

/** Shows the current wait as one line on standard error, then erases it; only where that can be. */
export async function openProgress(context: Context, text: string) {
  if (!canSpin(context)) return { show(_: string) {}, end() {} }
  const spinner = (await openSpinner(context)).start(shown(text, true))
  return {
    show(next: string) {
      spinner.text = shown(next, true)
    },
    end: () => void spinner.stop(),
  }
}

/** A spinner on standard error, which stays off where it cannot be drawn. */
export async function openSpinner(context: Context) {
  const { default: ora } = await import('ora')
  return ora({
    // ora wants the stream's cursor methods, which only a terminal has.
    stream: (context.stderr.drawn ?? context.stderr) as NodeJS.WriteStream,
    isEnabled: true,
    isSilent: !canSpin(context),
    discardStdin: false,
    color: context.colour.stderr ? 'blue' : false,
  })
}
