import { describe, expect, onTestFinished, test } from 'vitest'
import { createHours } from '../../src/core/course/hours.ts'
import { DAY_MS, HOUR_MS, MINUTE_MS } from '../../src/core/durations.ts'
import { silentLog, systemClock, systemRandom } from '../../src/core/host.ts'
import { setReporter } from '../../src/core/reporting/facade.ts'
import type { Store } from '../../src/core/store/store.ts'
import { startDispatching, startSchedule } from '../../src/daemon/schedule.ts'
import { newStoreUrl, opened } from '../support/opened.ts'
import { addressOf, openTestStore } from '../support/stores.ts'
import { asked } from '../support/subscribers.ts'
import { testTransport } from '../support/test-transport.ts'

async function hours() {
  let now = Date.UTC(2026, 9, 25, 0, 59)
  const runs: string[] = []
  let work: (signal: AbortSignal) => Promise<'done' | 'stopped'> = async () => 'done'
  const address = await addressOf('sqlite')
  const openAt = () => openTestStore(address, () => now)
  /** A process that starts, does what is due now, and stops. */
  const look = async () => {
    await start(await openAt()).stop()
  }
  const start = (store: Store, onDone = (_: string) => {}) =>
    startSchedule({
      store,
      onDone,
      clock: { now: () => now },
      log: silentLog,
      run: async (signal) => {
        runs.push(new Date(now).toISOString().slice(0, 13))
        return work(signal)
      },
    })
  return {
    runs,
    look,
    start,
    store: openAt,
    works: (next: typeof work) => {
      work = next
    },
    pass: (ms: number) => {
      now += ms
    },
  }
}

test('an hour is handled once, however many processes start in it, also where the clock of one is a little behind', async () => {
  const { runs, look, pass } = await hours()
  await Promise.all([look(), look(), look()])
  await look()
  expect(runs).toHaveLength(1)
  for (const ms of [MINUTE_MS, -MINUTE_MS, MINUTE_MS]) {
    pass(ms)
    await look()
  }
  expect(runs).toHaveLength(2)
})

test('after a sleep of many hours it catches up once, also across a change of summer time, and a clock that steps back repeats nothing', async () => {
  const { runs, look, pass } = await hours()
  await look()
  pass(9 * HOUR_MS)
  await look()
  await look()
  pass(MINUTE_MS)
  await look()
  pass(-HOUR_MS)
  await look()
  expect(runs).toEqual(['2026-10-25T00', '2026-10-25T09', '2026-10-25T10'])
})

test('an hour whose work failed is run again a minute later, by any process', async () => {
  const reported: unknown[] = []
  setReporter({ report: (one) => void reported.push(one) })
  onTestFinished(() => setReporter(undefined))
  const { runs, look, pass, works } = await hours()
  works(async () => {
    throw new Error('the store was gone')
  })
  await look()
  works(async () => 'done')
  await look()
  await look()
  pass(HOUR_MS)
  await look()
  expect(runs).toEqual(['2026-10-25T00', '2026-10-25T00', '2026-10-25T01'])
  const fault = { kind: 'error', error: { message: 'the store was gone' } }
  expect(reported).toMatchObject([{ ...fault, context: { hour: '2026-10-25T00' } }])
})

test('the schedule stands still while the work of an hour fails, until it or another process has done it', async () => {
  const { store, look } = await hours()
  const first = await store()
  let [elapsed, wake] = [0, () => {}]
  const timer = {
    monotonic: () => elapsed,
    sleep: () => new Promise<void>((resolve) => (wake = resolve)),
  }
  let [now, isGone] = [Date.UTC(2026, 9, 25, 0, 59), true]
  const run = async () => {
    if (isGone) throw new Error('the store was gone')
    return 'done' as const
  }
  const clock = { now: () => now }
  const done = Promise.withResolvers<string>()
  const schedule = startSchedule({ timer, store: first, clock, log: silentLog, run, onDone: done.resolve })
  const later = async () => {
    await schedule.tick()
    await new Promise(setImmediate)
    elapsed += MINUTE_MS
    wake()
    await new Promise(setImmediate)
    await schedule.tick()
    await new Promise(setImmediate)
  }
  for (let minutes = 1; minutes < 21; minutes += 1) await later()
  // It has only begun, perhaps anew: that says nothing of whether it runs.
  expect(schedule.stalledMs()).toBeUndefined()
  await later()
  expect(schedule.stalledMs()).toBe(21 * MINUTE_MS)
  await look()
  await later()
  expect(schedule.stalledMs()).toBe(0)
  now += HOUR_MS
  await later()
  expect(schedule.stalledMs()).toBe(MINUTE_MS)
  isGone = false
  wake()
  await done.promise
  await new Promise(setImmediate)
  expect(schedule.stalledMs()).toBe(0)
  await schedule.stop()
})

test('an hour whose process stopped before its work was done is run again', async () => {
  const { runs, store, start, look, works } = await hours()
  const first = await store()
  works((signal) => new Promise((resolve) => signal.addEventListener('abort', () => resolve('stopped'))))
  const schedule = start(first)
  await expect.poll(() => runs.length).toBe(1)
  await schedule.stop()
  works(async () => 'done')
  await look()
  await look()
  expect(runs).toHaveLength(2)
})

test('an hour is reported as done only after the store has recorded it', async () => {
  const { store, start, pass } = await hours()
  const found = await store()
  const done: string[] = []
  const full = { ...found, endHour: () => Promise.reject(new Error('the disk is full')) }
  for (const one of [full, found, found]) {
    await start(one, (hour) => done.push(hour)).stop()
    pass(4 * MINUTE_MS)
  }
  expect(done).toEqual(['2026-10-25T01'])
})

test('an hour whose process was killed is run again three minutes later, and not while the process lives', async () => {
  const { runs, store, start, look, works, pass } = await hours()
  const first = await store()
  pass(60_000)
  works(() => new Promise(() => {}))
  const schedule = start(first)
  await expect.poll(() => runs.length).toBe(1)
  works(async () => 'done')
  pass(2 * 60_000)
  schedule.tick()
  pass(2 * 60_000)
  await look()
  expect(runs).toHaveLength(1)
  // From here on it neither looks nor ends, as after a SIGKILL.
  pass(2 * 60_000)
  await look()
  await look()
  expect(runs).toHaveLength(2)
})

test('a process without access to the store does not release an hour that another is running', async () => {
  const { runs, store, start, works } = await hours()
  const first = await store()
  works(() => new Promise(() => {}))
  start(first)
  await expect.poll(() => runs.length).toBe(1)
  const second = await store()
  await start({ ...second, claimHour: () => Promise.reject(new Error('not reached')) }).stop()
  works(async () => 'done')
  await start(second).stop()
  expect(runs).toHaveLength(1)
})

/** A daemon that has mailed the first lesson to somebody; gives how many lessons were mailed after a time of its clock. */
async function daemonAt(ahead: number) {
  let now = Date.UTC(2026, 10, 23, 10, 30)
  let elapsed = 0
  const clock = { ...systemClock, now: () => now }
  const keys: string[] = []
  const mailer = testTransport(async ({ key }) => {
    keys.push(key)
    return { kind: 'sent', id: key }
  })
  const { platform } = opened({ env: { STORE_URL: await newStoreUrl() }, mailer, clock })
  const timer = { ...systemClock, monotonic: () => elapsed }
  const host = { clock, timer, log: silentLog, random: systemRandom }
  const store = await platform.store()
  await store.course.requestConfirmation(asked('long-ago', now - 31 * DAY_MS))
  const start = async () => {
    const schedule = startDispatching(host, platform, store)
    onTestFinished(() => schedule.stop())
    return schedule
  }
  let schedule = await start()
  const pass = async (ms: number, realMs = 0) => {
    now += ms
    elapsed += realMs
    await schedule.tick()
    return new Set(keys).size
  }
  now += ahead
  await (await platform.course()).enrol({ spelling: 'a@example.com', identity: 'a@example.com' })
  expect(await pass(MINUTE_MS)).toBe(1)
  // What is old goes with the hour's work.
  expect(await store.course.findById('long-ago')).toBeUndefined()
  return {
    pass,
    async restart(ms: number) {
      await schedule.stop()
      now += ms
      schedule = await start()
    },
  }
}

test('somebody whom a daemon enrols under a clock three days ahead gets the second lesson a day after it is set back', async () => {
  const { pass } = await daemonAt(72 * HOUR_MS)
  expect(await pass(-72 * HOUR_MS, 10 * MINUTE_MS)).toBe(1)
  expect(await pass(23 * HOUR_MS)).toBe(1)
  expect(await pass(HOUR_MS)).toBe(2)
})

test('a clock that is years behind in the first minutes of a daemon changes no schedule', async () => {
  const years = 3 * 365 * 24 * HOUR_MS
  const { pass, restart } = await daemonAt(0)
  await restart(-years)
  expect(await pass(HOUR_MS, 9 * MINUTE_MS)).toBe(1)
  for (const ms of [years, HOUR_MS, HOUR_MS, 20 * HOUR_MS]) expect(await pass(ms, HOUR_MS)).toBe(1)
  expect(await pass(HOUR_MS)).toBe(2)
})

test('what a clock ahead has dated is dated anew once it is set back, and again until that succeeds', async () => {
  const { store } = await hours()
  let now = Date.UTC(2026, 10, 23, 10, 30)
  const told: string[] = []
  const daemon = createHours({
    store: await store(),
    clock: { now: () => now },
    log: silentLog,
    run: async () => {
      told.push('an hour')
      return 'done'
    },
    async onSetBack() {
      told.push('set back')
      if (told.length < 4) throw new Error('locked')
    },
    onFault: () => told.push('fault'),
  })
  for (const hours of [0, 72, -72, 0, 1, 1]) {
    now += hours * HOUR_MS
    await daemon.tick()
  }
  expect(told).toEqual(['an hour', 'an hour', 'set back', 'fault', 'set back', 'an hour', 'an hour'])
})

describe.each(['sqlite', 'postgres'] as const)('on %s', (kind) => {
  test.each([
    ['ahead and back', [3, 1, 1, -5]],
    ['days ahead and back', [72, 1, -73]],
    ['back for a day', [-24]],
    ['days back and ahead', [-50, 1, 49]],
  ])('a clock that was set %s never stops the schedule: the next hour runs, and once', async (_, steps) => {
    const address = await addressOf(kind)
    let now = Date.UTC(2026, 10, 23, 10, 30)
    let lease = 1_000_000
    const runs: string[] = []
    const told: unknown[] = []
    const daemons = await Promise.all(
      [1, 2].map(async () =>
        createHours({
          store: await openTestStore(address, () => lease),
          clock: { now: () => now },
          log: { ...silentLog, warn: (event) => void told.push(event) },
          run: async () => {
            runs.push(new Date(now).toISOString().slice(8, 13))
            return 'done'
          },
          onFault: (error) => void told.push(error),
        }),
      ),
    )
    /** A minute of real time, in which both daemons look. */
    const minute = async () => {
      now += MINUTE_MS
      lease += MINUTE_MS
      for (const daemon of daemons) await daemon.tick()
    }
    await minute()
    for (const hours of steps) {
      now += hours * HOUR_MS
      await minute()
      const before = runs.length
      for (let n = 0; n < 60; n += 1) await minute()
      expect(runs.slice(before)).toEqual([new Date(now).toISOString().slice(8, 13)])
    }
    expect(told).toEqual(steps.filter((hours) => hours < 0).map(() => 'clock_set_back'))
  })
})
