import { HOUR_MS, MINUTE_MS } from '../durations.ts'
import type { Clock } from '../host.ts'

export interface DispatchProgress {
  readonly subscription: string
  readonly day: number
  readonly outcome: 'sent' | 'failed' | 'unknown'
}

export interface DispatchCall {
  readonly limit: number
  /** Calls of one run send at most one message per subscription together; default: a run of its own. */
  readonly run?: string
  /** A lesson that was due already when the one before was sent waits for an hour, so that no outage ends in a burst. */
  readonly gentle?: boolean
  /** Ends the call after this time, with the reason `OUT_OF_TIME` if lessons are left. */
  readonly forMs?: number
  readonly signal?: AbortSignal
  readonly onProgress?: (result: DispatchProgress) => void
}

export interface DispatchResult {
  readonly processed: number
  readonly sent: number
  readonly failed: number
  readonly unknown: number
  /** Lessons due that this call left. */
  readonly remaining: number
  /** Lessons that are due and wait for their next attempt, because one failed; absent when none does. */
  readonly waiting?: number
  /** ISO 8601: the first of those attempts. */
  readonly nextTryAt?: string
  /** Infinity for a run without one. */
  readonly limit: number
  readonly reason?: string
  readonly results: readonly {
    readonly subscription: string
    readonly day: number
    readonly sent: boolean
    readonly reason?: string
  }[]
}

/** Sends at most one message per subscription. Rejects with `store_not_persistent` on the in-memory store. */
export type Dispatch = (call: DispatchCall) => Promise<DispatchResult>

/** The reason of a dispatch call that ended because its time was over, with lessons left. */
export const OUT_OF_TIME = 'the time for one call is over'
/** The reason of a call that its caller or a shutdown ended, with lessons left. */
export const STOPPED = 'it was stopped before all that is due was sent'
/** CONTRACT §12: the reason of a call that sends nothing because its stream is paused. */
export const PAUSED = 'paused'

/** How long one call of the schedule goes on: what it sent is counted in metrics when it ends. */
const CALL_MS = 5 * MINUTE_MS
/** A provider that cannot be reached, or refuses us, is left alone for as long as a lesson waits for its first retry. */
const QUIET_MS = 5 * MINUTE_MS

/** Decides when the schedule sends: what is due leaves within a minute, and of what is overdue one lesson an hour to each enrolment. */
export function createWakes({
  course,
  isDue,
  clock,
}: {
  readonly course: () => Promise<{ readonly dispatch: Dispatch }>
  readonly isDue: () => Promise<boolean>
  readonly clock: Pick<Clock, 'now' | 'monotonic'>
}) {
  let quietUntil = Number.NEGATIVE_INFINITY
  const hourNow = () => Math.floor(clock.now() / HOUR_MS)

  async function send(signal: AbortSignal): Promise<void> {
    const { dispatch } = await course()
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
