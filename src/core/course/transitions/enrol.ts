import { DAY_MS, FAR_MS, HOUR_MS, MOST_SKEW_MS } from '../../durations.ts'
import type { Suppression } from '../../mail/feedback/event.ts'
import { TOKEN_LIFE_MS } from '../due.ts'
import {
  type Admitted,
  type Arrival,
  type Consent,
  type EnrolRefusal,
  isSuppressed,
  isUnderWay,
  type Joining,
  type Next,
  type Preferences,
  type Start,
  type Subscription,
  type SubscriptionRecord,
  type TokenAnswer,
} from '../subscription.ts'
import { endByFeedback } from './leave.ts'

const CONFIRMATIONS_A_DAY = 3

/** What a subscription has of a course that has not begun, or begins anew. */
const UNSTARTED = {
  confirmedAt: undefined,
  unsubscribedAt: undefined,
  sentDays: [],
  unreadableDays: undefined,
  sentLessons: undefined,
  needs: 0,
  promised: undefined,
  dueAt: undefined,
  lastSentAt: undefined,
  courseVersion: undefined,
  timeZone: undefined,
  language: undefined,
  nextAttemptAt: undefined,
  firstAttemptAt: undefined,
  claimedAt: undefined,
  leaseUntil: undefined,
  failures: 0,
  problem: undefined,
}

export function newSubscription(
  joining: Omit<Joining, 'mailboxKey'> & { readonly now: number; readonly before?: number },
): SubscriptionRecord {
  const { id, identity, address, course, now: createdAt } = joining
  const who = { id, identity, address, course, createdAt }
  return {
    ...UNSTARTED,
    ...who,
    state: 'unconfirmed',
    enrolment: joining.before ?? 0,
    lessons: 0,
    fence: 0,
    claimedBy: undefined,
  }
}

export interface RecentConfirmations {
  readonly count: number
  readonly newestAt: number | undefined
}

/** The times between which confirmations count for the caps. One dated far ahead was made under a wrong clock. */
export const recentWindow = (now: number) => ({ after: now - DAY_MS, before: now + FAR_MS })

/** Whether subscribing mails a confirmation: not to a dead address, not in the middle of a course, and within the caps. */
export function wantsConfirmation(
  record: SubscriptionRecord,
  { count, newestAt }: RecentConfirmations,
  now: number,
): boolean {
  if (isSuppressed(record) || isUnderWay(record)) return false
  return count < CONFIRMATIONS_A_DAY && (newestAt === undefined || newestAt <= now - HOUR_MS)
}

export interface Confirmation {
  readonly createdAt: number
  readonly usedAt: number | undefined
  /** A newer link was mailed. Only the newest works, because two would be two chances to guess. */
  readonly replaced: boolean
}

/** `use`: the link confirms; otherwise it only answers, at a second click as at the first. */
export function readConfirmation(found: Confirmation | undefined, now: number): 'use' | TokenAnswer {
  if (found === undefined) return 'invalid'
  if (found.usedAt !== undefined) return 'confirmed'
  if (found.replaced) return 'invalid'
  return now - found.createdAt >= TOKEN_LIFE_MS ? 'expired' : 'use'
}

function refusal(record: SubscriptionRecord): 'suppressed' | 'unsubscribed' | undefined {
  if (isSuppressed(record)) return 'suppressed'
  return record.state === 'unsubscribed' ? 'unsubscribed' : undefined
}

/** Why a program cannot begin a course for somebody; undefined: it can. */
export const enrolRefusal = (record: SubscriptionRecord): EnrolRefusal | undefined =>
  refusal(record) ?? (isUnderWay(record) ? 'already_enrolled' : undefined)

/** Why somebody is not imported; undefined: can be. Nobody who left or is through with the course begins it again. */
export const admitRefusal = (record: SubscriptionRecord): Exclude<Admitted, 'imported'> | undefined =>
  refusal(record) ?? (record.state === 'confirmed' ? 'known' : undefined)

interface Beginning extends Preferences {
  readonly now: number
  readonly start: Start
  readonly consent: Consent
}

export const BY_LINK = 'link of the confirmation mail'
export const ELSEWHERE = 'enrolled by a program or an operator'

/** Starts the course, or starts it over. On a suppressed address it ends at once: no dispatch has to ask. */
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

const newestOf = ({ consent, lastSentAt = 0 }: Subscription) => Math.max(consent?.at ?? 0, lastSentAt)

/** A clock that was ahead began the course, sent the last lesson, or planned the next attempt at one that failed. */
export const isDatedAhead = (one: Subscription, now: number): boolean =>
  newestOf(one) > now + MOST_SKEW_MS || (one.problem !== undefined && (one.nextAttemptAt ?? 0) > now + FAR_MS)

/** What such a clock dated moves to `now`, and the next lesson with it; undefined: it is out, or not late. */
export function redate(
  record: SubscriptionRecord,
  { now, next }: { readonly now: number; readonly next: (one: SubscriptionRecord) => Next | undefined },
): SubscriptionRecord | undefined {
  const { confirmedAt, lastSentAt, claimedAt, nextAttemptAt = 0, fence } = record
  if (!isDatedAhead(record, now) || claimedAt !== undefined) return undefined
  const newest = newestOf(record)
  const isWrong = (at = 0) => at > now + MOST_SKEW_MS
  const moved = (at: number | undefined) => (at && isWrong(at) ? at - newest + now : at)
  const redated = { ...record, confirmedAt: moved(confirmedAt), lastSentAt: moved(lastSentAt) }
  // After a changed cadence, the schedule goes on from the lesson before and not from the confirmation.
  const isCounted = next({ ...record, dueAt: undefined })?.dueAt === record.dueAt
  const planned = isWrong(newest)
    ? next({ ...redated, dueAt: isCounted ? undefined : redated.lastSentAt })?.dueAt
    : record.dueAt
  const dueAt = planned ?? nextAttemptAt
  return dueAt < nextAttemptAt ? { ...redated, dueAt, nextAttemptAt: dueAt, fence: fence + 1 } : undefined
}

/** What the reader wants; undefined: nothing changes. `moved`: when the lesson in hand is due in the new zone. */
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
