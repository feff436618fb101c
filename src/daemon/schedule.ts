import { createTask } from 'node-cron'
import type { Clock } from '../core/clock.ts'
import type { Log } from '../core/log.ts'
import { reportError } from '../core/reporting/facade.ts'
import type { Store } from '../core/store/store.ts'

export interface ScheduleOptions {
  readonly store: Pick<Store, 'claimHour'>
  readonly clock: Clock
  readonly log: Log
  /** One hour's work; told to stop by the signal. */
  readonly run: (signal: AbortSignal) => Promise<void>
}

/**
 * The hourly schedule. It looks every minute, so that a sleep or a clock step costs a minute at the most; the hour is
 * claimed in the store, so that two processes never both run it and a late start catches up once.
 */
export function startSchedule({ store, clock, log, run }: ScheduleOptions): { stop(): Promise<void> } {
  const stopping = new AbortController()
  let handled = ''
  let running: Promise<void> | undefined

  const look = async (): Promise<void> => {
    const hour = new Date(clock.now()).toISOString().slice(0, 13)
    if (hour === handled || stopping.signal.aborted) return
    try {
      const ours = await store.claimHour(hour)
      handled = hour
      if (!ours) return
      log.info('schedule_hour', 'an hour of the schedule begins', { hour })
      await run(stopping.signal)
    } catch (error) {
      log.error('schedule_failed', 'an hour of the schedule failed and is tried again in a minute', {
        hour,
        fault: error instanceof Error ? error.name : 'unknown',
      })
      reportError(error, { hour })
      handled = ''
    }
  }
  const tick = () => {
    running ??= look().finally(() => {
      running = undefined
    })
  }
  const task = createTask('* * * * *', tick, { timezone: 'UTC' })
  task.start()
  tick()
  return {
    async stop() {
      stopping.abort(new Error('the daemon stops'))
      await task.destroy()
      await running
    },
  }
}
