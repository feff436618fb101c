import { COURSE } from '../delivery/retries.ts'
import { HOUR_MS, MINUTE_MS, MOST_SKEW_MS } from '../durations.ts'
import { faultName } from '../errors.ts'
import type { Clock, Host } from '../host.ts'
import { type Dispatch, OUT_OF_TIME, PAUSED } from './dispatch.ts'

/** A process that handles an hour and dies loses it after this; while it lives, it renews its claim every minute. */
const LEASE_MS = 3 * MINUTE_MS

export interface HourClaim {
  /** `2026-11-21T04` */
  readonly hour: string
  readonly leaseMs: number
}

/** Where all processes that share a store agree on who handles an hour. */
export interface HourStore {
  /** Takes an hour for `leaseMs`. `busy`: another process has it, until its lease ends. `handled`: its work is done. */
  claimHour(claim: HourClaim): Promise<'claimed' | 'busy' | 'handled'>
  /** Goes on holding a claimed hour. */
  keepHour(claim: HourClaim): Promise<void>
  forgetHoursAfter(hour: string): Promise<number>
  /** Ends a claim: the hour's work is done, or the hour can be taken again at once. */
  endHour(hour: string, done: boolean): Promise<void>
}

export interface HoursOptions extends Pick<Host, 'log'> {
  readonly store: HourStore
  readonly clock: Pick<Clock, 'now'>
  /** One hour's work; `stopped`: the signal ended it before all was done. */
  readonly run: (signal: AbortSignal) => Promise<'done' | 'stopped'>
  /** Work that must not wait for the next hour: called each minute in which no hour begins. */
  readonly minute?: (signal: AbortSignal) => Promise<void>
  readonly onDone?: (hour: string) => void
  /** Until the clock may be taken for right, nothing is concluded from hours that were handled later than now. */
  readonly isClockSure?: () => boolean
  /** Called when the clock was set back over an hour, until it resolves. */
  readonly onSetBack?: () => Promise<void>
  /** Called when an hour failed. It is tried again at the next tick. */
  readonly onFault: (error: unknown, hour: string) => void
}

/**
 * Runs each hour's work once. The hour is claimed in the store and marked as handled only when its work is done: two
 * processes never both run it, a late start catches up once, and an hour whose run failed or was killed is run again.
 * Hours recorded before the clock was set back are still to come: they are forgotten.
 */
export function createHours(options: HoursOptions) {
  const { store, clock, log, run, minute, onDone, isClockSure = () => true, onSetBack, onFault } = options
  const stopping = new AbortController()
  let handled = ''
  let claimed: string | undefined
  let isSetBack = false
  let running: Promise<void> | undefined

  async function handle(hour: string): Promise<void> {
    try {
      const hours = isClockSure() ? await store.forgetHoursAfter(hourAt(clock.now() + MOST_SKEW_MS)) : 0
      const again =
        'the clock was set back: hours that it had counted already run again when they come, and lessons that it put off are planned anew'
      if (hours > 0) log.warn('clock_set_back', again, { hour, hours })
      isSetBack ||= hours > 0
      if (isSetBack) await onSetBack?.()
      isSetBack = false
      const found = await store.claimHour({ hour, leaseMs: LEASE_MS })
      if (found === 'handled') handled = hour
      if (found !== 'claimed') return
      claimed = hour
      log.info('schedule_hour', 'an hour of the schedule begins', { hour })
      const done = (await run(stopping.signal)) === 'done'
      await store.endHour(hour, done)
      if (done) {
        handled = hour
        onDone?.(hour)
      }
    } catch (error) {
      const failed = 'an hour of the schedule failed and is tried again in a minute'
      log.error('schedule_failed', failed, { hour, fault: faultName(error) })
      onFault(error, hour)
      // Another process may hold an hour that this one could not claim. If the store cannot be reached, the lease ends by itself.
      if (claimed === hour) await store.endHour(hour, false).catch(() => {})
    } finally {
      claimed = undefined
    }
  }
  const hourNow = () => hourAt(clock.now())

  async function look(): Promise<void> {
    for (let hour = hourNow(); hour !== handled; hour = hourNow()) {
      if (stopping.signal.aborted) return
      await handle(hour)
      // Work that took until the hour ended leaves the rest to the next one, which begins at once.
      if (handled !== hour || hourNow() === hour) return
    }
    if (stopping.signal.aborted) return
    await minute?.(stopping.signal).catch((error: unknown) => {
      const failed = 'what was due in this minute could not be sent; the next minute tries again'
      log.warn('minute_failed', failed, { fault: faultName(error) })
    })
  }
  return {
    /** Looks whether there is work; call it every minute. Resolves when the work is done. */
    tick(): Promise<void> {
      const hour = claimed
      if (hour !== undefined)
        store.keepHour({ hour, leaseMs: LEASE_MS }).catch((error: unknown) => {
          const lost = 'an hour of the schedule could not be held for longer'
          log.warn('schedule_hour_not_held', lost, { hour, fault: faultName(error) })
        })
      running ??= look().finally(() => {
        running = undefined
      })
      return running
    },
    async stop(): Promise<void> {
      stopping.abort(new Error('the daemon stops'))
      await running
    },
  }
}

const hourAt = (ms: number) => new Date(ms).toISOString().slice(0, 13)

/** How long one call of the schedule goes on: what it sent is counted in metrics when it ends. */
const CALL_MS = 5 * MINUTE_MS
/** A provider that cannot be reached, or refuses us, is left alone for as long as a lesson waits for its first retry. */
const QUIET_MS = COURSE.pauseMs(0, 0)

/** Decides when the schedule sends: what is due leaves within a minute, and of what is overdue one lesson an hour to each enrolment. */
export function createWakes(input: {
  readonly dispatch: Dispatch
  readonly isDue: () => Promise<boolean>
  readonly clock: Pick<Clock, 'now' | 'monotonic'>
}) {
  const { dispatch, isDue, clock } = input
  let quietUntil = Number.NEGATIVE_INFINITY
  const hourNow = () => Math.floor(clock.now() / HOUR_MS)

  async function send(signal: AbortSignal): Promise<void> {
    const hour = hourNow()
    while (hourNow() === hour && !signal.aborted) {
      const forMs = Math.min(CALL_MS, HOUR_MS - (clock.now() % HOUR_MS))
      const { reason } = await dispatch({ limit: Number.POSITIVE_INFINITY, gentle: true, forMs, signal })
      if (reason === OUT_OF_TIME) continue
      if (reason !== undefined && reason !== PAUSED) quietUntil = clock.monotonic() + QUIET_MS
      return
    }
  }
  return {
    /** Sends what is due, until nothing is left or the hour ends. */
    hour: send,
    /** Does so if anything is due. Call it every minute. */
    async minute(signal: AbortSignal): Promise<void> {
      if (clock.monotonic() >= quietUntil && (await isDue())) await send(signal)
    },
  }
}
