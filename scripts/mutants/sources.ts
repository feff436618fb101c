import { createHash } from 'node:crypto'
import { globSync, readFileSync } from 'node:fs'
import { EQUIVALENT } from './equivalent.ts'
import { type Mutant, mutantsOf } from './plant.ts'
import { isText, type Room } from './rooms.ts'

/** A mutant with its place, and the lines that it changes. */
export interface Planned {
  readonly file: string
  readonly room: Room
  readonly source: string
  readonly mutant: Mutant
  readonly line: number
  readonly before: string
  readonly after: string
  /** A key that changes when the source or the room's tests change. */
  readonly id: string
}

const digest = (...texts: readonly string[]) =>
  createHash('sha256').update(texts.join('\0')).digest('base64url')

const digests = new Map<string, string>()

/** Every mutant of a source file, but for the equivalent ones; of a file of texts, none. */
export function plannedOf(file: string, room: Room): Planned[] {
  if (isText(file)) return []
  const source = readFileSync(file, 'utf8')
  const tests = digests.get(room.name) ?? digestOfTests(room)
  digests.set(room.name, tests)
  return mutantsOf(file, source).flatMap((mutant) => {
    const line = source.slice(0, mutant.start).split('\n').length
    const from = source.lastIndexOf('\n', mutant.start - 1) + 1
    const to = source.indexOf('\n', mutant.end)
    const before = source.slice(from, to).trim()
    const after = (source.slice(from, mutant.start) + mutant.text + source.slice(mutant.end, to)).trim()
    if (EQUIVALENT.some((one) => file.endsWith(one.file) && one.before === before && one.after === after))
      return []
    const id = digest(tests, source, String(mutant.start), String(mutant.end), mutant.text)
    return { file, room, source, mutant, line, before, after, id }
  })
}

/** Some of them, in an order by the seed: the same ones as long as the sources are the same. */
export function shuffled(all: readonly Planned[], seed: string): Planned[] {
  return all
    .map((one) => ({
      one,
      key: digest(seed, one.file, String(one.mutant.start), String(one.mutant.end), one.mutant.text),
    }))
    .sort((a, b) => (a.key < b.key ? -1 : 1))
    .map(({ one }) => one)
}

function digestOfTests({ tests }: Room): string {
  return digest(
    ...globSync(tests.map((one) => (one.endsWith('.ts') ? one : `${one}/**/*.ts`)))
      .sort()
      .map((file) => readFileSync(file, 'utf8')),
  )
}
