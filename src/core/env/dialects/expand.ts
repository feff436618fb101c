/** What stands behind a dollar: a name, or a name in braces with a default or an alternative. */
interface Reference {
  readonly name: string
  readonly operator: ':-' | '-' | ':+' | '+' | undefined
  readonly word: string
  readonly end: number
}

/** Each line of a file may double the one before: no value that a process can take is longer. */
const LONGEST = 1024 * 1024

/**
 * Replaces `$NAME` and `${NAME:-default}` in one pass. A dollar that names nothing (`$2b`, `$(command)`) stays as it
 * stands: commands are never run. `escapes`: a backslash before a dollar keeps the dollar. Undefined: the value grows
 * beyond any that a process could be given.
 */
export function expand(
  value: string,
  look: (name: string) => string | undefined,
  escapes: boolean,
): string | undefined {
  let expanded = ''
  // The next closing brace, looked for once however many references wait for one.
  let brace = -1
  const closing = (from: number) => {
    if (brace < from) brace = value.indexOf('}', from)
    if (brace === -1) brace = Number.POSITIVE_INFINITY
    return brace
  }
  for (let at = 0; at < value.length; at += 1) {
    const char = value[at]
    if (char === '\\' && value[at + 1] === '$' && escapes) {
      expanded += '$'
      at += 1
      continue
    }
    const reference = char === '$' ? referenceAt(value, at + 1, closing) : undefined
    if (reference === undefined) {
      expanded += char
      continue
    }
    expanded += resolve(reference, look(reference.name))
    if (expanded.length > LONGEST) return undefined
    at = reference.end
  }
  return expanded
}

function resolve({ operator, word }: Reference, found: string | undefined): string {
  const set = operator?.startsWith(':') ? found !== undefined && found !== '' : found !== undefined
  if (operator === ':+' || operator === '+') return set ? word : ''
  return set ? (found ?? '') : word
}

function referenceAt(value: string, at: number, closing: (from: number) => number): Reference | undefined {
  const braced = value[at] === '{'
  const start = braced ? at + 1 : at
  let end = start
  while (end < value.length && (end === start ? /[A-Za-z_]/ : /[A-Za-z0-9_]/).test(value[end] ?? '')) end += 1
  const name = value.slice(start, end)
  if (name === '') return undefined
  if (!braced) return { name, operator: undefined, word: '', end: end - 1 }
  const close = closing(end)
  if (close > value.length) return undefined
  const rest = value.slice(end, close)
  const operator = ([':-', ':+', '-', '+'] as const).find((one) => rest.startsWith(one))
  if (operator === undefined && rest !== '') return undefined
  return { name, operator, word: rest.slice(operator?.length ?? 0), end: close }
}
