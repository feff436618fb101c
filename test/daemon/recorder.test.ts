import { expect, test } from 'vitest'
import { silentLog } from '../../src/core/log.ts'
import { openSqliteHistory } from '../../src/core/store/sqlite/history.ts'
import { startRecorder } from '../../src/daemon/recorder.ts'

test('the recorder never sleeps for a negative time, however the clock moves between two reads', async () => {
  const slept: number[] = []
  const enough = Promise.withResolvers<void>()
  let now = 0
  // Each read of the clock takes 700 ms, so the due time passes between any two of them.
  const read = () => {
    now += 700
    return now
  }
  const recorder = startRecorder({
    health: [],
    neighbours: new Map(),
    history: openSqliteHistory(undefined),
    clock: {
      now: () => now,
      monotonic: read,
      sleep: async (ms) => {
        slept.push(ms)
        now += ms
        if (slept.length > 200) enough.resolve()
      },
    },
    log: silentLog,
    onRecorded: () => {},
  })
  await enough.promise
  await recorder.stop()
  expect(slept.filter((ms) => ms <= 0)).toEqual([])
})
