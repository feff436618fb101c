import { createTask } from 'node-cron'
import type { Clock } from '../core/clock.ts'
import type { Log } from '../core/log.ts'
import { reportError } from '../core/reporting/facade.ts'
import type { Store } from '../core/store/store.ts'

/** A process that handles an hour and dies loses it after this; each minute that it lives it holds it anew. */
const LEASE_MS = 3 * 60 * 1000

export interface ScheduleOptions {
  readonly store: Pick<Store, 'claimHour' | 'keepHour' | 'endHour'>
  readonly clock: Clock
  readonly log: Log
  /** One hour's work; `stopped`: the signal ended it before all was done. */
  readonly run: (signal: AbortSignal) => Promise<'done' | 'stopped'>
  /** What must not wait for the next hour: asked each minute in which no hour begins. */
  readonly retry?: (signal: AbortSignal) => Promise<void>
}

/**
 * Starts the hourly schedule. It looks every minute, so that a sleep or a clock step costs a minute at the most. The
 * hour is claimed in the store and marked as handled only when its work is done: two processes never both run it, a
 * late start catches up once, and an hour whose run failed or whose process was killed is run again.
 */
export function startSchedule({ store, clock, log, run, retry }: ScheduleOptions): {
  /** Looks now, as every minute. */
  tick(): void
  stop(): Promise<void>
} {
  const stopping = new AbortController()
  let handled = ''
  let claimed: string | undefined
  let running: Promise<void> | undefined

  const told = (hour: string, error: unknown) => {
    log.error('schedule_failed', 'an hour of the schedule failed and is tried again in a minute', {
      hour,
      fault: error instanceof Error ? error.name : 'unknown',
    })
    reportError(error, { hour })
  }
  const look = async (): Promise<void> => {
    const hour = new Date(clock.now()).toISOString().slice(0, 13)
    if (stopping.signal.aborted) return
    if (hour === handled) {
      await retry?.(stopping.signal).catch((error: unknown) =>
        log.warn(
          'retry_failed',
          'what was due for another attempt could not be tried; the next minute tries again',
          {
            fault: error instanceof Error ? error.name : 'unknown',
          },
        ),
      )
      return
    }
    try {
      const found = await store.claimHour({ hour, now: clock.now(), leaseMs: LEASE_MS })
      if (found === 'handled') handled = hour
      if (found !== 'claimed') return
      claimed = hour
      log.info('schedule_hour', 'an hour of the schedule begins', { hour })
      const done = (await run(stopping.signal)) === 'done'
      await store.endHour(hour, done)
      if (done) handled = hour
    } catch (error) {
      told(hour, error)
      // If the store cannot be reached, the lease ends by itself.
      await store.endHour(hour, false).catch(() => {})
    } finally {
      claimed = undefined
    }
  }
  const tick = () => {
    if (claimed !== undefined)
      store.keepHour({ hour: claimed, now: clock.now(), leaseMs: LEASE_MS }).catch((error: unknown) =>
        log.warn('schedule_hour_not_held', 'an hour of the schedule could not be held for longer', {
          hour: claimed,
          fault: error instanceof Error ? error.name : 'unknown',
        }),
      )
    running ??= look().finally(() => {
      running = undefined
    })
  }
  const task = createTask('* * * * *', tick, { timezone: 'UTC' })
  task.start()
  tick()
  return {
    tick,
    async stop() {
      stopping.abort(new Error('the daemon stops'))
      await task.destroy()
      await running
    },
  }
}
