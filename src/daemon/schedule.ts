import { createTask } from 'node-cron'
import { type Clock, systemClock, type Timer } from '../core/clock.ts'
import { type Course, OUT_OF_TIME } from '../core/course/course.ts'
import { createHours, type Hours, type HoursOptions } from '../core/course/hours.ts'
import { HOUR_MS, MINUTE_MS } from '../core/durations.ts'
import type { Random } from '../core/random.ts'
import { reportError } from '../core/reporting/facade.ts'

/** How long one call goes on: what it sent is counted in metrics when it ends. */
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
  readonly course: Pick<Course, 'dispatch'>
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
  }
}

/** The beginnings of minutes. It is never started: a task of node-cron stops or spins when the clock is set. */
const MINUTES = createTask('* * * * *', () => {}, { timezone: 'UTC' })

/**
 * Starts the hourly schedule. It looks at the beginning of every minute; the wait is never longer than a minute, so
 * neither a sleep of the machine nor a step of its clock, however far, holds it up for longer.
 */
export function startSchedule({
  timer = systemClock,
  ...options
}: Omit<HoursOptions, 'onFault'> & { readonly timer?: Pick<Timer, 'sleep'> }): Hours {
  const hours = createHours({ ...options, onFault: (error, hour) => reportError(error, { hour }) })
  const stopping = new AbortController()
  async function run(): Promise<void> {
    while (!stopping.signal.aborted) {
      void hours.tick()
      const [next] = MINUTES.getNextRuns(1)
      const wait = (next?.getTime() ?? 0) - Date.now()
      await timer.sleep(Math.min(MINUTE_MS, Math.max(1, wait)), stopping.signal).catch(() => {})
    }
  }
  void run()
  return {
    tick: hours.tick,
    async stop() {
      stopping.abort(new Error('the daemon stops'))
      await hours.stop()
    },
  }
}
