import type { Assignment } from './reader.ts'

/**
 * A line that all readers take alike: a comment without a backslash, or a name with a value of printable ASCII that
 * holds no quote, dollar, hash, backslash or backtick.
 */
const PLAIN_LINE =
  /^(?:#[^\\\r]*|(?!__proto__=)[A-Za-z_][A-Za-z0-9_]*=(?:[!%&(-[\]-_a-~](?: *[!%&(-[\]-_a-~])*)?)?$/

/** A file of plain lines that names nothing twice: no reader can disagree, so none needs to be asked. Most files are. */
export function readsAlike(text: string, assignments: readonly Assignment[]): boolean {
  const unique = new Set(assignments.map(({ name }) => name)).size === assignments.length
  return unique && text.split('\n').every((line) => PLAIN_LINE.test(line))
}
