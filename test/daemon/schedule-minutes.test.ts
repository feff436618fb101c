import { expect, onTestFinished, test, vi } from 'vitest'
import { silentLog } from '../../src/core/host.ts'
import { startSchedule } from '../../src/daemon/schedule.ts'
import { addressOf, openTestStore } from '../support/stores.ts'

const START = Date.UTC(2026, 10, 21, 7, 57, 30)

/** A schedule under a clock that stands still, and when its hours and minutes ran; `work` is that of an hour. */
async function scheduled(work: () => Promise<'done'> = async () => 'done') {
  const store = await openTestStore(await addressOf('sqlite'))
  vi.useFakeTimers({ now: START })
  onTestFinished(() => void vi.useRealTimers())
  const hours: string[] = []
  const minutes: string[] = []
  const at = () => new Date().toISOString().slice(11, 16)
  const schedule = startSchedule({
    store,
    clock: { now: () => Date.now() },
    log: silentLog,
    run: () => {
      hours.push(at())
      return work()
    },
    minute: async () => void minutes.push(at()),
  })
  return { ...schedule, hours, minutes, pass: (many: number) => vi.advanceTimersByTimeAsync(many * 60_000) }
}

test('the schedule looks at once and then every minute, and no more after it has stopped', async () => {
  const { hours, minutes, pass, stop } = await scheduled()
  await pass(5)
  expect(hours).toEqual(['07:57', '08:00'])
  expect(minutes).toEqual(['07:58', '07:59', '08:01', '08:02'])
  await stop()
  await pass(3 * 60)
  expect([hours.length, minutes.length]).toEqual([2, 4])
  expect(vi.getTimerCount()).toBe(0)
})

test('the schedule goes on within a minute after its clock was set hours or years ahead, or back', async () => {
  const { hours, minutes, pass, stop } = await scheduled()
  await pass(1)
  for (const to of [START + 3 * 3_600_000, START, Date.UTC(2040, 1, 1), 0, START]) {
    vi.setSystemTime(to)
    const before = hours.length + minutes.length
    await pass(3)
    expect(hours.length + minutes.length - before).toBeGreaterThanOrEqual(2)
  }
  await stop()
})

test('the schedule stands still while its work hangs or fails again and again, and goes on with each part that is done', async () => {
  let work: () => Promise<'done'> = async () => 'done'
  const { pass, stop, stalledMs, progressed } = await scheduled(() => work())
  const stalledMinutes = async (minutes: number) => {
    await pass(minutes)
    return Math.floor((stalledMs() ?? 0) / 60_000)
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
  progressed()
  expect(await stalledMinutes(0)).toBe(0)
  end('done')
  await stop()
})
