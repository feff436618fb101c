import { KEY_LIFE_MS } from '../delivery/delivery.ts'
import { DAY_MS, HOUR_MS } from '../durations.ts'
import type { SubscriptionEffect, Suppression } from '../mail/feedback/event.ts'
import type { HistoryEntry } from './history.ts'
import { NOTICES } from './notices.ts'
import type { Progress } from './progress.ts'
import { nextDay, TOKEN_LIFE_MS } from './schedule.ts'
import type {
  Admitted,
  Arrival,
  Claim,
  Consent,
  CourseStore,
  EnrolRefusal,
  Joining,
  Preferences,
  Revision,
  Settlement,
  Start,
  Subscription,
  SubscriptionRecord,
} from './store.ts'

const CONFIRMATIONS_A_DAY = 3

/** The problem of a record whose list of days is damaged. */
const UNREADABLE = 'its list of days sent cannot be read: repair the row, then resolve it'
/** The problem of a lesson whose sender ended before it knew the outcome. */
const LOST_ATTEMPT = 'the process that sent it ended before it knew the outcome'

/** What a subscription has of a course that has not begun, or begins anew. */
const UNSTARTED = {
  unsubscribedAt: undefined,
  sentDays: [],
  unreadableDays: undefined,
  sentLessons: undefined,
  needs: 0,
  promised: undefined,
  lastSentAt: undefined,
  firstAttemptAt: undefined,
  claimedAt: undefined,
  leaseUntil: undefined,
  failures: 0,
  problem: undefined,
}

export function newSubscription({
  id,
  identity,
  address,
  course,
  now,
}: Omit<Joining, 'mailboxKey'> & { readonly now: number }): SubscriptionRecord {
  return {
    ...UNSTARTED,
    ...{
      id,
      identity,
      address,
      course,
      state: 'unconfirmed',
      enrolment: 0,
      createdAt: now,
      lessons: 0,
      fence: 0,
    },
    confirmedAt: undefined,
    dueAt: undefined,
    courseVersion: undefined,
    timeZone: undefined,
    language: undefined,
    nextAttemptAt: undefined,
    claimedBy: undefined,
  }
}

/** Confirmations mailed within the last day. */
export interface RecentConfirmations {
  readonly count: number
  readonly newestAt: number | undefined
}

/**
 * The times between which confirmations count for the caps. One that is dated far ahead was made under a
 * wrong clock.
 */
export const recentWindow = (now: number) => ({ after: now - DAY_MS, before: now + DAY_MS })

/**
 * Whether subscribing mails a confirmation: not to a dead address, not in the middle of a course, and only
 * within the caps.
 */
export function wantsConfirmation(
  record: SubscriptionRecord,
  recent: RecentConfirmations,
  now: number,
): boolean {
  if (isSuppressed(record)) return false
  if (isUnderWay(record)) return false
  return (
    recent.count < CONFIRMATIONS_A_DAY && (recent.newestAt === undefined || recent.newestAt <= now - HOUR_MS)
  )
}

/** Why a program cannot begin a course for somebody; undefined: it can. */
export function enrolRefusal(record: SubscriptionRecord): EnrolRefusal | undefined {
  if (isSuppressed(record)) return 'suppressed'
  if (record.state === 'unsubscribed') return 'unsubscribed'
  if (isUnderWay(record)) return 'already_enrolled'
  return undefined
}

/** In the middle of a course, or subscribed to notices, which have no end. */
export function isUnderWay(record: Pick<Subscription, 'course' | 'state' | 'sentDays' | 'lessons'>): boolean {
  return record.state === 'confirmed' && (record.course === NOTICES || nextDay(record) !== undefined)
}

export interface Confirmation {
  readonly createdAt: number
  readonly usedAt: number | undefined
  /** A newer link was mailed. Only the newest works, because two would be two chances to guess. */
  readonly replaced: boolean
}

/**
 * The effect of a confirmation link now. `use`: it confirms; otherwise it only gives this answer. A second click gets
 * the same answer as the first.
 */
export function readConfirmation(
  found: Confirmation | undefined,
  now: number,
): 'use' | 'confirmed' | 'invalid' | 'expired' {
  if (found === undefined) return 'invalid'
  if (found.usedAt !== undefined) return 'confirmed'
  if (found.replaced) return 'invalid'
  return now - found.createdAt >= TOKEN_LIFE_MS ? 'expired' : 'use'
}

interface Beginning extends Preferences {
  readonly now: number
  readonly start: Start
  readonly consent: Consent
}

/** How somebody agreed who used the link of a confirmation mail. */
export const BY_LINK = 'link of the confirmation mail'
/** How somebody agreed whom a program or an operator enrolled. */
export const ELSEWHERE = 'enrolled by a program or an operator'

/**
 * Confirmed: the course starts, or starts over under the next enrolment number. On a suppressed address it ends at once,
 * so that no dispatch has to ask whether an address may be mailed.
 */
export function enrol(
  record: SubscriptionRecord,
  { suppression, ...beginning }: Beginning & { readonly suppression: Suppression | undefined },
): SubscriptionRecord {
  const enrolled = started(record, beginning)
  if (suppression === undefined) return enrolled
  const { cause, at, reason } = suppression
  const effect = cause === 'hard-bounce' ? 'end-dead' : 'end-suppressed'
  return endByFeedback(enrolled, effect, { at, reason, now: beginning.now }) ?? enrolled
}

function started(
  record: SubscriptionRecord,
  { now, start, timeZone, language, consent }: Beginning,
): SubscriptionRecord {
  return {
    ...record,
    ...UNSTARTED,
    state: 'confirmed',
    enrolment: record.enrolment + 1,
    fence: record.fence + 1,
    confirmedAt: now,
    lessons: start.lessons,
    dueAt: start.dueAt,
    courseVersion: start.pinned?.version,
    timeZone,
    language,
    nextAttemptAt: start.dueAt,
    consent,
  }
}

/** Why somebody is not imported; undefined: can be. Nobody who left or is through with the course begins it again. */
export function admitRefusal(record: SubscriptionRecord): Exclude<Admitted, 'imported'> | undefined {
  if (isSuppressed(record)) return 'suppressed'
  if (record.state === 'unsubscribed') return 'unsubscribed'
  return record.state === 'confirmed' ? 'known' : undefined
}

/** Imported: enrolled, with the first lessons sent elsewhere. */
export function arrive(
  record: SubscriptionRecord,
  { sent, progress, lastSentAt, confirmedAt: now, ...arrival }: Arrival,
): SubscriptionRecord {
  return {
    ...started(record, { ...arrival, now }),
    sentDays: Array.from({ length: sent }, (_, index) => index + 1),
    ...progress,
    lastSentAt,
  }
}

/**
 * Ends the course, also through a link of an earlier enrolment; undefined: nothing to change. A message that is out
 * keeps its lease, so that nothing hands it over again before its outcome is known.
 */
export function unsubscribe(
  record: SubscriptionRecord,
  enrolment: number,
  now: number,
): SubscriptionRecord | undefined {
  if (enrolment > record.enrolment) return undefined
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

/**
 * Undoes an unsubscribe: the course goes on where it stopped. A lesson that waited for an operator still
 * waits, and a dead address stays ended.
 */
export function undoUnsubscribe(
  record: SubscriptionRecord,
  enrolment: number,
  now: number,
): SubscriptionRecord | undefined {
  const { state, confirmedAt, problem } = record
  if (state !== 'unsubscribed' || enrolment > record.enrolment || confirmedAt === undefined) return undefined
  if (isSuppressed(record)) return undefined
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
 * The language and time zone that its reader wants from now on; undefined: nothing changes. `moved` is when the lesson
 * in hand is due in that zone. One that was tried keeps its time.
 */
export function prefer(
  record: SubscriptionRecord,
  { language = record.language, timeZone = record.timeZone }: Preferences,
  moved: number | undefined,
): SubscriptionRecord | undefined {
  if (language === record.language && timeZone === record.timeZone) return undefined
  const due = record.firstAttemptAt === undefined && timeZone !== record.timeZone ? moved : undefined
  return {
    ...record,
    language,
    timeZone,
    ...(due !== undefined && { dueAt: due, nextAttemptAt: record.nextAttemptAt && due }),
  }
}

/** Parks a record whose list of sent days cannot be read, so that it holds up no other. */
export function setAside(record: SubscriptionRecord, now: number): SubscriptionRecord {
  return {
    ...record,
    nextAttemptAt: undefined,
    claimedAt: undefined,
    leaseUntil: undefined,
    fence: record.fence + 1,
    problem: { kind: 'parked', reason: UNREADABLE, since: now },
  }
}

/** Ended because no mail may go to its address; only an operator can change that. */
function isSuppressed({ problem }: Pick<SubscriptionRecord, 'problem'>): boolean {
  return problem?.kind === 'bounced' || problem?.kind === 'suppressed'
}

/**
 * The changes that feedback about its address makes to a subscription; undefined if none. Feedback concerns the
 * address, so it ends the subscription regardless of its enrolment. Only an unsubscribe that is older than the latest
 * confirmation is ignored, because the subscriber has opted in again since. An address that may be mailed again can be
 * subscribed anew, but no course resumes by itself.
 */
export function endByFeedback(
  record: SubscriptionRecord,
  effect: Exclude<SubscriptionEffect, 'none'>,
  { at, reason, now }: { readonly at: number; readonly reason: string; readonly now: number },
): SubscriptionRecord | undefined {
  if (effect === 'release')
    return isSuppressed(record) ? { ...record, problem: undefined, fence: record.fence + 1 } : undefined
  if (effect === 'unsubscribe')
    return record.state !== 'confirmed' || at < (record.consent?.at ?? record.confirmedAt ?? at)
      ? undefined
      : unsubscribe(record, record.enrolment, now)
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
function endedByBounce({ state, problem, unsubscribedAt }: SubscriptionRecord): boolean {
  return state === 'unsubscribed' && problem?.kind === 'bounced' && unsubscribedAt === problem.since
}

/** An operator's decision about a delivery that waits; undefined when none does. */
export function resolve(
  record: SubscriptionRecord,
  { as, now, next, progress }: Omit<Parameters<CourseStore['resolve']>[0], 'id' | 'audit'>,
): SubscriptionRecord | undefined {
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
    const following = next({ ...revived, lastSentAt: sentAt }, day)
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
    nextAttemptAt: Math.max(now, record.dueAt ?? now),
    // A message that is out keeps its lease. If it was lost, its outcome is unknown from now on.
    ...(record.claimedAt !== undefined && { claimedAt: now }),
    failures: 0,
    fence: record.fence + 1,
  }
}

/**
 * Claims the day in hand for sending: the next attempt moves to the end of the lease. If an earlier claim was
 * never recorded, its outcome is unknown from the moment of that claim.
 */
export function take(
  record: SubscriptionRecord,
  {
    now,
    leaseMs,
    call,
    leaseUntil,
  }: Pick<Parameters<CourseStore['claimDue']>[0], 'now' | 'leaseMs' | 'call'> &
    Pick<SubscriptionRecord, 'leaseUntil'>,
): SubscriptionRecord {
  const { claimedAt, problem } = record
  return {
    ...record,
    nextAttemptAt: now + leaseMs,
    firstAttemptAt: record.firstAttemptAt ?? now,
    claimedAt: now,
    leaseUntil,
    claimedBy: call,
    fence: record.fence + 1,
    ...(claimedAt !== undefined && {
      problem: {
        kind: 'unknown',
        reason: LOST_ATTEMPT,
        since: problem?.kind === 'unknown' ? problem.since : claimedAt,
      },
    }),
  }
}

/** The attempt that `take` found lost, for the history: it began with the claim before this one. */
export function lostAttempt(before: SubscriptionRecord, taken: SubscriptionRecord): HistoryEntry | undefined {
  const day = nextDay(before)
  if (before.claimedAt === undefined || day === undefined) return undefined
  const { enrolment, problem } = taken
  return {
    at: before.claimedAt,
    kind: 'attempt',
    enrolment,
    day,
    outcome: 'unknown',
    reason: problem?.reason,
  }
}

/**
 * Orders claims: longest in hand first, so that repeated crashes never keep a lesson past the life of its
 * key; then the earliest confirmed.
 */
export function compareClaims(a: Claim, b: Claim): number {
  return a.firstAttemptAt - b.firstAttemptAt || a.confirmedAt - b.confirmedAt
}

/** The claim on a taken record, for a dispatcher; undefined if there is no lesson to send. */
export function claimOf(record: SubscriptionRecord): Claim | undefined {
  const day = nextDay(record)
  const { confirmedAt } = record
  if (day === undefined || confirmedAt === undefined) return undefined
  const { dueAt = confirmedAt, firstAttemptAt = confirmedAt } = record
  return { ...record, day, confirmedAt, dueAt, firstAttemptAt }
}

/**
 * Records an outcome. If its claim was lost, it only ends the attempt, unless the message was sent: then the
 * day counts whoever holds the claim now, and that other claim is void.
 */
export function record(
  current: SubscriptionRecord,
  {
    claim,
    now,
    sent,
    untried,
    lessons: planned,
    progress,
    nextAttemptAt,
    failures,
    problem,
    end,
  }: Settlement,
): SubscriptionRecord | undefined {
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
    ...current,
    lessons,
    nextAttemptAt,
    claimedAt: undefined,
    leaseUntil: undefined,
    failures,
    problem,
    fence: current.fence + 1,
    ...(untried && { claimedBy: undefined }),
    ...(end && { state: 'unsubscribed', unsubscribedAt: now }),
  }
}

/**
 * Ends an attempt whose claim was voided because the subscriber left or an operator decided; undefined if
 * another call has claimed the day since. The attempt was not lost, and an unknown outcome stays on record.
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
export function attemptEntry({ claim, now, attempt }: Settlement): HistoryEntry | undefined {
  return attempt && { at: now, kind: 'attempt', enrolment: claim.enrolment, day: claim.day, ...attempt }
}

/** Takes the course as it is now into account; undefined: nothing changes. */
export function revise(
  record: SubscriptionRecord,
  { progress, next, settled }: Revision,
): SubscriptionRecord | undefined {
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

function afterSent(
  current: SubscriptionRecord,
  day: number,
  {
    sentAt,
    nextAttemptAt,
    lessons,
    progress,
  }: Pick<SubscriptionRecord, 'nextAttemptAt' | 'lessons'> & {
    readonly sentAt: number
    readonly progress: Progress | undefined
  },
): SubscriptionRecord {
  return {
    ...current,
    sentDays: [...current.sentDays, day],
    ...progress,
    lessons,
    dueAt: nextAttemptAt,
    lastSentAt: sentAt,
    nextAttemptAt: current.state === 'confirmed' ? nextAttemptAt : undefined,
    firstAttemptAt: undefined,
    claimedAt: undefined,
    leaseUntil: undefined,
    failures: 0,
    problem: isSuppressed(current) ? current.problem : undefined,
    fence: current.fence + 1,
  }
}
