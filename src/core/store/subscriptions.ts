import { FIRST_COURSE } from '../course/definition.ts'
import { type HistoryEntry, MOST_ENTRIES, mayExceed, type PastEntry } from '../course/history.ts'
import type { Problem, SubscriptionRecord } from '../course/subscription.ts'
import { DAY_MS } from '../durations.ts'
import { parsedJson } from '../is-record.ts'
import { closeTo } from './schema.ts'
import { all, assigned, camelCase, first, run, type Steps } from './sql.ts'

/** The oldest schemas whose builds know several courses, and lessons by name. */
export const COURSES_FROM = 14
const NAMES_FROM = 21

/**
 * The formats of rows that builds know: 0 is one course, 1 is several, 2 is lessons by name. A row’s `needs` says the
 * least to claim it (the migration with `needs`).
 */
const COURSES = 1
export const ROW_FORMAT = 2

/** The unique key of an enrolment: in the first course the person's identity, as from before there were others. */
export const enrolmentKey = (identity: string, course: string): string =>
  course === FIRST_COURSE ? identity : `${identity} ${course}`

/** The columns that are set when the row is created, and those that a change may set. */
const CREATED = 'id, identity, person, address, course, created_at'
const CHANGED = `state, enrolment, confirmed_at, unsubscribed_at, course_version, lessons, promised, needs, due_at,
  last_sent_at, time_zone, language, sent_days, sent_lessons, next_attempt_at, first_attempt_at, claimed_at, lease_until,
  holder, fence, failures, problem_kind, problem_reason, problem_since, consent_at, consent_how`

const ENTRY = 'subscription, at, kind, enrolment, day, outcome, reason, message_id, provider_id, source'

/** The columns of a row by the program's names: for a statement that is run for every lesson. */
const named = (column: string) => `${column} AS "${camelCase(column)}"`
export const ROW_COLUMNS = `${CREATED}, ${CHANGED}`.replace(/\w+/g, named)

export const TEXTS = {
  byId: 'SELECT * FROM subscription WHERE id = @id',
  lockId: 'SELECT * FROM subscription WHERE id = @id FOR UPDATE',
  lockIds: `SELECT * FROM subscription WHERE id IN (SELECT value FROM {each @ids}) ORDER BY id FOR UPDATE`,
  lockKey: 'SELECT * FROM subscription WHERE identity = @key FOR UPDATE',
  byPerson: `SELECT * FROM subscription WHERE identity = @identity OR person = @identity ORDER BY created_at, course`,
  insert: `INSERT INTO subscription (id, identity, person, course, mailbox_key, address, state, created_at)
    VALUES (@id, @key, @person, @course, @mailboxKey, @address, @state, @createdAt) ON CONFLICT (identity) DO NOTHING`,
  // `claimed_by` is the claim of a build before 0.3.0, which that of a later one ends.
  save: `UPDATE subscription SET ${assigned(CHANGED)}, claimed_by = CASE WHEN r.holder IS NULL THEN subscription.claimed_by END
    FROM {rows subscription: id, ${CHANGED}} AS r WHERE subscription.id = r.id`,
  anyCourse: 'SELECT 1 FROM subscription WHERE person IS NOT NULL LIMIT 1',
  anyNames: `SELECT 1 FROM subscription WHERE needs > ${COURSES} LIMIT 1`,
  // An entry about a subscription that was erased meanwhile is left out.
  remember: `INSERT INTO subscription_event (${ENTRY}, attempt)
    SELECT ${ENTRY.replace(/\w+/g, 'r.$&')}, CASE WHEN r.kind = 'attempt' THEN (
      SELECT count(*) + 1 FROM subscription_event e
      WHERE e.subscription = r.subscription AND e.kind = 'attempt' AND e.enrolment = r.enrolment AND e.day = r.day) END
    FROM {rows subscription_event: ${ENTRY}} AS r JOIN subscription s ON s.id = r.subscription WHERE true
    ON CONFLICT DO NOTHING`,
  forget: `DELETE FROM subscription_event WHERE subscription = @subscription AND at <= (
    SELECT at FROM subscription_event WHERE subscription = @subscription ORDER BY at DESC LIMIT 1 OFFSET ${MOST_ENTRIES})`,
  history: `SELECT at, kind, enrolment, day, attempt, outcome, reason, message_id, provider_id, source
    FROM subscription_event WHERE subscription = @subscription ORDER BY at, kind, day`,
}

/** A row of the table; times are UTC milliseconds. */
export interface Row
  extends Omit<
    SubscriptionRecord,
    'claimedBy' | 'sentDays' | 'sentLessons' | 'unreadableDays' | 'problem' | 'consent'
  > {
  /** The identity of the person, where `identity` names a course as well (`enrolmentKey`). */
  readonly person: string | undefined
  readonly holder: string | undefined
  /** Any value: somebody may have edited the row. */
  readonly sentDays: unknown
  readonly sentLessons: unknown
  readonly problemKind: Problem['kind'] | undefined
  readonly problemReason: string | undefined
  readonly problemSince: number | undefined
  readonly consentAt: number | undefined
  readonly consentHow: string | undefined
}

/** When the lesson in hand is due if the row does not say: the first course sends one lesson a day. */
const plainDueAt = (confirmedAt: number | undefined, sent: number) =>
  confirmedAt === undefined ? undefined : confirmedAt + sent * DAY_MS

/** Takes a raw row too, with null for undefined. */
export function recordOf(row: Row): SubscriptionRecord {
  const sentDays = daysOf(parsed(row.sentDays))
  const waits = sentDays !== undefined && sentDays.length < row.lessons
  return {
    id: row.id,
    identity: row.person ?? row.identity,
    address: row.address,
    course: row.course,
    courseVersion: row.courseVersion ?? undefined,
    lessons: row.lessons,
    promised: row.promised ?? undefined,
    needs: row.needs,
    dueAt: row.dueAt ?? (waits ? plainDueAt(row.confirmedAt ?? undefined, sentDays.length) : undefined),
    lastSentAt: row.lastSentAt ?? undefined,
    timeZone: row.timeZone ?? undefined,
    language: row.language ?? undefined,
    state: row.state,
    enrolment: row.enrolment,
    createdAt: row.createdAt,
    confirmedAt: row.confirmedAt ?? undefined,
    unsubscribedAt: row.unsubscribedAt ?? undefined,
    sentDays: sentDays ?? [],
    sentLessons: namesOf(parsed(row.sentLessons)),
    // A null of JSON arrives as undefined, and is no list either.
    ...(sentDays === undefined && { unreadableDays: row.sentDays ?? 'null' }),
    nextAttemptAt: row.nextAttemptAt ?? undefined,
    firstAttemptAt: row.firstAttemptAt ?? undefined,
    claimedAt: row.claimedAt ?? undefined,
    leaseUntil: row.leaseUntil ?? undefined,
    claimedBy: row.holder ?? undefined,
    fence: row.fence,
    failures: row.failures,
    problem: row.problemKind
      ? { kind: row.problemKind, reason: row.problemReason ?? '', since: row.problemSince ?? 0 }
      : undefined,
    consent: row.consentHow ? { at: row.consentAt ?? 0, how: row.consentHow } : undefined,
  }
}

/** A list as a store keeps it: SQLite in a text. */
export const parsed = (value: unknown): unknown => (typeof value === 'string' ? parsedJson(value) : value)

const daysOf = (value: unknown): readonly number[] | undefined =>
  Array.isArray(value) && value.every((day) => Number.isInteger(day) && day >= 1) ? value : undefined

const namesOf = (value: unknown): readonly string[] | undefined =>
  Array.isArray(value) && value.every((name) => typeof name === 'string') ? value : undefined

function changedOf(record: SubscriptionRecord): object {
  const { identity, address, course, createdAt, unreadableDays, sentDays, problem, consent, ...same } = record
  return {
    ...same,
    holder: record.claimedBy,
    sentDays: unreadableDays ?? sentDays,
    dueAt: dueColumn(record),
    problemKind: problem?.kind,
    problemReason: problem?.reason,
    problemSince: problem?.since,
    consentAt: consent?.at,
    consentHow: consent?.how,
  }
}

type Due = Pick<SubscriptionRecord, 'dueAt' | 'confirmedAt' | 'sentDays'>
/** None where it follows from the other columns, which a build that does not know `due_at` may change. */
export const dueColumn = ({ dueAt, confirmedAt, sentDays }: Due): number | undefined =>
  dueAt === plainDueAt(confirmedAt, sentDays.length) ? undefined : dueAt

function* list(query: string, values: object): Steps<readonly SubscriptionRecord[]> {
  return (yield* all<Row>(query, values)).map(recordOf)
}
function* findBy(query: string, values: object): Steps<SubscriptionRecord | undefined> {
  return (yield* list(query, values))[0]
}

export const subscriptions = {
  list,
  find: (id: string) => findBy(TEXTS.byId, { id }),
  /** The row stays as it is until the transaction ends. */
  lock: (id: string) => findBy(TEXTS.lockId, { id }),
  /** In the order of their ids, so that two transactions cannot wait for each other in a circle. */
  lockAll: (ids: readonly string[]) => list(TEXTS.lockIds, { ids }),
  lockKey: (key: string) => findBy(TEXTS.lockKey, { key }),
  ofPerson: (identity: string) => list(TEXTS.byPerson, { identity }),
  /** False if the person has a row for the course already. */
  *insert({ identity, course, ...row }: SubscriptionRecord & { mailboxKey: string }): Steps<boolean> {
    const key = enrolmentKey(identity, course)
    const person = key === identity ? undefined : identity
    return (yield* run(TEXTS.insert, { ...row, course, key, person })) === 1
  },
  *save(records: readonly SubscriptionRecord[]): Steps<void> {
    if (records.length === 0) return
    yield* run(TEXTS.save, { rows: records.map(changedOf) })
    yield* subscriptions.sayNames(records)
  },
  /** Closes a store that was filled to builds that do not know what its rows have. */
  *sayAll(): Steps<void> {
    if (yield* first(TEXTS.anyCourse)) yield* closeTo(COURSES_FROM)
    if (yield* first(TEXTS.anyNames)) yield* closeTo(NAMES_FROM)
  },
  /** Closes the store to builds that know no lessons by name, if some enrolment needs that. */
  *sayNames(some: readonly { readonly needs: number }[]): Steps<void> {
    if (some.some(({ needs }) => needs > COURSES)) yield* closeTo(NAMES_FROM)
  },
  /** Closes the store to builds that know one course only. */
  *sayCourse(course: string): Steps<void> {
    if (course !== FIRST_COURSE) yield* closeTo(COURSES_FROM)
  },
}

export const history = {
  /** In the transaction of the changes that the entries tell of. */
  *remember(...entries: readonly (readonly [subscription: string, entry: HistoryEntry])[]): Steps<void> {
    if (entries.length === 0) return
    const rows = entries.map(([subscription, entry]) => ({ subscription, ...entry }))
    yield* run(TEXTS.remember, { rows })
    for (const [subscription, entry] of entries)
      if (mayExceed(entry)) yield* run(TEXTS.forget, { subscription })
  },
  of: (subscription: string): Steps<readonly PastEntry[]> => all<PastEntry>(TEXTS.history, { subscription }),
}
