type Look = (name: string) => string | undefined

/** `$$`, `$NAME`, `${NAME}` with an operator and a word that reaches to the last brace of the line, or a brace that fits none. */
const REFERENCE = /\$(?:(\$)|([_a-z][_a-z0-9]*)|\{(?:([_a-z][_a-z0-9]*(?::?[-+?].*)?)\}|()))/gi

/** The longest value, in characters: each line of a file may double the one before, and no process can take more. */
export const LONGEST_VALUE = 1024 * 1024

/**
 * The template of compose-go applied to a text. Undefined: it refuses the file, for braces that it cannot read, for
 * `${NAME:?message}` without a value, or for a value that grows beyond any that a process could be given.
 */
export function substitute(text: string, look: Look): string | undefined {
  let refused = false
  let length = text.length
  const result = text.replace(REFERENCE, (whole, escaped, named, braced) => {
    if (refused) return ''
    if (escaped !== undefined) return '$'
    const value = named !== undefined ? (look(named) ?? '') : braced && bracedValue(whole, look)
    length += value?.length ?? 0
    refused = value === undefined || length > LONGEST_VALUE
    return refused ? '' : value
  })
  return refused ? undefined : result
}

function bracedValue(whole: string, look: Look): string | undefined {
  const close = firstClosing(whole)
  const [, name = '', operator = '', word = ''] =
    /^([_a-z][_a-z0-9]*)(:?[-+?])?(.*)$/is.exec(whole.slice(2, close)) ?? []
  const found = look(name)
  const set = found !== undefined && (found !== '' || !operator.startsWith(':'))
  const wanted = operator.endsWith('+') ? set : !set && operator !== ''
  const value = wanted ? substitute(word, look) : (found ?? '')
  const rest = substitute(whole.slice(close + 1), look)
  if (value === undefined || rest === undefined || (wanted && operator.endsWith('?'))) return undefined
  return value + rest
}

/** The brace that closes the first one; those inside are counted. */
function firstClosing(text: string): number {
  let open = 0
  for (let at = 0; at < text.length; at += 1) {
    if (text[at] === '}') {
      open -= 1
      if (open === 0) return at
    } else if (text[at] === '{') {
      open += 1
      at += 1
    }
  }
  return text.length - 1
}
