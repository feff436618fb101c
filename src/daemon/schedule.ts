import { createTask } from 'node-cron'
import { type Clock, systemClock, type Timer } from '../core/clock.ts'
import { type Course, OUT_OF_TIME } from '../core/course/course.ts'
import { createHours, type Hours, type HoursOptions } from '../core/course/hours.ts'
import { HOUR_MS, MINUTE_MS } from '../core/durations.ts'
import type { Random } from '../core/random.ts'
import { reportError } from '../core/reporting/facade.ts'

/** How long one call goes on before failed confirmations have their turn. */
const CALL_MS = 5 * MINUTE_MS

/**
 * Sends what is due, at most one message for each subscription, until nothing is left or the hour ends: what a slow pace
 * leaves is the next hour's.
 */
export async function sendThisHour({
  course,
  clock,
  random,
  signal,
}: {
  readonly course: Pick<Course, 'dispatch' | 'retryConfirmations'>
  readonly clock: Pick<Clock, 'now'>
  readonly random: Random
  readonly signal: AbortSignal
}): Promise<void> {
  const run = Buffer.from(random.bytes(9)).toString('base64url')
  const hourNow = () => Math.floor(clock.now() / HOUR_MS)
  const hour = hourNow()
  while (hourNow() === hour && !signal.aborted) {
    const forMs = Math.min(CALL_MS, HOUR_MS - (clock.now() % HOUR_MS))
    const { reason } = await course.dispatch({ limit: Number.POSITIVE_INFINITY, run, forMs, signal })
    if (reason !== OUT_OF_TIME) return
    await course.retryConfirmations(signal)
  }
}

/** Always contains the beginning of a minute, at which a running task ticks. */
const WATCH_MS = MINUTE_MS + 5000

/**
 * Starts the hourly schedule, which looks at the beginning of every minute. A task of node-cron waits for a time of the
 * wall clock, and once that is set back it waits until the time comes again. A task that misses its minute is replaced.
 */
export function startSchedule({
  timer = systemClock,
  ...options
}: Omit<HoursOptions, 'onFault'> & { readonly timer?: Pick<Timer, 'sleep'> }): Hours {
  const hours = createHours({ ...options, onFault: (error, hour) => reportError(error, { hour }) })
  const stopping = new AbortController()
  let ticked = true
  const tick = () => {
    ticked = true
    void hours.tick()
  }
  const begin = () => {
    const task = createTask('* * * * *', tick, { timezone: 'UTC' })
    task.start()
    tick()
    return task
  }
  let task = begin()
  async function watch(): Promise<void> {
    while (!stopping.signal.aborted) {
      ticked = false
      await timer.sleep(WATCH_MS, stopping.signal).catch(() => {})
      if (ticked || stopping.signal.aborted) continue
      await task.destroy()
      task = begin()
    }
  }
  const watching = watch()
  return {
    tick: hours.tick,
    async stop() {
      stopping.abort(new Error('the daemon stops'))
      await watching
      await Promise.all([task.destroy(), hours.stop()])
    },
  }
}
