import { createTask } from 'node-cron'
import { systemClock, type Timer } from '../core/clock.ts'
import { createHours, type Hours, type HoursOptions } from '../core/course/hours.ts'
import { MINUTE_MS } from '../core/durations.ts'
import { reportError } from '../core/reporting/facade.ts'

/** The beginnings of minutes. It is never started: a task of node-cron stops or spins when the clock is set. */
const MINUTES = createTask('* * * * *', () => {}, { timezone: 'UTC' })

/**
 * Starts the schedule. It looks at the beginning of every minute; the wait is never longer than a minute, so
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
