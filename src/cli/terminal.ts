// biome-ignore-all lint/suspicious/noControlCharactersInRegex: they are what is looked for here
// biome-ignore-all lint/suspicious/noMisleadingCharacterClass: each stands for itself
import type { Context, Output } from './context.ts'

/**
 * Everything that a command writes goes through `withGuardedOutput`, so that text from elsewhere (answers of servers, names of
 * files, ids, subjects, words of the command line) cannot move the cursor, change the title of a window or give a
 * command to the workflow whose log it is in. The CLI's own sequences carry a number that nobody else can know.
 */
let number: string | undefined

/** Escape sequences (`\u001b[31m`) that the guard lets pass. They have no width, as any others. */
export function ours(text: string): string {
  // In groups of four digits, which is what programs that measure text take for a sequence.
  number ??= [...crypto.getRandomValues(new Uint16Array(5))].map((one) => String(one % 10_000)).join(';')
  return text.replace(/\u001b\[([?\d;]*)([A-Za-z])/g, `\u001b[$1;${number}$2`)
}

/** The mark before a workflow command of our own. */
export const workflowCommand = () => ours('\u001b[Z')

/** An escape sequence with a number, which may be ours; or any control character but tab, line feed and the CR of a CRLF. */
const CONTROL = /\u001b\[([?\d;]*)([A-Za-z])|[\0-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f]|\r(?!\n)/g
/** Characters that change the order or the look of others. Spelled out on a screen only; documents in files keep them. */
const INVISIBLE =
  /[\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\u{e0000}-\u{e007f}]/gu
/** The beginning of a line that GitHub or Azure would take for a workflow command. */
const COMMAND = /^([^\S\n\r\u2028\u2029]*)(?=::|##(?:vso)?\[)/gm

/** The text with every control character spelled out (`\u001b`), and with our own sequences as they are. */
export function shown(text: string, isTerminal: boolean): string {
  const inert = text
    .replace(COMMAND, '$1\\')
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

/** The same context with both streams behind the guard. */
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

/** Shows the current wait as one line on standard error, then erases it; only on a terminal. */
export async function openProgress(context: Context, text: string) {
  if (context.stderr.isTTY !== true) return { show(_: string) {}, end() {} }
  const spinner = (await openSpinner(context)).start(shown(text, true))
  return {
    show(next: string) {
      spinner.text = shown(next, true)
    },
    end: () => void spinner.stop(),
  }
}

/** A spinner on standard error, which stays off where that is no terminal. */
export async function openSpinner({ stderr, colour }: Context) {
  const { default: ora } = await import('ora')
  return ora({
    // ora wants the stream's cursor methods, which only a terminal has.
    stream: (stderr.drawn ?? stderr) as NodeJS.WriteStream,
    isEnabled: stderr.isTTY === true,
    isSilent: stderr.isTTY !== true,
    discardStdin: false,
    color: colour.stderr ? 'blue' : false,
  })
}
