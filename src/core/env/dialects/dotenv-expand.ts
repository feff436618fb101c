import { readDotenv } from './dotenv.ts'
import type { DialectResult } from './result.ts'
import { LONGEST_VALUE } from './template.ts'

type Look = (name: string) => string | undefined

const REFERENCE = /(?<!\\)\$\{([^{}]+)\}|(?<!\\)\$([A-Za-z_][A-Za-z0-9_]*)/
/**
 * The most replacements in one value. dotenv-expand also replaces references in what it has inserted, so a
 * value that names itself would never end.
 */
const MOST_ROUNDS = 500

/**
 * dotenv-expand on top of dotenv: names seen so far and the machine's are replaced, also inside single quotes, and the
 * machine's value wins over the file's. One difference is deliberate: `$(…)`, which it runs, is left as it is.
 */
export function readDotenvExpand(text: string, machine: Readonly<Record<string, string>>): DialectResult {
  const values = new Map<string, string>()
  const written = readDotenv(text).values
  const ofMachine: Look = (name) => (Object.hasOwn(machine, name) ? machine[name] : undefined)
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
  for (let round = 0; round < MOST_ROUNDS; round += 1) {
    const match = REFERENCE.exec(expanded)
    if (match === null) break
    const reference = match[1] ?? match[2] ?? ''
    const operator = /:\+|\+|:-|-/.exec(reference)?.[0]
    const [name = '', ...words] = operator === undefined ? [reference] : reference.split(operator)
    // As in dotenv-expand: a dollar in it is read as a pattern of String.replace.
    expanded = expanded.replace(match[0], resolve(operator, look(name), words.join(operator)))
    if (expanded.length > LONGEST_VALUE) return undefined
    if (expanded === look(name)) break
  }
  return expanded
}

/**
 * The text that replaces a reference. dotenv-expand does not know `:?`: the name is then not found, and
 * nothing replaces it.
 */
function resolve(operator: string | undefined, found: string | undefined, word: string): string {
  if (operator === ':-') return found || word
  if (operator === '-') return found ?? word
  if (operator === ':+') return found ? word : ''
  if (operator === '+') return found === undefined ? '' : word
  return found ?? ''
}
