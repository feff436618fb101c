import { type Clock, systemClock, type Timer } from '../core/clock.ts'
import { createHours, type Hours, type HoursOptions } from '../core/course/hours.ts'
import { MINUTE_MS } from '../core/durations.ts'
import { reportError } from '../core/reporting/facade.ts'

/**
 * Starts the hourly schedule. It looks at the beginning of every minute; the wait is never longer than a minute, so
 * neither a sleep of the machine nor a step of its clock, however far, holds it up for longer.
 */
export function startSchedule({
  timer = systemClock,
  ...options
}: Omit<HoursOptions, 'onFault'> & { readonly timer?: Pick<Timer, 'sleep'> }): Hours {
  const { clock } = options
  const hours = createHours({ ...options, onFault: (error, hour) => reportError(error, { hour }) })
  const stopping = new AbortController()
  async function run(): Promise<void> {
    while (!stopping.signal.aborted) {
      void hours.tick()
      await timer.sleep(untilNextMinute(clock), stopping.signal).catch(() => {})
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

function untilNextMinute({ now }: Pick<Clock, 'now'>): number {
  return MINUTE_MS - (now() % MINUTE_MS)
}
