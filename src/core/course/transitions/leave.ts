import { KEY_LIFE_MS, MINUTE_MS } from '../../durations.ts'
import type { SubscriptionEffect } from '../../mail/feedback/event.ts'
import { isSuppressed, nextDay, type Subscription, type SubscriptionRecord } from '../subscription.ts'

/**
 * Ends the course, also through a link of an earlier enrolment, or of one that a restore has lost; undefined: nothing
 * to change. A message that is out keeps its lease, so that nothing hands it over again before its outcome is known.
 */
export function unsubscribe(record: SubscriptionRecord, now: number): SubscriptionRecord | undefined {
  // Dated after the bounce: the subscriber left as well, so no operator brings the subscription back.
  if (endedByBounce(record))
    return { ...record, unsubscribedAt: Math.max(now, (record.problem?.since ?? 0) + 1) }
  if (record.state !== 'confirmed') return undefined
  return {
    ...record,
    state: 'unsubscribed',
    unsubscribedAt: now,
    nextAttemptAt: undefined,
    fence: record.fence + 1,
  }
}

/** The course goes on where it stopped. A lesson that waited for an operator still waits; a dead address stays ended. */
export function undoUnsubscribe(record: SubscriptionRecord, now: number): SubscriptionRecord | undefined {
  const { state, confirmedAt, problem } = record
  if (state !== 'unsubscribed' || confirmedAt === undefined || isSuppressed(record)) return undefined
  const day = nextDay(record)
  const waits =
    problem?.kind === 'parked' || (problem?.kind === 'unknown' && now - problem.since >= KEY_LIFE_MS)
  return {
    ...record,
    state: 'confirmed',
    unsubscribedAt: undefined,
    nextAttemptAt: day === undefined || waits ? undefined : Math.max(now, record.dueAt ?? now),
    fence: record.fence + 1,
  }
}

/**
 * Clocks, of which `clock_wrong` tells, may date a confirmation that was before a reported unsubscribe as this much
 * later. Who did confirm again so soon may have to subscribe once more: a lesser harm than mail to somebody who left.
 */
const UNCLEAR_MS = 5 * MINUTE_MS

/**
 * What feedback about its address changes; undefined: nothing. It ends any enrolment; only an unsubscribe that is
 * clearly older than the latest confirmation is ignored, because the subscriber has opted in again since. An address
 * that may be mailed again can be subscribed anew, but no course resumes by itself.
 */
export function endByFeedback(
  record: SubscriptionRecord,
  effect: Exclude<SubscriptionEffect, 'none'>,
  { at, reason, now }: { readonly at: number; readonly reason: string; readonly now: number },
): SubscriptionRecord | undefined {
  if (effect === 'release')
    return isSuppressed(record) ? { ...record, problem: undefined, fence: record.fence + 1 } : undefined
  // Nobody confirmed later than now: a clock that was ahead says so.
  const agreedAt = Math.min(record.consent?.at ?? record.confirmedAt ?? at, now)
  if (effect === 'unsubscribe') return at < agreedAt - UNCLEAR_MS ? undefined : unsubscribe(record, now)
  const kind = effect === 'end-dead' ? 'bounced' : 'suppressed'
  if (record.state === 'unconfirmed' || record.problem?.kind === kind) return undefined
  const ends = record.state === 'confirmed'
  return {
    ...record,
    state: 'unsubscribed',
    unsubscribedAt: ends ? now : record.unsubscribedAt,
    nextAttemptAt: undefined,
    fence: record.fence + 1,
    // Dated after the subscriber's own end, so that an operator cannot bring the subscription back.
    problem: { kind, reason, since: ends ? now : Math.max(now, (record.unsubscribedAt ?? 0) + 1) },
  }
}

/** Whether a bounce ended the subscription and the subscriber did not. */
export const endedByBounce = ({ state, problem, unsubscribedAt }: Subscription): boolean =>
  state === 'unsubscribed' && problem?.kind === 'bounced' && unsubscribedAt === problem.since
