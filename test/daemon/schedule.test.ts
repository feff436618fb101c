import path from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { silentLog } from '../../src/core/log.ts'
import { openStore } from '../../src/core/store/open.ts'
import type { Store } from '../../src/core/store/store.ts'
import { startSchedule } from '../../src/daemon/schedule.ts'
import { emptyFolder } from '../support/folder.ts'

const HOUR_MS = 60 * 60 * 1000

async function hours() {
  const file = path.join(await emptyFolder(), 'store.sqlite')
  let now = Date.UTC(2026, 9, 25, 0, 59)
  const runs: string[] = []
  let work: (signal: AbortSignal) => Promise<'done' | 'stopped'> = async () => 'done'
  /** A process that starts, does what is due now, and stops. */
  const look = async () => {
    const store = await openStore({ kind: 'sqlite', file })
    await start(store).stop()
    await store.close()
  }
  const start = (store: Store) =>
    startSchedule({
      store,
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
    store: () => openStore({ kind: 'sqlite', file }),
    works: (next: typeof work) => {
      work = next
    },
    pass: (ms: number) => {
      now += ms
    },
  }
}

test('an hour is handled once, however many processes start in it', async () => {
  const { runs, look } = await hours()
  await Promise.all([look(), look(), look()])
  await look()
  expect(runs).toHaveLength(1)
})

test('after a sleep of many hours it catches up once, also across a change of summer time', async () => {
  const { runs, look, pass } = await hours()
  await look()
  pass(9 * HOUR_MS)
  await look()
  await look()
  pass(60_000)
  await look()
  expect(runs).toEqual(['2026-10-25T00', '2026-10-25T09', '2026-10-25T10'])
})

test('a clock that steps back does not repeat an hour’s run', async () => {
  const { runs, look, pass } = await hours()
  await look()
  pass(HOUR_MS)
  await look()
  pass(-HOUR_MS)
  await look()
  expect(runs).toHaveLength(2)
})

test('an hour whose work failed is run again a minute later, by any process', async () => {
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
})

test('an hour whose process stopped before its work was done is run again', async () => {
  const { runs, store, start, look, works } = await hours()
  const first = await store()
  onTestFinished(() => first.close())
  works((signal) => new Promise((resolve) => signal.addEventListener('abort', () => resolve('stopped'))))
  const schedule = start(first)
  await expect.poll(() => runs.length).toBe(1)
  await schedule.stop()
  works(async () => 'done')
  await look()
  await look()
  expect(runs).toHaveLength(2)
})

test('an hour whose process was killed is run again three minutes later, and not while the process lives', async () => {
  const { runs, store, start, look, works, pass } = await hours()
  const first = await store()
  onTestFinished(() => first.close())
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
  onTestFinished(() => first.close())
  works(() => new Promise(() => {}))
  start(first)
  await expect.poll(() => runs.length).toBe(1)
  const second = await store()
  onTestFinished(() => second.close())
  await start({ ...second, claimHour: () => Promise.reject(new Error('not reached')) }).stop()
  works(async () => 'done')
  await start(second).stop()
  expect(runs).toHaveLength(1)
})
