import path from 'node:path'
import { expect, test } from 'vitest'
import { silentLog } from '../../src/core/log.ts'
import { openStore } from '../../src/core/store/open.ts'
import { startSchedule } from '../../src/daemon/schedule.ts'
import { emptyFolder } from '../support/folder.ts'

const HOUR_MS = 60 * 60 * 1000

async function hours() {
  const file = path.join(await emptyFolder(), 'store.sqlite')
  let now = Date.UTC(2026, 9, 25, 0, 59)
  const runs: string[] = []
  /** A process that starts, does what is due now, and stops. */
  const look = async () => {
    const store = await openStore({ kind: 'sqlite', file })
    const schedule = startSchedule({
      store,
      clock: { now: () => now, monotonic: () => now, sleep: async () => {} },
      log: silentLog,
      run: async () => {
        runs.push(new Date(now).toISOString().slice(0, 13))
      },
    })
    await schedule.stop()
    await store.close()
  }
  return {
    runs,
    look,
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

test('a clock that steps back does not run an hour again', async () => {
  const { runs, look, pass } = await hours()
  await look()
  pass(HOUR_MS)
  await look()
  pass(-HOUR_MS)
  await look()
  expect(runs).toHaveLength(2)
})
