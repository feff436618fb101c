import type { Problem, SubscriptionState } from '../course/store.ts'
import type { SubscriptionRecord } from '../course/subscription.ts'

/** The table `subscription` as every SQL store has it; times are UTC milliseconds. */
export interface Row {
  readonly id: string
  readonly identity: string
  readonly address: string
  readonly state: SubscriptionState
  readonly enrolment: number
  readonly created_at: number
  readonly confirmed_at: number | null
  readonly unsubscribed_at: number | null
  readonly sent_days: readonly number[]
  readonly next_attempt_at: number | null
  readonly first_attempt_at: number | null
  readonly claimed_at: number | null
  readonly claimed_by: string | null
  readonly fence: number
  readonly failures: number
  readonly problem_kind: Problem['kind'] | null
  readonly problem_reason: string | null
  readonly problem_since: number | null
}

/** The earliest of some times; undefined when there is none. */
export function earliest(times: readonly (number | null)[]): number | undefined {
  const known = times.filter((time) => time !== null)
  return known.length === 0 ? undefined : Math.min(...known)
}

export function recordOf(row: Row): SubscriptionRecord {
  return {
    id: row.id,
    identity: row.identity,
    address: row.address,
    state: row.state,
    enrolment: row.enrolment,
    createdAt: row.created_at,
    confirmedAt: row.confirmed_at ?? undefined,
    unsubscribedAt: row.unsubscribed_at ?? undefined,
    sentDays: row.sent_days,
    nextAttemptAt: row.next_attempt_at ?? undefined,
    firstAttemptAt: row.first_attempt_at ?? undefined,
    claimedAt: row.claimed_at ?? undefined,
    claimedBy: row.claimed_by ?? undefined,
    fence: row.fence,
    failures: row.failures,
    problem:
      row.problem_kind === null
        ? undefined
        : { kind: row.problem_kind, reason: row.problem_reason ?? '', since: row.problem_since ?? 0 },
  }
}

/** What a change may set, by column; the rest of a row is set when it is made. */
export function columnsOf(record: SubscriptionRecord): Omit<Row, 'identity' | 'address' | 'created_at'> {
  return {
    id: record.id,
    state: record.state,
    enrolment: record.enrolment,
    confirmed_at: record.confirmedAt ?? null,
    unsubscribed_at: record.unsubscribedAt ?? null,
    sent_days: record.sentDays,
    next_attempt_at: record.nextAttemptAt ?? null,
    first_attempt_at: record.firstAttemptAt ?? null,
    claimed_at: record.claimedAt ?? null,
    claimed_by: record.claimedBy ?? null,
    fence: record.fence,
    failures: record.failures,
    problem_kind: record.problem?.kind ?? null,
    problem_reason: record.problem === undefined ? null : storableText(record.problem.reason),
    problem_since: record.problem?.since ?? null,
  }
}

/** The text as every store can keep it: without NUL and halves of surrogate pairs, which PostgreSQL refuses. */
export function storableText(text: string): string {
  return text.replaceAll('\0', '\ufffd').toWellFormed()
}
