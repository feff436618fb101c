import { existsSync, globSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { parseSync } from 'oxc-parser'
import { openChild } from './child.ts'
import { isTestOf, type Planned, type Room } from './sources.ts'

/**
 * The fate of a mutant. `noticed`: a test of the room that imports the file, directly or indirectly, fails. `survived`:
 * all of these tests pass. `undecided`: those that ran in the time for one mutant pass, but not all of them ran.
 */
export type MutantOutcome = 'noticed' | 'survived' | 'undecided'

export interface Hunt {
  /** Undefined if the time of the whole hunt ran out. */
  readonly judge: (planned: Planned) => Promise<MutantOutcome | undefined>
  readonly close: () => Promise<void>
}

/** Estimated milliseconds of a test file that has not run yet, per import between it and the mutant. */
const THOUGHT = 1_000
const LONGEST = 20_000

/** Runs the tests of these rooms on mutants; a result counts until the file or the room's tests change. */
export function openHunt({
  rooms,
  fresh,
  until,
  eachMs,
}: {
  readonly rooms: readonly Room[]
  readonly fresh: boolean
  readonly until: number
  /** The time for one mutant: tests that could notice it run in order until their estimated times add up to this. */
  readonly eachMs: number
}): Hunt {
  const child = openChild(
    rooms.flatMap(({ tests }) => tests),
    () => until - Date.now(),
  )
  const importersOf = openImporters()
  const caches = new Map<string, Record<string, boolean>>()
  const took: Record<string, number> = {}
  const noticed = new Map<string, number>()
  const passing = new Set<string>()
  const broken = new Set<string>()
  let count = 0

  /**
   * Test files most likely to catch a mutant of this file: first those that caught others, the latest first; then those
   * named like it; then the fastest.
   */
  function inOrder(file: string, room: Room): { readonly test: string; readonly costMs: number }[] {
    const cost = new Map(
      [...importersOf(file)]
        .filter(([test]) => isTestOf(room, test) && !broken.has(test))
        .map(([test, distance]) => [test, took[test] ?? distance * THOUGHT]),
    )
    const namedLike = [file, path.posix.dirname(file)].map(testOf)
    const rank = (test: string) => noticed.get(`${file} ${test}`) ?? (namedLike.includes(test) ? 0.5 : 0)
    return [...cost]
      .map(([test, costMs]) => ({ test, costMs }))
      .sort((a, b) => rank(b.test) - rank(a.test) || a.costMs - b.costMs)
  }

  /** The tests that fit into the time for one mutant, and always at least the first. */
  function inTime(ordered: readonly { readonly test: string; readonly costMs: number }[]): string[] {
    let sum = 0
    return ordered
      .filter(({ costMs }, index) => {
        sum += costMs
        return index === 0 || sum <= eachMs
      })
      .map(({ test }) => test)
  }

  async function run(tests: readonly string[], planted?: Planned): Promise<string | undefined> {
    const limit = 30_000 + tests.reduce((sum, test) => sum + 3 * (took[test] ?? LONGEST), 0)
    const change = planted && {
      file: planted.file,
      source:
        planted.source.slice(0, planted.mutant.start) +
        planted.mutant.text +
        planted.source.slice(planted.mutant.end),
    }
    const ran = await child.run(tests, Math.max(1, Math.min(limit, until - Date.now())), change)
    if (ran === 'late') return 'late'
    Object.assign(took, ran.took)
    return ran.failed
  }

  async function hunt(planned: Planned): Promise<MutantOutcome | undefined> {
    const { file, room } = planned
    const ordered = inOrder(file, room)
    const tests = inTime(ordered)
    const failed = tests.length > 0 ? await run(tests, planned) : undefined
    if (Date.now() >= until) return
    if (failed === undefined) return tests.length === ordered.length ? 'survived' : 'undecided'
    if (failed !== 'late' && !passing.has(failed)) {
      if ((await run([failed])) !== undefined) {
        if (Date.now() >= until) return
        console.log(`${failed} fails without a mutant, and is left out`)
        broken.add(failed)
        return hunt(planned)
      }
      passing.add(failed)
    }
    noticed.set(`${file} ${failed}`, ++count)
    return 'noticed'
  }

  return {
    async judge(planned) {
      const at = path.join('node_modules/.cache/mutants', `${planned.room.name}.json`)
      const cache =
        caches.get(at) ??
        (existsSync(at) ? (JSON.parse(readFileSync(at, 'utf8')) as Record<string, boolean>) : {})
      caches.set(at, cache)
      const known = fresh ? undefined : cache[planned.id]
      if (known !== undefined) return known ? 'noticed' : 'survived'
      const result = await hunt(planned)
      if (result === undefined || result === 'undecided') return result
      cache[planned.id] = result === 'noticed'
      mkdirSync(path.dirname(at), { recursive: true })
      writeFileSync(at, JSON.stringify(cache))
      return result
    },
    close: child.close,
  }
}

const testOf = (source: string) => source.replace(/^src/, 'test').replace(/(?:\.ts)?$/, '.test.ts')

/** Every test file whose imports lead to a source file, each with the number of imports between them. */
export function openImporters(): (file: string) => ReadonlyMap<string, number> {
  const importers = new Map<string, string[]>()
  for (const importer of globSync('{src,test}/**/*.ts').map(posix))
    for (const file of importsOf(importer)) importers.set(file, [...(importers.get(file) ?? []), importer])
  return (file) => {
    const distances = new Map([[posix(file), 0]])
    for (const [next, distance] of distances)
      for (const importer of importers.get(next) ?? [])
        if (!distances.has(importer)) distances.set(importer, distance + 1)
    return new Map([...distances].filter(([one]) => one.endsWith('.test.ts')))
  }
}

function importsOf(file: string): string[] {
  const source = readFileSync(file, 'utf8')
  const { module } = parseSync(file, source)
  return [
    ...module.staticImports
      .filter(({ entries }) => entries.length === 0 || entries.some(({ isType }) => !isType))
      .map(({ moduleRequest }) => moduleRequest.value),
    ...module.staticExports.flatMap(({ entries }) =>
      entries.flatMap(({ isType, moduleRequest }) => (isType ? [] : (moduleRequest?.value ?? []))),
    ),
    ...module.dynamicImports.map(({ moduleRequest: { start, end } }) => source.slice(start + 1, end - 1)),
  ]
    .filter((request) => request.startsWith('.'))
    .map((request) => path.posix.join(path.posix.dirname(file), request))
    .filter((one) => existsSync(one))
}

const posix = (file: string) => file.split(path.sep).join('/')
