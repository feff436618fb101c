import { globSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { learning } from '../../src/presets/learning/platform.ts'

const root = fileURLToPath(new URL('../..', import.meta.url))

/** Words of its trade, and the names of its providers: alone or as the beginning of a name. */
const TRADE =
  /(?<![a-z])(?:qubit|quantum|circuit|hardware|qpu|cloudqpu|cloudb|cloudmodel|hadamard|tutor|model_[abc])/gi

/** Groups of variables that only this platform has: no program but its preset reads them. */
const OWN_GROUPS = ['models', 'hardware', 'agent']
const VARIABLES = learning.contract.variables
  .filter(({ group }) => OWN_GROUPS.includes(group))
  .map(({ name }) => name)

/**
 * The words left. A property may be called `circuit_name` without being taken for somebody's name: the list of such
 * things is shared by the sanitizer of events and the scrubber of error reports, which knows no platform. Stores from
 * before there were several courses hold rows of the one that there was, and the store's schema names it.
 */
const KNOWN: readonly string[] = [
  'src/core/analytics/personal.ts: circuit',
  'src/core/course/definition.ts: quantum',
  'src/core/store/migrations.ts: quantum',
]

const sources = globSync('src/**/*.{ts,css,html}', { cwd: root })
  .map((file) => file.split(path.sep).join('/'))
  .filter((file) => !file.startsWith('src/presets/learning/'))

test('no source file outside the learning preset names a qubit, a circuit, a model provider or hardware', () => {
  expect(sources.length).toBeGreaterThan(300)
  expect(VARIABLES.length).toBeGreaterThan(0)
  const named = sources.flatMap((file) => {
    const text = readFileSync(path.join(root, file), 'utf8')
    return [
      ...[...text.matchAll(TRADE)].map(([word]) => word),
      ...VARIABLES.filter((name) => new RegExp(`\\b${name}\\b`).test(text)),
    ].map((word) => `${file}: ${word}`)
  })
  expect([...new Set(named)].toSorted()).toEqual(KNOWN)
})

test('the learning preset itself names them, so the search finds what it looks for', () => {
  const text = globSync('src/presets/learning/*.ts', { cwd: root })
    .map((file) => readFileSync(path.join(root, file), 'utf8'))
    .join('\n')
  for (const word of ['qubit', 'circuit', 'hardware', 'model_a', 'tutor'])
    expect([...text.matchAll(TRADE)].map(([found]) => found.toLowerCase())).toContain(word)
})

/** The kinds that the definition counts, and their names. */
const { contract, mails, events, courses } = learning
const COUNTS: readonly (readonly [count: number, word: string, of: RegExp])[] = [
  [contract.variables.length, 'sixty-six', /variable/i],
  [contract.group('hardware')?.variables.length ?? 0, 'thirteen', /variable|provider/i],
  [mails.definitions.length, 'fourteen', /mail|template/i],
  [events.length, 'fifteen', /event|kind/i],
  [courses[0]?.lessons.length ?? 0, 'seven', /lesson|course|\bday\b/i],
]

/** Numbers that are not such a count: how often a message is tried, how long a link works. */
const OTHER_NUMBERS: readonly RegExp[] = [
  /random\.bytes\(/,
  /--days 7/,
  /LINK|link works/,
  /aWeek|Sunday|% 7/,
]

test('no literal in the source repeats a count that the definition knows', () => {
  const found = sources
    // The words for numbers in the messages are how a count is said, whatever it is.
    .filter((file) => !/^src\/core\/messages|^src\/cli\/demo\/run\.ts|\/migrations\.ts$/.test(file))
    .flatMap((file) =>
      readFileSync(path.join(root, file), 'utf8')
        .split('\n')
        .filter((line) => !OTHER_NUMBERS.some((other) => other.test(line)))
        .flatMap((line) =>
          COUNTS.filter(
            ([count, word, of]) =>
              of.test(line) &&
              new RegExp(`(?<![\\w.§$/-])(?:${count}${word && `|${word}`})(?![\\w.-])`, 'i').test(line),
          ).map(() => `${file}: ${line.trim()}`),
        ),
    )
  expect([...new Set(found)]).toEqual([])
})
