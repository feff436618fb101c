import type { Outcome } from '../mail/transport.ts'
import { outcomeFields } from './history.ts'
import type { Claim, Settlement } from './store.ts'

export const LESSONS = 7
export const DAY_MS = 24 * 60 * 60 * 1000
const MINUTE_MS = 60 * 1000
const HOUR_MS = 60 * MINUTE_MS

/** A confirmation link works for seven days (CONTRACT §4). */
export const TOKEN_LIFE_MS = 7 * DAY_MS
/** An address that was never confirmed is deleted this long after its last link was mailed (docs/privacy.md). */
export const UNCONFIRMED_KEPT_MS = 30 * DAY_MS
/** First retry after ≥ 5 minutes, because greylisting wants to see patience; then doubling, at most 6 hours. */
const FIRST_RETRY_MS = 5 * MINUTE_MS
const LONGEST_RETRY_MS = 6 * HOUR_MS
/** After so many failures in a row a lesson waits for an operator. */
const MOST_FAILURES = 12
/**
 * Providers remember an idempotency key for 24 hours. An unknown outcome is not retried after 20: the wall clock that
 * measures them may be stepped back meanwhile, and an attempt takes its time to arrive.
 */
export const KEY_LIFE_MS = 20 * HOUR_MS

/** Day N is due at confirmation + (N − 1) × 24 h, in UTC milliseconds: no calendar, so no daylight saving. */
export function dueAt(confirmedAt: number, day: number): number {
  return confirmedAt + (day - 1) * DAY_MS
}

/** The lowest unsent day, or undefined when all seven were sent. */
export function nextDay(sentDays: readonly number[]): number | undefined {
  for (let day = 1; day <= LESSONS; day += 1) if (!sentDays.includes(day)) return day
  return undefined
}

/**
 * Gives a claim back: what was known of it stays known, and it is due at once, but never before its time. Untried, it
 * has waited since it was due; tried, it goes to the end of the line.
 */
export function release(claim: Claim, now: number, tried: boolean): Settlement {
  const due = dueAt(claim.confirmedAt, claim.day)
  return {
    claim,
    now,
    sent: false,
    untried: !tried,
    nextAttemptAt: tried || claim.problem !== undefined ? Math.max(now, due) : due,
    failures: claim.failures,
    problem: claim.problem,
    end: false,
  }
}

/** `fraction` in [0, 1) spreads the retries of many rows over the upper half of their interval. */
function backoffMs(failures: number, fraction: number): number {
  const full = Math.min(LONGEST_RETRY_MS, FIRST_RETRY_MS * 2 ** Math.min(failures, 20))
  return Math.round(Math.max(FIRST_RETRY_MS, full / 2 + (full / 2) * fraction))
}

/** The wall clock may have been stepped back since the claim: a lesson that is not due any more waits until it is. */
function notBeforeDue({ confirmedAt, day }: Claim, at: number): number {
  return Math.max(at, dueAt(confirmedAt, day))
}

/** What to record of a finished attempt: pure, so that the simulation and every store share it. */
export function settle(
  claim: Claim,
  outcome: Outcome,
  now: number,
  fraction: number,
  messageId?: string,
): Settlement {
  return {
    ...consequence(claim, outcome, now, fraction),
    attempt: { ...outcomeFields(outcome), ...(messageId === undefined ? {} : { messageId }) },
  }
}

function consequence(claim: Claim, outcome: Outcome, now: number, fraction: number): Settlement {
  const unknownSince = claim.problem?.kind === 'unknown' ? claim.problem.since : undefined
  switch (outcome.kind) {
    case 'sent': {
      const next = claim.day < LESSONS ? dueAt(claim.confirmedAt, claim.day + 1) : undefined
      return { claim, now, sent: true, nextAttemptAt: next, failures: 0, problem: undefined, end: false }
    }
    case 'permanent':
      return {
        claim,
        now,
        sent: false,
        nextAttemptAt: undefined,
        failures: claim.failures + 1,
        problem: { kind: outcome.hardBounce ? 'bounced' : 'parked', reason: outcome.reason, since: now },
        end: outcome.hardBounce,
      }
    case 'unknown': {
      const since = unknownSince ?? now
      const next = notBeforeDue(claim, now + backoffMs(claim.failures, fraction))
      // Past the provider's memory of the key a retry could be a second delivery: an operator decides.
      const expired = next - since >= KEY_LIFE_MS
      return {
        claim,
        now,
        sent: false,
        nextAttemptAt: expired ? undefined : next,
        failures: claim.failures + 1,
        problem: { kind: 'unknown', reason: outcome.reason, since },
        end: false,
      }
    }
    case 'transient': {
      const next = notBeforeDue(
        claim,
        now + Math.max(outcome.retryAfterMs ?? 0, backoffMs(claim.failures, fraction)),
      )
      const unknownExpired = unknownSince !== undefined && next - unknownSince >= KEY_LIFE_MS
      const failures = claim.failures + (outcome.scope === 'message' ? 1 : 0)
      const parked = failures >= MOST_FAILURES || unknownExpired
      const kind = unknownSince !== undefined ? 'unknown' : parked ? 'parked' : 'failed'
      return {
        claim,
        now,
        sent: false,
        nextAttemptAt: parked ? undefined : next,
        failures,
        problem: { kind, reason: outcome.reason, since: unknownSince ?? now },
        end: false,
      }
    }
  }
}
