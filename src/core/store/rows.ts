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
  readonly promised: number | null
  readonly needs: number
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
  readonly sent_lessons: unknown
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

/**
 * The oldest schema whose builds know several courses. An earlier build would take every enrolment for one in
 * the first course.
 */
export const COURSES_FROM = 14

/** The row format of builds that know several courses, and no lessons by name. */
export const COURSES = 1

/**
 * The format of rows that this build knows: 0 is one course, 1 is several, 2 is lessons by name. A row’s column `needs` says the
 * least that a build has to know to claim it, and each claim names the format of its build, so the store can
 * refuse a claim of an older build (the migration with `needs`).
 */
const ROW_FORMAT = 2

/** The value for `claimed_by`. Builds before 0.3.0 name no format; no name of a call has a tilde. */
export const claimedAs = (call: string): string => `${ROW_FORMAT}~${call}`

/**
 * The unique key of an enrolment: in the first course the person's identity, as in tables from before there
 * were others; in any other course, the identity and the name of the course.
 */
export function enrolmentKey(identity: string, course: string): string {
  return course === FIRST_COURSE ? identity : `${identity} ${course}`
}

/**
 * When the lesson in hand is due if the row does not say: the first course sends one lesson a day from
 * confirmation on.
 */
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
    promised: row.promised ?? undefined,
    needs: row.needs,
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
    sentLessons: namesOf(row.sent_lessons),
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

function namesOf(value: unknown): readonly string[] | undefined {
  return Array.isArray(value) && value.every((name) => typeof name === 'string') ? value : undefined
}

/** The columns that a change may set. The others are set when the row is created. */
export function columnsOf(
  record: SubscriptionRecord,
): Omit<Row, 'identity' | 'person' | 'address' | 'course' | 'created_at'> {
  return {
    id: record.id,
    course_version: record.courseVersion ?? null,
    lessons: record.lessons,
    promised: record.promised ?? null,
    needs: record.needs,
    due_at: dueColumn(record),
    last_sent_at: record.lastSentAt ?? null,
    time_zone: record.timeZone ?? null,
    language: record.language ?? null,
    state: record.state,
    enrolment: record.enrolment,
    confirmed_at: record.confirmedAt ?? null,
    unsubscribed_at: record.unsubscribedAt ?? null,
    sent_days: record.unreadableDays ?? record.sentDays,
    sent_lessons: record.sentLessons ?? null,
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

/**
 * The value for `due_at`: null where the due time follows from the other columns, so that it stays right when
 * a build that does not know `due_at` changes those.
 */
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
