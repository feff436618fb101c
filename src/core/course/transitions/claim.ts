import { type Delivery, isOutcome, type JobRecord } from '../../delivery/retries.ts'
import type { Asked } from '../../delivery/source.ts'
import { type HistoryEntry, outcomeFields } from '../history.ts'
import {
  type Claim,
  isSuppressed,
  type Next,
  nextDay,
  type Revision,
  type Settlement,
  type Subscription,
  type SubscriptionRecord,
} from '../subscription.ts'
import { endedByBounce } from './leave.ts'

export const UNREADABLE = 'its list of days sent cannot be read: repair the row, then resolve it'
const LOST_ATTEMPT = 'the process that sent it ended before it knew the outcome'

/** The next attempt moves to the end of the lease. An earlier claim that was never recorded is unknown from then on. */
export function take(
  record: SubscriptionRecord,
  claim: Pick<SubscriptionRecord, 'leaseUntil'> & Pick<Asked, 'now' | 'leaseMs'> & { readonly call: string },
): SubscriptionRecord {
  const { now, leaseMs, leaseUntil, call } = claim
  const { claimedAt, problem } = record
  const since = problem?.kind === 'unknown' ? problem.since : claimedAt
  return {
    ...record,
    nextAttemptAt: now + leaseMs,
    firstAttemptAt: record.firstAttemptAt ?? now,
    claimedAt: now,
    leaseUntil,
    claimedBy: call,
    fence: record.fence + 1,
    ...(claimedAt !== undefined && {
      problem: { kind: 'unknown', reason: LOST_ATTEMPT, since: since ?? claimedAt },
    }),
  }
}

/** The attempt that `take` found lost, for the history: it began with the claim before this one. */
export function lostAttempt(before: SubscriptionRecord, taken: SubscriptionRecord): HistoryEntry | undefined {
  const { claimedAt: at } = before
  const day = nextDay(before)
  if (at === undefined || day === undefined) return undefined
  const { enrolment, problem } = taken
  return { at, kind: 'attempt', enrolment, day, outcome: 'unknown', reason: problem?.reason }
}

/** The record in nobody's hand: the outcome of an attempt that began before comes too late. */
const freed = (record: SubscriptionRecord) => ({
  ...record,
  claimedAt: undefined,
  leaseUntil: undefined,
  fence: record.fence + 1,
})

/** Parks a record whose list of sent days cannot be read, so that it holds up no other. */
export function setAside(record: SubscriptionRecord, now: number): SubscriptionRecord {
  return {
    ...freed(record),
    nextAttemptAt: undefined,
    problem: { kind: 'parked', reason: UNREADABLE, since: now },
  }
}

/** The fractions of its multiples fill a range evenly, with neighbors far apart. */
const GOLDEN = (1 + Math.sqrt(5)) / 2

/**
 * What may have been delivered leaves first, before its key is forgotten. Of the rest, neighbors leave far apart: those
 * who joined together may all be refused, which looks like a refusal of all mail if nobody else is tried between.
 */
export function inTurn(claims: readonly Claim[]): readonly Claim[] {
  const isUnknown = ({ problem }: Claim) => problem?.kind === 'unknown'
  const placed = claims.map((claim, at) => ({ claim, at: isUnknown(claim) ? -1 : (at * GOLDEN) % 1 }))
  return placed.sort((a, b) => a.at - b.at).map(({ claim }) => claim)
}

/** The claim on a taken record, for a dispatcher; undefined if there is no lesson to send. */
export function claimOf(record: SubscriptionRecord): Claim | undefined {
  const day = nextDay(record)
  const { confirmedAt } = record
  if (day === undefined || confirmedAt === undefined) return undefined
  const { dueAt = confirmedAt, firstAttemptAt = confirmedAt } = record
  return { ...record, day, confirmedAt, dueAt, firstAttemptAt }
}

/** If the claim was lost, an outcome only ends the attempt, unless the message was sent: then the day counts. */
export function record(current: SubscriptionRecord, settlement: Settlement): SubscriptionRecord | undefined {
  const { claim, now, sent, lessons: planned, progress, nextAttemptAt, failures, problem } = settlement
  // A course that became shorter, perhaps by a rollback, is noted when it ends the enrolment.
  const lessons =
    nextAttemptAt === undefined ? (planned ?? current.lessons) : Math.max(planned ?? 0, current.lessons)
  const holds = current.fence === claim.fence && current.enrolment === claim.enrolment
  if (sent) {
    if (current.enrolment !== claim.enrolment || current.sentDays.includes(claim.day)) return undefined
    return afterSent(current, claim.day, { sentAt: now, nextAttemptAt, lessons, progress })
  }
  if (!holds) return answered(current, claim, problem)
  return {
    ...freed(current),
    lessons,
    nextAttemptAt,
    failures,
    problem,
    ...(settlement.untried && { claimedBy: undefined }),
    ...(settlement.end && { state: 'unsubscribed', unsubscribedAt: now }),
  }
}

/**
 * Ends an attempt whose claim was voided because the subscriber left or an operator decided; undefined if another call
 * has claimed the day since. An unknown outcome stays on record.
 */
function answered(
  current: SubscriptionRecord,
  { enrolment, claimedBy }: Claim,
  problem: Settlement['problem'],
): SubscriptionRecord | undefined {
  if (current.claimedAt === undefined || claimedBy === undefined) return undefined
  if (current.claimedBy !== claimedBy || current.enrolment !== enrolment) return undefined
  return {
    ...current,
    claimedAt: undefined,
    leaseUntil: undefined,
    problem: problem?.kind === 'unknown' && !isSuppressed(current) ? problem : current.problem,
  }
}

/** The history entry for a settled claim; none if it was returned without an attempt. */
export const attemptEntry = ({ claim, now, attempt }: Settlement): HistoryEntry | undefined =>
  attempt && { at: now, kind: 'attempt', enrolment: claim.enrolment, day: claim.day, ...attempt }

function afterSent(
  current: SubscriptionRecord,
  day: number,
  after: Pick<Settlement, 'nextAttemptAt' | 'progress'> & {
    readonly sentAt: number
    readonly lessons: number
  },
): SubscriptionRecord {
  const { sentAt, nextAttemptAt, lessons, progress } = after
  return {
    ...freed(current),
    sentDays: [...current.sentDays, day],
    ...progress,
    lessons,
    dueAt: nextAttemptAt,
    lastSentAt: sentAt,
    nextAttemptAt: current.state === 'confirmed' ? nextAttemptAt : undefined,
    firstAttemptAt: undefined,
    failures: 0,
    problem: isSuppressed(current) ? current.problem : undefined,
  }
}

export interface Resolution extends Pick<Settlement, 'now' | 'progress'> {
  readonly as: 'retry' | 'sent'
  /** The lesson that follows, if this one counts as sent at that time. */
  readonly next: (enrolment: Subscription, sentAt: number) => Next | undefined
}

/** Puts a parked or unknown lesson back in line, or marks it sent; undefined when none waits. */
export function resolve(record: SubscriptionRecord, { as, now, next, progress }: Resolution) {
  const day = nextDay(record)
  const { problem, confirmedAt, claimedAt, dueAt } = record
  // After a restore, a lesson may have been sent without a record of it.
  const mayBeSent = as === 'sent' && claimedAt === undefined && dueAt !== undefined && dueAt <= now
  const waits = problem !== undefined || mayBeSent
  if (!(record.state === 'confirmed' || endedByBounce(record)) || !waits || day === undefined)
    return undefined
  if (confirmedAt === undefined || record.unreadableDays !== undefined) return undefined
  const revived: SubscriptionRecord = {
    ...record,
    state: 'confirmed',
    unsubscribedAt: undefined,
    problem: undefined,
  }
  if (as === 'sent') {
    // When the message arrived is unknown. It left no earlier than its first attempt.
    const sentAt = record.firstAttemptAt ?? now
    const following = next(revived, sentAt)
    return afterSent(revived, day, {
      sentAt,
      nextAttemptAt: following?.dueAt,
      lessons: following?.lessons ?? day,
      // Another lesson may have been sent since it was computed.
      progress: progress?.sentLessons.length === day ? progress : undefined,
    })
  }
  return {
    ...revived,
    nextAttemptAt: Math.max(now, dueAt ?? now),
    // A message that is out keeps its lease. If it was lost, its outcome is unknown from now on.
    ...(claimedAt !== undefined && { claimedAt: now }),
    failures: 0,
    fence: record.fence + 1,
  }
}

/** Takes the course as it is now into account; undefined: nothing changes. */
export function revise(record: SubscriptionRecord, { progress, next, settled }: Revision) {
  const { sentLessons, needs, promised } = record
  const isKnown = sentLessons?.length === progress.sentLessons.length && needs === progress.needs
  if (record.unreadableDays !== undefined || (isKnown && next === undefined && !settled)) return undefined
  return {
    ...record,
    ...progress,
    promised: settled ? undefined : promised,
    ...(next && {
      lessons: next.lessons,
      dueAt: next.dueAt,
      nextAttemptAt: next.dueAt,
      fence: record.fence + 1,
    }),
  }
}

/** What is written of a claim. Pure, so that the simulation and every store share it. */
export function settlementOf(
  claim: Claim,
  delivery: Delivery,
  { result, untried, nextAttemptAt, failures, problem: met }: JobRecord,
  at: Pick<Settlement, 'now' | 'progress'> & {
    /** The lesson after this one; undefined: there is none. */
    readonly next?: Next | undefined
    readonly messageId?: string | undefined
  },
): Settlement {
  const { now, next, progress, messageId } = at
  const attempt = attemptOf(delivery, messageId)
  const problem = met ?? claim.problem
  const settled = { claim, now, untried, end: false, ...(attempt && { attempt }) }
  const over = { nextAttemptAt: undefined, failures: 0, problem: undefined }
  switch (result) {
    case 'sent':
    case 'skipped':
      return {
        ...settled,
        ...over,
        sent: true,
        lessons: next?.lessons ?? claim.day,
        nextAttemptAt: next?.dueAt,
        ...(result === 'sent' && progress && { progress }),
      }
    case 'finished':
      // All lessons that the course still has were sent.
      return { ...settled, ...over, sent: false, lessons: claim.day - 1 }
    case 'waits':
      return { ...settled, sent: false, nextAttemptAt, failures, problem }
    case 'over':
      return { ...settled, ...over, sent: false, failures, problem, end: problem?.kind === 'bounced' }
  }
}

/** What the history says of an attempt; undefined: there was none. */
function attemptOf(delivery: Delivery, messageId: string | undefined): Settlement['attempt'] {
  if (delivery.kind === 'over') return { outcome: 'permanent', reason: delivery.reason }
  if (!isOutcome(delivery)) return undefined
  return { ...outcomeFields(delivery), ...(messageId === undefined ? {} : { messageId }) }
}
