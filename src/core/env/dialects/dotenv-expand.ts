import { readDotenv } from './dotenv.ts'
import type { DialectResult } from './result.ts'
import { LONGEST_VALUE } from './template.ts'

type Look = (name: string) => string | undefined

const REFERENCE = /(?<!\\)\$\{([^{}]+)\}|(?<!\\)\$([A-Za-z_][A-Za-z0-9_]*)/
/** It replaces one reference after another, also in what it put there: a value that names itself would never end. */
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

/** Undefined: the value grows beyond any that a process could be given. */
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

/** `:?` is no operator there: the name is then not found, and nothing is put in its place. */
function resolve(operator: string | undefined, found: string | undefined, word: string): string {
  if (operator === ':-') return found || word
  if (operator === '-') return found ?? word
  if (operator === ':+') return found ? word : ''
  if (operator === '+') return found === undefined ? '' : word
  return found ?? ''
}
