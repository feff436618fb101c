import { readDotenv } from './dotenv.ts'
import { expand } from './expand.ts'
import type { DialectResult } from './read.ts'

/**
 * dotenv-expand on top of dotenv: names seen so far and the machine's are replaced, also inside single quotes, and the
 * machine's value wins over the file's. One difference is deliberate: `$(…)`, which it runs, stays as it stands here.
 */
export function readDotenvExpand(text: string, machine: Readonly<Record<string, string>>): DialectResult {
  const values = new Map<string, string>()
  const ofMachine = (name: string) => (Object.hasOwn(machine, name) ? machine[name] : undefined)
  for (const [name, value] of readDotenv(text).values) {
    const known = ofMachine(name) ?? expand(value, (other) => ofMachine(other) ?? values.get(other), true)
    if (known === undefined) return { values: new Map(), rejected: true }
    values.set(name, known)
  }
  return { values, rejected: false }
}
