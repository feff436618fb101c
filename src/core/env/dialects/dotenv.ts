import type { DialectResult } from './dialect.ts'
import { closingQuote, LONGEST_VALUE, type Look, lineEnd, skip } from './template.ts'

const REFERENCE = /(?<!\\)\$\{([^{}]+)\}|(?<!\\)\$([A-Za-z_][A-Za-z0-9_]*)/g
/** The most replacements in one value: inserted text is expanded too, so a value that names itself would never end. */
const MOST_ROUNDS = 500
/** In characters, by one replacement: beyond it, the value is longer than any in any case, or soon will be. */
const MOST_INSERTED = 64 * LONGEST_VALUE

/**
 * dotenv-expand on top of dotenv: names seen so far and the machine's are replaced, also inside single quotes, and the
 * machine's value wins over the file's. One difference is deliberate: `$(…)`, which it runs, is left as it is.
 */
export function readDotenvExpand(text: string, ofMachine: Look): DialectResult {
  const values = new Map<string, string>()
  const written = readDotenv(text).values
  // A machine's value that equals the file's unexpanded text counts as the file's own.
  const look: Look = (name) => {
    const outside = ofMachine(name)
    return outside === undefined || (values.has(name) && written.get(name) === outside)
      ? values.get(name)
      : outside
  }
  for (const [name, value] of written) {
    const outside = ofMachine(name)
    const taken = outside && outside !== value ? outside : expand(value, look)
    if (taken === undefined) return { values: new Map(), rejected: true }
    values.set(name, taken.replaceAll('\\$', '$'))
  }
  return { values, rejected: false }
}

/** Replaces the references in a value; undefined if it grows beyond any that a process could be given. */
function expand(value: string, look: Look): string | undefined {
  let expanded = value
  let from = 0
  for (let round = 0; round < MOST_ROUNDS; round += 1) {
    REFERENCE.lastIndex = from
    const match = REFERENCE.exec(expanded)
    if (match === null) break
    const reference = match[1] ?? match[2] ?? ''
    const operator = /:\+|\+|:-|-/.exec(reference)?.[0]
    const [name = '', ...words] = operator === undefined ? [reference] : reference.split(operator)
    // As in dotenv-expand: it replaces the first such text, escaped or not.
    const at = expanded.includes('\\') ? expanded.indexOf(match[0]) : match.index
    const inserted = resolve(operator, look(name), words.join(operator))
    // Each of these patterns inserts up to the whole value.
    const patterns = inserted.match(/\$['`&]/g)?.length ?? 0
    if (patterns * expanded.length > MOST_INSERTED) return undefined
    expanded = inserted.includes('$')
      ? // As there, a dollar in the value is a pattern of String.replace.
        expanded.replace(match[0], inserted)
      : expanded.slice(0, at) + inserted + expanded.slice(at + match[0].length)
    if (expanded.length > LONGEST_VALUE) return undefined
    if (expanded === look(name)) break
    // What comes before was no reference, and only the one around this place may be one now.
    const around = expanded.lastIndexOf('{', at - 1)
    from = at < match.index ? 0 : Math.max(0, (around === -1 || at === 0 ? at : around) - 1)
  }
  return expanded
}

/** The text that replaces a reference; dotenv-expand does not know `:?`, so nothing replaces such a name. */
function resolve(operator: string | undefined, found: string | undefined, word: string): string {
  if (operator === ':-') return found || word
  if (operator === '-') return found ?? word
  if (operator === ':+') return found ? word : ''
  if (operator === '+') return found === undefined ? '' : word
  return found ?? ''
}

const KEY = /[\w.-]/
const SPACE = /\s/

/** dotenv 18: a line is taken whole or skipped; quotes may span lines; only \n and \r are unescaped, in double quotes. */
export function readDotenv(text: string): DialectResult {
  const values = new Map<string, string>()
  const source = text.replace(/\r\n?/g, '\n')
  for (let at = 0; at < source.length; ) {
    // Skip the space before a line once: starting again from each of many empty lines would take quadratic time.
    at = skip(source, at, SPACE)
    const taken = assignment(source, at)
    if (taken === undefined) {
      at = lineEnd(source, at) + 1
      continue
    }
    // dotenv assigns to a plain object, where this name sets the prototype and is lost.
    if (taken.key !== '__proto__') values.set(taken.key, taken.value)
    at = taken.end + 1
  }
  return { values, rejected: false }
}

type Assignment = { readonly key: string; readonly value: string; readonly end: number }

/** `export` before a name is left out; before anything else it is the name. */
function assignment(source: string, start: number): Assignment | undefined {
  const exported = source.startsWith('export', start) && SPACE.test(source[start + 6] ?? '')
  return (exported && assigned(source, skip(source, start + 6, SPACE))) || assigned(source, start)
}

function assigned(source: string, at: number): Assignment | undefined {
  const keyEnd = skip(source, at, KEY)
  const key = source.slice(at, keyEnd)
  const afterSpace = skip(source, keyEnd, SPACE)
  // The space behind a colon may be the end of the line: then the value is on the next.
  const hasColon = source[keyEnd] === ':' && SPACE.test(source[keyEnd + 1] ?? '')
  const valueStart = source[afterSpace] === '=' ? afterSpace + 1 : hasColon ? keyEnd + 2 : undefined
  if (key === '' || valueStart === undefined) return undefined
  const open = skip(source, valueStart, /[^\S\n]/)
  const quote = source[open]
  if (quote === '"' || quote === "'" || quote === '`') {
    const close = closingQuote(source, open + 1, quote)
    const rest = close === undefined ? -1 : skip(source, close + 1, /[^\S\n]/)
    if (close !== undefined && /^[\n#]?$/.test(source[rest] ?? ''))
      return { key, value: cooked(source.slice(open + 1, close), quote), end: lineEnd(source, rest) }
  }
  const end = lineEnd(source, valueStart)
  // Looked for in this line only: a search to the end from every line would cost the square of the file.
  const raw = source.slice(valueStart, end).replace(/#.*/s, '').trim()
  return { key, value: cooked(/^(['"`])([\s\S]*)\1$/.exec(raw)?.[2] ?? raw, raw[0]), end }
}

const cooked = (value: string, quote: string | undefined) =>
  quote === '"' ? value.replaceAll('\\n', '\n').replaceAll('\\r', '\r') : value
