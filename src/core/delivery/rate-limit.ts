import { createSemaphore } from '../calls.ts'
import type { Timer } from '../host.ts'

/** A provider that limits our rate for no longer is waited for, and gets one message after the other for a while. */
const BRIEF_MS = 10_000
const MOST_LIMITS = 5

/** A run's messages while the provider limits our rate: one at a time, until it has taken enough of them. */
export function createRateLimit(timer: Timer) {
  const oneByOne = createSemaphore(1)
  /** When the provider may be asked again, and how many that came alone it has refused in a row, or taken. */
  let limit: { readonly until: number; readonly inARow: number; readonly taken: number } | undefined
  /** How many messages it has to take one at a time; twice as many after each further limit. */
  let enough = 25
  return {
    limit: () => limit,
    inTurn: <T>(attempt: (isAlone: boolean) => Promise<T>): Promise<T> =>
      limit ? oneByOne(() => attempt(true)) : attempt(false),
    /** Whether a limit is brief enough to wait for its end. `before`: the one that its message was sent under. */
    isBrief(before: typeof limit, retryAfterMs = 0): boolean {
      const inARow = before ? before.inARow + 1 : 0
      const isBrief = retryAfterMs > 0 && retryAfterMs <= BRIEF_MS && inARow < MOST_LIMITS
      if (isBrief) limit = { until: timer.monotonic() + retryAfterMs, inARow, taken: 0 }
      return isBrief
    },
    /** Call it for each answer that is no limit. */
    answered(isTakenAlone: boolean) {
      if (!limit) return
      const taken = limit.taken + Number(isTakenAlone)
      limit = taken < enough ? { ...limit, inARow: 0, taken } : undefined
      if (!limit) enough *= 2
    },
  }
}
