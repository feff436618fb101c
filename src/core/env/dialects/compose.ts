import type { DialectResult } from './dialect.ts'
import { closingQuote, type Look, lineEnd, skip, substitute } from './template.ts'

/** White space of one line, as compose-go counts it. */
const SPACE = /[\t\v\f\r \u0085\u00a0]/
const ANY_SPACE = /[\s\u0085]/
const NAME = /[\p{L}\p{N}_.\-[\]]/u
// Two dollars, because the template that is applied afterwards turns them into one.
const ESCAPES = new Map(
  Object.entries({ a: '\x07', b: '\b', f: '\f', n: '\n', r: '\r', t: '\t', v: '\v', $: '$$' }),
)

/** `env_file` of Docker Compose, as compose-go reads it: statements rather than lines, so text after a quote is the next one. */
export function readCompose(text: string, ofMachine: Look): DialectResult {
  const values = new Map<string, string>()
  // The machine's value wins in a reference, the file's as a value.
  const look: Look = (name) => ofMachine(name) ?? values.get(name)
  const source = text.replace(/^\uFEFF/, '').replaceAll('\r\n', '\n')
  const refused = (at: number): DialectResult => ({
    values: new Map(),
    rejected: true,
    rejectedLine: source.slice(0, at).split('\n').length,
  })
  for (let at = statementStart(source, 0); at < source.length; at = statementStart(source, at)) {
    const found = keyAt(source, at)
    if (found === undefined || found.key.includes(' ')) return refused(at)
    if (found.inherited) {
      const value = ofMachine(found.key)
      if (value !== undefined) values.set(found.key, value)
      at = found.end
      continue
    }
    const taken = valueAt(source, found.end, look)
    if (taken === undefined) return refused(at)
    values.set(found.key, taken.value)
    at = taken.end
  }
  return { values, rejected: false }
}

function statementStart(source: string, from: number): number {
  let at = skip(source, from, ANY_SPACE)
  while (source[at] === '#') at = skip(source, lineEnd(source, at), ANY_SPACE)
  return at
}

/** A name up to `=` or `:`; up to the end of its line it is inherited from the machine. The last line may have no end: then it is a value without a name. */
function keyAt(source: string, start: number) {
  const from = /^export\s/.test(source.slice(start, start + 7)) ? skip(source, start + 6, SPACE) : start
  for (let at = from; at < source.length; ) {
    const char = String.fromCodePoint(source.codePointAt(at) ?? 0)
    if (/^[=:\n]$/.test(char)) {
      const key = source.slice(from, at).trimEnd()
      return { key, inherited: char === '\n', end: skip(source, at + 1, SPACE) }
    }
    if (!SPACE.test(char) && !NAME.test(char)) return undefined
    at += char.length
  }
  return { key: '', inherited: false, end: from }
}

function valueAt(source: string, from: number, look: Look): { value: string; end: number } | undefined {
  const quote = source[from]
  if (quote !== '"' && quote !== "'") {
    const end = lineEnd(source, from)
    // A comment needs a space before it, and the spaces behind the separator are already gone.
    const [line = ''] = source.slice(from, end).split(' #', 1)
    const value = substitute(line.trimEnd(), look)
    return value === undefined ? undefined : { value, end }
  }
  const close = closingQuote(source, from + 1, quote, true)
  if (close === undefined) return undefined
  const raw = source.slice(from + 1, close)
  const value = quote === "'" ? raw.replaceAll("\\'", "'") : substitute(unescaped(raw), look)
  return value === undefined ? undefined : { value, end: close + 1 }
}

function unescaped(raw: string): string {
  // The first replacement is the reader's own, the second that of its escapes: `\\"` means something to both.
  return raw
    .replace(/\\([\s\S])/g, (whole, char: string) => (char === '"' ? '"' : whole))
    .replace(/\\(?:([abfnrtv$"\\])|0\d{0,3})/g, (sequence, letter?: string) =>
      letter === undefined ? octal(sequence) : (ESCAPES.get(letter) ?? letter),
    )
}

/** Resolves an octal escape: `\0101` is read as `\101`, which is A. With fewer digits, or beyond a byte, that form stays. */
function octal(sequence: string): string {
  const made = `\\${sequence.slice(2)}`
  return /^\\[0-3][0-7]{2}$/.test(made) ? String.fromCharCode(Number.parseInt(made.slice(1), 8)) : made
}
