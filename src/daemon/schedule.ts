import { createTask } from 'node-cron'
import { systemClock, type Timer } from '../core/clock.ts'
import { createHours, type Hours, type HoursOptions } from '../core/course/hours.ts'
import { MINUTE_MS } from '../core/durations.ts'
import { reportError } from '../core/reporting/facade.ts'

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
    return hours.tick()
  }
  const begin = () => {
    const task = createTask('* * * * *', tick, { timezone: 'UTC' })
    task.start()
    void tick()
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
