/** What references may see of one name. */
export type Look = (name: string) => string | undefined

const NAME = /[_a-z][_a-z0-9]*/iy
/** What may follow a dollar without a brace: a name; another dollar, to mean one; or nothing of these, and it is one. */
const PLAIN = /[_a-z][_a-z0-9]*|\$|(?!\{)/iy
const OPERATOR = /:?[-+?]/y
const LINE_END = /[\n\r\u2028\u2029]|$/g

/** The longest value, in characters: each line of a file may double the one before, and no process can take more. */
export const LONGEST_VALUE = 1024 * 1024
/** The most references inside one another: each takes room on the stack. */
const DEEPEST = 20

/**
 * The template of compose-go applied to a text: `$$`, `$NAME`, `${NAME}`, or `${NAME:-word}` with one of its operators.
 * Undefined: it refuses the file, for braces that it cannot read, for `${NAME:?message}` without a value, or for
 * a value that grows or nests beyond any that a process could be given.
 */
export function substitute(text: string, look: Look, depth = 0): string | undefined {
  if (depth > DEEPEST) return undefined
  let result = ''
  let length = text.length
  let at = 0
  let line = { end: -1, lastBrace: -1 }
  for (let dollar = text.indexOf('$'); dollar !== -1; dollar = text.indexOf('$', at)) {
    result += text.slice(at, dollar)
    const plain = matchAt(PLAIN, text, dollar + 1)
    if (plain === '' || plain === '$') {
      result += '$'
      at = dollar + 1 + plain.length
      continue
    }
    if (plain === undefined && dollar > line.end) line = lineAt(text, dollar)
    const reference =
      plain === undefined
        ? bracedAt(text, dollar, line.lastBrace)
        : { name: plain, operator: '', word: '', end: dollar + 1 + plain.length }
    const value = reference && resolved(reference, look, depth)
    if (reference === undefined || value === undefined) return undefined
    length += value.length
    if (length > LONGEST_VALUE) return undefined
    result += value
    at = reference.end
  }
  return result + text.slice(at)
}

/** The end of the line from here, and its last closing brace; -1: it has none. Looked for once, whatever references it has. */
function lineAt(text: string, from: number) {
  LINE_END.lastIndex = from
  const end = LINE_END.exec(text)?.index ?? text.length
  const rest = text.slice(from, end).lastIndexOf('}')
  return { end, lastBrace: rest === -1 ? -1 : from + rest }
}

interface Reference {
  readonly name: string
  /** Empty: the value alone is asked for. */
  readonly operator: string
  readonly word: string
  readonly end: number
}

/** A reference in braces: its word may hold others, and reaches no further than the last brace of the line. */
function bracedAt(text: string, dollar: number, lastBrace: number): Reference | undefined {
  const name = matchAt(NAME, text, dollar + 2)
  if (name === undefined) return undefined
  const after = dollar + 2 + name.length
  const operator = matchAt(OPERATOR, text, after) ?? ''
  const begin = after + operator.length
  if (operator === '') return text[after] === '}' ? { name, operator, word: '', end: after + 1 } : undefined
  if (lastBrace < begin) return undefined
  const close = closing(text, begin, lastBrace)
  return { name, operator, word: text.slice(begin, close), end: close + 1 }
}

/** The brace that closes a word; those inside are counted, and the last one of the line closes whatever is open. */
function closing(text: string, begin: number, lastBrace: number): number {
  let open = 1
  for (let at = begin; at < lastBrace; at += 1) {
    if (text[at] === '}') {
      open -= 1
      if (open === 0) return at
    } else if (text[at] === '{') {
      open += 1
      at += 1
    }
  }
  return lastBrace
}

function resolved({ name, operator, word }: Reference, look: Look, depth: number): string | undefined {
  const found = look(name)
  const set = found !== undefined && (found !== '' || !operator.startsWith(':'))
  const wanted = operator.endsWith('+') ? set : !set && operator !== ''
  if (!wanted) return found ?? ''
  return operator.endsWith('?') ? undefined : substitute(word, look, depth + 1)
}

function matchAt(pattern: RegExp, text: string, at: number): string | undefined {
  pattern.lastIndex = at
  return pattern.exec(text)?.[0]
}

/** The first place from `from` on whose character is not of this kind. */
export function skip(source: string, from: number, kind: RegExp): number {
  let at = from
  while (at < source.length && kind.test(source[at] ?? '')) at += 1
  return at
}

export function lineEnd(source: string, from: number): number {
  const end = source.indexOf('\n', from)
  return end === -1 ? source.length : end
}

/** Where a quote closes: at one that no backslash takes; without `takesAll` that takes quotes alone. */
export function closingQuote(source: string, from: number, quote: string, takesAll = false) {
  for (let at = from; at < source.length; at += 1) {
    if (source[at] === '\\' && (takesAll || source[at + 1] === quote)) at += 1
    else if (source[at] === quote) return at
  }
  return undefined
}
