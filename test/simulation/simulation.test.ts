import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { loadCore } from './core.ts'
import { misfits } from './planted.ts'
import { scenarioOf, shrink, tell } from './scenario.ts'
import { simulate } from './world.ts'

const project = fileURLToPath(new URL('../../', import.meta.url))
const core = await loadCore(project)

test('every planted bug still fits the source', async () => {
  expect(await misfits(project)).toEqual([])
})

test('scenarios full of faults break no invariant, and each seed replays byte for byte', async () => {
  let kills = 0
  // What is imported when it is first needed takes real time, during which virtual time would pass.
  await simulate(core, { ...scenarioOf(1), subscribers: 5, days: 8, courses: 3 })
  for (const [seed, courses] of [
    [1, 0],
    [6, 3],
  ] as const) {
    const scenario = { ...scenarioOf(seed), subscribers: 40, days: 8, courses }
    const [run, again] = [await simulate(core, scenario), await simulate(core, scenario)]
    expect(run.violations).toEqual([])
    expect(run.delivered).toBeGreaterThan(100)
    expect(again.digest).toBe(run.digest)
    kills += run.kills
  }
  expect(kills).toBeGreaterThan(0)
}, 120_000)

test('a violation is shrunk to one subscriber and a short trace', async () => {
  const dishonest: typeof core.openCourse = (options) =>
    core.openCourse({
      ...options,
      // Says that a claim holds without looking.
      store: { ...options.store, stillHolds: async () => true },
    })
  const broken = { ...core, openCourse: dishonest }
  let seed = 1
  const until = async () => {
    for (; ; seed += 1) {
      const small = { subscribers: 8, days: 8, dispatchers: 1, rarity: 1, courses: 0 }
      const scenario = { ...scenarioOf(seed), ...small, faults: ['unsubscribe'] as const }
      const run = await simulate(broken, scenario)
      if (run.violations.length > 0) return { scenario, run }
    }
  }
  const found = await shrink(broken, await until())
  expect(found.scenario.subscribers).toBeLessThan(8)
  const told = tell(found)
  expect(told).toMatch(/^VIOLATION: a lesson after an acknowledged unsubscribe\n/)
  expect(told.split('\n').length).toBeLessThan(50)
}, 120_000)
