import { createHours, type Hours, type HoursOptions } from '../core/course/hours.ts'
import { MINUTE_MS } from '../core/durations.ts'
import { reportError } from '../core/reporting/facade.ts'

/** A timer may end a little before the minute does by the clock. */
const LEAST_MS = 1000

/** Starts the hourly schedule. It looks every minute, so that a sleep or a clock step costs a minute at the most. */
export function startSchedule(options: Omit<HoursOptions, 'onFault'>): Hours {
  const hours = createHours({ ...options, onFault: (error, hour) => reportError(error, { hour }) })
  let timer: NodeJS.Timeout
  const lookNextMinute = () => {
    timer = setTimeout(
      () => {
        lookNextMinute()
        hours.tick()
      },
      Math.max(LEAST_MS, MINUTE_MS - (options.clock.now() % MINUTE_MS)),
    )
  }
  lookNextMinute()
  hours.tick()
  return {
    tick: hours.tick,
    async stop() {
      clearTimeout(timer)
      await hours.stop()
    },
  }
}
