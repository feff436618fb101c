import { expand } from './expand.ts'
import type { DialectResult } from './read.ts'

const ESCAPES: Readonly<Record<string, string>> = {
  n: '\n',
  r: '\r',
  t: '\t',
  a: '\u0007',
  b: '\b',
  f: '\f',
  v: '\v',
}

/** `env_file` of Docker Compose (compose-go): expands outside single quotes, and refuses the file for a name it cannot read. */
export function readCompose(text: string, machine: Readonly<Record<string, string>>): DialectResult {
  const values = new Map<string, string>()
  // The machine's value wins in a reference, the file's as a value.
  const look = (name: string) => (Object.hasOwn(machine, name) ? machine[name] : values.get(name))
  const source = text.replace(/^\uFEFF/, '').replaceAll('\r\n', '\n')
  for (let at = 0; at < source.length; ) {
    if (/\s/.test(source[at] ?? '')) {
      at += 1
      continue
    }
    const end = lineEnd(source, at)
    if (source[at] === '#') {
      at = end + 1
      continue
    }
    const line = source.slice(at, end).replace(/^export\s+/, '')
    const name = /^[\p{L}\p{N}_.\-[\]]*[^\S\n]*/u.exec(line)?.[0] ?? ''
    const separator = line[name.length]
    if (separator === undefined) {
      at = end + 1
      continue
    }
    if (separator !== '=' && separator !== ':') return refused(source, at)
    const from = end - line.length + name.length + 1
    const taken = valueAt(source, from, look)
    if (taken === undefined) return refused(source, at)
    values.set(name.trimEnd(), taken.value)
    at = taken.end + 1
  }
  return { values, rejected: false }
}

function refused(source: string, at: number): DialectResult {
  return { values: new Map(), rejected: true, rejectedLine: source.slice(0, at).split('\n').length }
}

function valueAt(
  source: string,
  from: number,
  look: (name: string) => string | undefined,
): { value: string; end: number } | undefined {
  let at = from
  while (source[at] !== '\n' && /\s/.test(source[at] ?? '')) at += 1
  const quote = source[at]
  if (quote !== '"' && quote !== "'") {
    const end = lineEnd(source, from)
    const line = source.slice(from, end)
    // A comment needs white space before it, so a value may begin with a hash.
    const value = line.replace(/\s#.*$/s, '').trim()
    const expanded = expand(value, look, false)
    return expanded === undefined ? undefined : { value: expanded, end }
  }
  let close = at + 1
  while (close < source.length && source[close] !== quote) close += source[close] === '\\' ? 2 : 1
  if (close >= source.length) return undefined
  const raw = source.slice(at + 1, close)
  const value = quote === "'" ? raw.replaceAll("\\'", "'") : expand(unescaped(raw), look, true)
  return value === undefined ? undefined : { value, end: lineEnd(source, close) }
}

/** Escapes of double quotes, less that of the dollar, which expansion needs to see. */
function unescaped(raw: string): string {
  return raw.replace(/\\([nrtabfv"'\\])/g, (_, letter: string) => ESCAPES[letter] ?? letter)
}

function lineEnd(source: string, from: number): number {
  const end = source.indexOf('\n', from)
  return end === -1 ? source.length : end
}
