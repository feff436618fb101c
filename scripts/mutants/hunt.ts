import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { openChild } from './child.ts'
import { openImporters } from './importers.ts'
import { isTestOf, type Room } from './rooms.ts'
import type { Planned } from './sources.ts'

export interface Hunt {
  /** Whether a test of the room that imports the file, directly or not, fails with the mutant; nothing if time ran out. */
  readonly isNoticed: (planned: Planned) => Promise<boolean | undefined>
  readonly close: () => Promise<void>
}

/** Milliseconds that a test file is thought to take, for each import between it and the mutant, until it has run. */
const THOUGHT = 1_000
const LONGEST = 20_000

/** Runs the tests of these rooms on mutants; a result counts until the file or the room's tests change. */
export function openHunt({
  rooms,
  fresh,
  until,
}: {
  readonly rooms: readonly Room[]
  readonly fresh: boolean
  readonly until: number
}): Hunt {
  const child = openChild(rooms.flatMap(({ tests }) => tests))
  const importersOf = openImporters()
  const caches = new Map<string, Record<string, boolean>>()
  const took: Record<string, number> = {}
  const noticed = new Map<string, number>()
  const passing = new Set<string>()
  const broken = new Set<string>()
  let count = 0

  /** Those that noticed another mutant of the file, the latest first; then the quickest. */
  function inOrder(file: string, room: Room): string[] {
    const cost = new Map(
      [...importersOf(file)]
        .filter(([test]) => isTestOf(room, test) && !broken.has(test))
        .map(([test, distance]) => [test, took[test] ?? distance * THOUGHT]),
    )
    const rank = (test: string) => noticed.get(`${file} ${test}`) ?? 0
    return [...cost.keys()].sort((a, b) => rank(b) - rank(a) || (cost.get(a) ?? 0) - (cost.get(b) ?? 0))
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

  async function hunt(planned: Planned): Promise<boolean | undefined> {
    const { file, room } = planned
    const tests = inOrder(file, room)
    const failed = tests.length > 0 ? await run(tests, planned) : undefined
    if (Date.now() >= until) return
    if (failed === undefined) return false
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
    return true
  }

  return {
    async isNoticed(planned) {
      const at = path.join('node_modules/.cache/mutants', `${planned.room.name}.json`)
      const cache =
        caches.get(at) ??
        (existsSync(at) ? (JSON.parse(readFileSync(at, 'utf8')) as Record<string, boolean>) : {})
      caches.set(at, cache)
      const known = fresh ? undefined : cache[planned.id]
      if (known !== undefined) return known
      const result = await hunt(planned)
      if (result === undefined) return
      cache[planned.id] = result
      mkdirSync(path.dirname(at), { recursive: true })
      writeFileSync(at, JSON.stringify(cache))
      return result
    },
    close: child.close,
  }
}
