import { COURSE } from '../delivery/retries.ts'
import { HOUR_MS, MINUTE_MS } from '../durations.ts'
import type { Clock } from '../host.ts'
import { type Dispatch, OUT_OF_TIME, PAUSED } from './dispatch.ts'

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
