import { expect, test } from 'vitest'
import { type AnalyticsUsage, createBudget, REFUSALS } from '../../../src/core/analytics/store.ts'

const DAY = 86_400_000
const GB = 1024 ** 3
const NOON = Date.UTC(2026, 10, 21, 12)

/** A keeper with a budget of 1,000 bytes, 800 of them a day, over a usage of our choice. */
function keeper(usage: Partial<AnalyticsUsage> = {}) {
  const time = { now: NOON, passed: 0 }
  const state = { usage: { total: 0, today: 0, disk: undefined, ...usage } as AnalyticsUsage, reads: 0 }
  const store = {
    usage: async () => {
      state.reads += 1
      return state.usage
    },
  }
  const budget = createBudget(
    { now: () => time.now, monotonic: () => time.passed },
    { totalBytes: 1000, dailyBytes: 800 },
  )
  return { ...budget, time, state, ask: (client?: string) => budget.refusal(store, client), store }
}

test.each<[usage: Partial<AnalyticsUsage>, refusal: string | undefined]>([
  [{}, undefined],
  [{ total: 999 }, undefined],
  [{ total: 1000 }, 'total'],
  [{ today: 800 }, 'day'],
  [{ total: 1000, today: 800 }, 'total'],
  [{ disk: { free: GB, size: 100 * GB } }, undefined],
  [{ disk: { free: GB - 1, size: 100 * GB } }, 'disk'],
  [{ disk: { free: 199, size: 1000 } }, 'disk'],
  [{ total: 1000, today: 800, disk: { free: 0, size: 1000 } }, 'disk'],
])('with %j nothing is stored because of: %s', async (usage, refusal) => {
  const it = keeper(usage)
  expect(it.full()).toBeUndefined()
  expect(await it.ask('a')).toBe(refusal)
  expect(it.full()).toBe(refusal)
  expect(Object.keys(REFUSALS)).toEqual(expect.arrayContaining(refusal === undefined ? [] : [refusal]))
})

test('a client has an eighth of the day, and the others have theirs', async () => {
  const it = keeper()
  it.spend(99, 'a')
  expect(await it.ask('a')).toBeUndefined()
  it.spend(1, 'a')
  expect(await it.ask('a')).toBe('client')
  expect(await it.ask('b')).toBeUndefined()
  expect(await it.ask(undefined)).toBeUndefined()
})

test('a new day, and no time before it, gives a client its share back', async () => {
  const it = keeper()
  it.spend(100, 'a')
  it.time.now = NOON - (NOON % DAY) + DAY - 1
  expect(await it.ask('a')).toBe('client')
  it.time.now += 1
  expect(await it.ask('a')).toBeUndefined()
})

test('after 10,000 clients of a day the next ones share one share, and the earlier keep theirs', async () => {
  const it = keeper()
  for (let n = 0; n < 10_000; n += 1) it.spend(1, `client-${n}`)
  it.spend(60, 'late-1')
  expect(await it.ask('late-2')).toBeUndefined()
  it.spend(40, 'late-2')
  expect(await it.ask('late-3')).toBe('client')
  expect(await it.ask('client-9999')).toBeUndefined()
})

test('events stored here count at once, and usage is read again after ten seconds or on a new day', async () => {
  const it = keeper()
  await it.ask()
  it.spend(799, undefined)
  expect(await it.ask()).toBeUndefined()
  it.spend(1, undefined)
  expect([await it.ask(), it.state.reads]).toEqual(['day', 1])
  it.time.passed = 9999
  await it.ask()
  expect(it.state.reads).toBe(1)
  it.time.passed = 10_000
  expect([await it.ask(), it.state.reads]).toEqual([undefined, 2])
  it.time.now += DAY
  await it.ask()
  expect(it.state.reads).toBe(3)
})

test('room on the disk shrinks with what is stored', async () => {
  const it = keeper({ disk: { free: 210, size: 1000 } })
  expect(await it.ask()).toBeUndefined()
  it.spend(10, undefined)
  expect(await it.ask()).toBeUndefined()
  it.spend(1, undefined)
  expect(await it.ask()).toBe('disk')
})

test('the budget of yesterday does not fill today, and that of everything does', async () => {
  const it = keeper({ today: 800 })
  await it.ask()
  it.time.now += DAY
  expect(it.full()).toBeUndefined()
  const all = keeper({ total: 1000 })
  await all.ask()
  all.time.now += DAY
  expect(all.full()).toBe('total')
})

test('a look reads the usage anew', async () => {
  const it = keeper({ total: 5 })
  expect((await it.look(it.store)).total).toBe(5)
  it.state.usage = { ...it.state.usage, total: 1000 }
  expect((await it.look(it.store)).total).toBe(1000)
  expect(it.full()).toBe('total')
})
