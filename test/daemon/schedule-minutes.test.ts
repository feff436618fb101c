import path from 'node:path'
import { expect, onTestFinished, test, vi } from 'vitest'
import { silentLog } from '../../src/core/log.ts'
import { openStore } from '../../src/core/store/open.ts'
import { startSchedule } from '../../src/daemon/schedule.ts'
import { emptyFolder } from '../support/folder.ts'

test('the schedule looks at once and then every minute, and no more after it has stopped', async () => {
  const store = await openStore({ kind: 'sqlite', file: path.join(await emptyFolder(), 'store.sqlite') })
  onTestFinished(() => store.close())
  vi.useFakeTimers({ now: Date.UTC(2026, 10, 21, 7, 57, 30) })
  onTestFinished(() => void vi.useRealTimers())
  const hours: string[] = []
  const retries: string[] = []
  const at = () => new Date().toISOString().slice(11, 16)
  const schedule = startSchedule({
    store,
    clock: { now: () => Date.now() },
    log: silentLog,
    run: async () => {
      hours.push(at())
      return 'done'
    },
    minute: async () => void retries.push(at()),
  })
  await vi.advanceTimersByTimeAsync(5 * 60_000)
  expect(hours).toEqual(['07:57', '08:00'])
  expect(retries).toEqual(['07:58', '07:59', '08:01', '08:02'])
  await schedule.stop()
  await vi.advanceTimersByTimeAsync(3 * 60 * 60_000)
  expect(hours).toHaveLength(2)
  expect(retries).toHaveLength(4)
  expect(vi.getTimerCount()).toBe(0)
})

test('the schedule goes on within a minute after its clock was set hours or years ahead, or back', async () => {
  const store = await openStore({ kind: 'sqlite', file: path.join(await emptyFolder(), 'store.sqlite') })
  onTestFinished(() => store.close())
  const start = Date.UTC(2026, 10, 21, 7, 57, 30)
  vi.useFakeTimers({ now: start })
  onTestFinished(() => void vi.useRealTimers())
  let looks = 0
  const schedule = startSchedule({
    store,
    clock: { now: () => Date.now() },
    log: silentLog,
    run: async () => {
      looks += 1
      return 'done'
    },
    minute: async () => {
      looks += 1
    },
  })
  await vi.advanceTimersByTimeAsync(60_000)
  for (const to of [start + 3 * 3_600_000, start, Date.UTC(2040, 1, 1), 0, start]) {
    vi.setSystemTime(to)
    looks = 0
    await vi.advanceTimersByTimeAsync(3 * 60_000)
    expect(looks).toBeGreaterThanOrEqual(2)
  }
  await schedule.stop()
})
