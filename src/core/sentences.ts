/** Makes a function that writes lists in a language: `web, API and agent`. */
export const lists = (word: string) => (names: readonly string[]) =>
  names.length < 2 ? names.join('') : `${names.slice(0, -1).join(', ')} ${word} ${names.at(-1)}`

/** `a`, `a and b`, `a, b and c`. */
export const and = lists('and')
/** `a`, `a or b`, `a, b or c`. */
export const or = lists('or')

/** `2026-11-21 08:00 UTC` */
export const minute = (ms: number) => `${new Date(ms).toISOString().slice(0, 16).replace('T', ' ')} UTC`

/** The beginning of a text, of at most this many UTF-16 units and never within a character; what was cut is an ellipsis. */
export function shortened(text: string, most: number): string {
  return text.length <= most ? text : `${text.slice(0, most - 1).replace(/[\uD800-\uDBFF]$/, '')}…`
}

/** `1 key`, `2 keys`. */
export function counted(count: number, noun: string, plural = 's'): string {
  return `${count} ${noun}${count === 1 ? '' : plural}`
}
