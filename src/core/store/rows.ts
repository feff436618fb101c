import { FIRST_COURSE } from '../course/definition.ts'
import type { Problem, SubscriptionState } from '../course/store.ts'
import type { SubscriptionRecord } from '../course/subscription.ts'
import { DAY_MS } from '../durations.ts'

/** The table `subscription` as every SQL store has it; times are UTC milliseconds. */
export interface Row {
  readonly id: string
  /** One a person and course (`enrolmentKey`). */
  readonly identity: string
  /** The identity of the person, where `identity` names a course as well. */
  readonly person: string | null
  readonly address: string
  readonly course: string
  readonly course_version: string | null
  readonly lessons: number
  readonly due_at: number | null
  readonly last_sent_at: number | null
  readonly time_zone: string | null
  readonly language: string | null
  readonly state: SubscriptionState
  readonly enrolment: number
  readonly created_at: number
  readonly confirmed_at: number | null
  readonly unsubscribed_at: number | null
  /** Any value: somebody may have edited the row. */
  readonly sent_days: unknown
  readonly next_attempt_at: number | null
  readonly first_attempt_at: number | null
  readonly claimed_at: number | null
  readonly lease_until: number | null
  readonly claimed_by: string | null
  readonly fence: number
  readonly failures: number
  readonly problem_kind: Problem['kind'] | null
  readonly problem_reason: string | null
  readonly problem_since: number | null
}

/** The oldest schema whose builds know of other courses; to an earlier one their enrolments would be of the first course. */
export const COURSES_FROM = 14

/**
 * The unique key of an enrolment. Where the table has one row a person it was their identity, and so it still is in the
 * first course; in others it names the course as well.
 */
export function enrolmentKey(identity: string, course: string): string {
  return course === FIRST_COURSE ? identity : `${identity} ${course}`
}

/** When the lesson in hand is due, where the row does not say: in the first course a lesson follows a day after the other. */
const plainDueAt = (confirmedAt: number | null, sent: number) =>
  confirmedAt === null ? null : confirmedAt + sent * DAY_MS

/** The earliest of some times; undefined when there is none. */
export function earliest(times: readonly (number | null)[]): number | undefined {
  const known = times.filter((time) => time !== null)
  return known.length === 0 ? undefined : Math.min(...known)
}

export function recordOf(row: Row): SubscriptionRecord {
  const sentDays = daysOf(row.sent_days)
  return {
    id: row.id,
    identity: row.person ?? row.identity,
    address: row.address,
    course: row.course,
    courseVersion: row.course_version ?? undefined,
    lessons: row.lessons,
    dueAt:
      row.due_at ??
      (sentDays && sentDays.length < row.lessons
        ? (plainDueAt(row.confirmed_at, sentDays.length) ?? undefined)
        : undefined),
    lastSentAt: row.last_sent_at ?? undefined,
    timeZone: row.time_zone ?? undefined,
    language: row.language ?? undefined,
    state: row.state,
    enrolment: row.enrolment,
    createdAt: row.created_at,
    confirmedAt: row.confirmed_at ?? undefined,
    unsubscribedAt: row.unsubscribed_at ?? undefined,
    sentDays: sentDays ?? [],
    ...(sentDays === undefined && { unreadableDays: row.sent_days }),
    nextAttemptAt: row.next_attempt_at ?? undefined,
    firstAttemptAt: row.first_attempt_at ?? undefined,
    claimedAt: row.claimed_at ?? undefined,
    leaseUntil: row.lease_until ?? undefined,
    claimedBy: row.claimed_by ?? undefined,
    fence: row.fence,
    failures: row.failures,
    problem:
      row.problem_kind === null
        ? undefined
        : { kind: row.problem_kind, reason: row.problem_reason ?? '', since: row.problem_since ?? 0 },
  }
}

function daysOf(value: unknown): readonly number[] | undefined {
  return Array.isArray(value) && value.every((day) => Number.isInteger(day) && day >= 1) ? value : undefined
}

/** What a change may set, by column; the rest of a row is set when it is made. */
export function columnsOf(
  record: SubscriptionRecord,
): Omit<Row, 'identity' | 'person' | 'address' | 'course' | 'created_at'> {
  return {
    id: record.id,
    course_version: record.courseVersion ?? null,
    lessons: record.lessons,
    due_at: dueColumn(record),
    last_sent_at: record.lastSentAt ?? null,
    time_zone: record.timeZone ?? null,
    language: record.language ?? null,
    state: record.state,
    enrolment: record.enrolment,
    confirmed_at: record.confirmedAt ?? null,
    unsubscribed_at: record.unsubscribedAt ?? null,
    sent_days: record.unreadableDays ?? record.sentDays,
    next_attempt_at: record.nextAttemptAt ?? null,
    first_attempt_at: record.firstAttemptAt ?? null,
    claimed_at: record.claimedAt ?? null,
    lease_until: record.leaseUntil ?? null,
    claimed_by: record.claimedBy ?? null,
    fence: record.fence,
    failures: record.failures,
    problem_kind: record.problem?.kind ?? null,
    problem_reason: record.problem === undefined ? null : storableText(record.problem.reason),
    problem_since: record.problem?.since ?? null,
  }
}

/** Nothing where it follows from the row, so that what a build from before the column changes there stays right. */
export function dueColumn({
  dueAt,
  confirmedAt,
  sentDays,
}: Pick<SubscriptionRecord, 'dueAt' | 'confirmedAt' | 'sentDays'>): number | null {
  return dueAt === undefined || dueAt === plainDueAt(confirmedAt ?? null, sentDays.length) ? null : dueAt
}

/** The text as every store can keep it: without NUL and halves of surrogate pairs, which PostgreSQL refuses. */
export function storableText(text: string): string {
  return text.replaceAll('\0', '\ufffd').toWellFormed()
}
