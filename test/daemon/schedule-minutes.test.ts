import path from 'node:path'
import { expect, onTestFinished, test, vi } from 'vitest'
import { silentLog } from '../../src/core/host.ts'
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

test('the schedule stands still while its work hangs or fails again and again, and goes on with each part that is done', async () => {
  const store = await openStore({ kind: 'sqlite', file: path.join(await emptyFolder(), 'store.sqlite') })
  onTestFinished(() => store.close())
  vi.useFakeTimers({ now: Date.UTC(2026, 10, 21, 7, 57, 30) })
  onTestFinished(() => void vi.useRealTimers())
  let work: () => Promise<'done'> = async () => 'done'
  const schedule = startSchedule({
    store,
    clock: { now: () => Date.now() },
    log: silentLog,
    run: () => work(),
    minute: async () => {},
  })
  const stalledMinutes = async (minutes: number) => {
    await vi.advanceTimersByTimeAsync(minutes * 60_000)
    return Math.floor((schedule.stalledMs() ?? 0) / 60_000)
  }
  expect(await stalledMinutes(2)).toBe(0)
  // From eight o'clock on, each minute's attempt fails.
  work = () => Promise.reject(new Error('canary'))
  expect(await stalledMinutes(30)).toBeGreaterThanOrEqual(28)
  let end = (_: 'done') => {}
  work = () => new Promise((resolve) => (end = resolve))
  await stalledMinutes(1)
  end('done')
  expect(await stalledMinutes(2)).toBe(0)
  // The run of nine hangs; a call of the dispatcher that ends is progress.
  expect(await stalledMinutes(60)).toBeGreaterThanOrEqual(25)
  schedule.progressed()
  expect(await stalledMinutes(0)).toBe(0)
  end('done')
  await schedule.stop()
})
