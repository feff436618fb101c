import { createTask } from 'node-cron'
import { createHours, type Hours, type HoursOptions } from '../core/course/hours.ts'
import { reportError } from '../core/reporting/facade.ts'

/** Starts the hourly schedule. It looks every minute, so that a sleep or a clock step costs a minute at the most. */
export function startSchedule(options: Omit<HoursOptions, 'onFault'>): Hours {
  const hours = createHours({ ...options, onFault: (error, hour) => reportError(error, { hour }) })
  const task = createTask('* * * * *', hours.tick, { timezone: 'UTC' })
  task.start()
  hours.tick()
  return {
    tick: hours.tick,
    async stop() {
      await Promise.all([task.destroy(), hours.stop()])
    },
  }
}
