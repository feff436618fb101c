const joined = (word: string) => (names: readonly string[]) =>
  names.length < 2 ? names.join('') : `${names.slice(0, -1).join(', ')} ${word} ${names.at(-1)}`

/** `a`, `a and b`, `a, b and c`. */
export const and = joined('and')
/** `a`, `a or b`, `a, b or c`. */
export const or = joined('or')

/** `1 key`, `2 keys`. */
export function counted(count: number, noun: string, plural = 's'): string {
  return `${count} ${noun}${count === 1 ? '' : plural}`
}
