import type { DispatchRequest } from '../course/dispatch-request.ts'
import { NO_LESSON, NOT_HERE } from '../course/pinned-texts.ts'
import type { Backlog, CourseCounts, CourseStore } from '../course/store.ts'
import type { Problem, SubscriptionState } from '../course/subscription.ts'
import { UNREADABLE } from '../course/transitions/claim.ts'
import { DAY_MS, HOUR_MS } from '../durations.ts'
import type { LateLessons } from '../incidents/conditions.ts'
import { all, first, getTime, type Sql, type Steps, scalar } from './sql.ts'
import { subscriptions } from './subscriptions.ts'

/** The name in `meta` of the time at which the last lesson was sent, to within seconds. */
export const SENT_NOTE = 'lesson_sent_at'
/** The same of each other stream, whose name follows. */
export const STREAM_SENT_NOTE = 'sent_at '

/** When the lesson in hand became due, as `recordOf` reads it. */
export const LESSON_DUE = `coalesce(due_at, confirmed_at + CAST(${DAY_MS} AS bigint) * {length sent_days})`

/** Not overdue, or an hour after the lesson before; a clock that was set back has sent nothing in the future. */
const gentleAt = (time: string) =>
  `(last_sent_at IS NULL OR last_sent_at <= ${time} - CAST(${HOUR_MS} AS bigint) OR last_sent_at > @now OR ${LESSON_DUE} > last_sent_at)`
export const IS_GENTLE = gentleAt('@now')

/**
 * What holds of every lesson that a call is asked for: a condition of a `DispatchRequest` is added here, for all. A field
 * left out is null: `(CAST(@course AS text) IS NULL OR course = @course)`, where PostgreSQL needs the CAST.
 */
export const ASKED_FOR = 'next_attempt_at IS NOT NULL'

/** Both halves of the index of what is due: lessons that never failed, and those that did. */
function bothHalves(select: string, bounds: string): string {
  const planned = `${select} FROM subscription {by subscription_due} WHERE ${ASKED_FOR}`
  return `${planned} AND {neverFailed} AND ${bounds} UNION ALL ${planned} AND {failed} AND ${bounds}`
}
const TROUBLED = 'FROM subscription {by subscription_problem} WHERE problem_kind IS NOT NULL'
/** Given up to an operator, if there is no next attempt. */
export const MAY_BE_UNDECIDED = "state = 'confirmed' AND problem_kind IN ('parked', 'unknown')"
const LATER = 'FILTER (WHERE next_attempt_at > @now)'

export const TEXTS = {
  // Lessons with a problem or out for sending: attempts moved their next attempt, but not the time they became due.
  backlog: `SELECT CAST(sum(due) AS bigint) AS due, CAST(sum(waiting) AS bigint) AS waiting,
        CAST(sum(sending) AS bigint) AS sending, min(next) AS next_try_at, min(oldest) AS oldest_due_at
      FROM (${bothHalves('SELECT count(*) AS due, 0 AS waiting, 0 AS sending, CAST(NULL AS bigint) AS next, min(next_attempt_at) AS oldest', 'next_attempt_at <= @now')}
        UNION ALL SELECT 0, count(*) ${LATER}, 0, min(next_attempt_at) ${LATER}, min(${LESSON_DUE}) ${TROUBLED} AND ${ASKED_FOR}
        UNION ALL SELECT 0, 0, count(*) ${LATER}, NULL, min(${LESSON_DUE}) FROM subscription {by subscription_claimed}
          WHERE claimed_at IS NOT NULL AND ${ASKED_FOR} AND problem_kind IS NULL) AS parts`,
  byHour: `SELECT CAST((at - @now) / ${HOUR_MS} AS bigint) AS hour, count(*) AS count FROM (${bothHalves(
    'SELECT next_attempt_at AS at',
    `next_attempt_at > @now AND next_attempt_at < @now + ${DAY_MS}`,
  )}) AS halves GROUP BY 1`,
  byState: `SELECT course, state, {length sent_days} AS lessons, count(*) AS count FROM subscription GROUP BY 1, 2, 3`,
  byProblem: `SELECT problem_kind AS kind, count(*) AS count FROM subscription WHERE problem_kind IS NOT NULL GROUP BY 1`,
  listDue: `SELECT * FROM subscription WHERE id IN (SELECT id FROM (${bothHalves('SELECT id, next_attempt_at', 'next_attempt_at <= @now')}) AS halves
      ORDER BY next_attempt_at LIMIT @limit) ORDER BY next_attempt_at`,
  isDue: `${bothHalves('SELECT 1 AS one', `next_attempt_at <= @now AND ${IS_GENTLE}`)} LIMIT 1`,
  // A removed course is paused; a lesson whose file is gone is asked for every hour, and nobody meant that.
  late: `${bothHalves('SELECT next_attempt_at AS at, CAST(NULL AS text) AS why', `next_attempt_at <= @before AND ${gentleAt('@before')}`)}
      UNION ALL SELECT ${LESSON_DUE}, problem_reason ${TROUBLED} AND ${ASKED_FOR} AND ${LESSON_DUE} <= @before AND problem_reason LIKE '${NO_LESSON}%'
      ORDER BY at LIMIT 1`,
  problems: `SELECT * FROM subscription WHERE problem_kind IS NOT NULL AND (problem_since, id) > (@since, @id)
      ORDER BY problem_since, id LIMIT @limit`,
  // Without those that nobody can resolve before their row is repaired.
  undecided: `SELECT count(*) AS count ${TROUBLED} AND ${MAY_BE_UNDECIDED} AND next_attempt_at IS NULL
      AND problem_reason IS DISTINCT FROM '${UNREADABLE}'`,
  stalled: `WITH last AS (
        SELECT coalesce((SELECT CAST(value AS bigint) FROM meta WHERE name = '${SENT_NOTE}'), (SELECT max(last_sent_at) FROM subscription), 0) AS at)
      SELECT ${LESSON_DUE} AS due ${TROUBLED} AND problem_kind IN ('failed', 'unknown', 'parked')
        AND state = 'confirmed' AND coalesce(problem_reason, '') NOT LIKE '${NOT_HERE}%'
        AND ${LESSON_DUE} <= @before AND ${LESSON_DUE} > (SELECT CASE WHEN at <= @now THEN at ELSE 0 END FROM last)
      LIMIT 1`,
}

export function counts({ one, read }: Sql) {
  // Sums over no rows are a row too.
  const backlog = (now: number, request?: DispatchRequest) =>
    first(TEXTS.backlog, { ...request, now }) as Steps<Backlog>
  return {
    backlog: (now, request) => one(backlog(now, request)),
    lastSentAt: () => read(() => getTime(SENT_NOTE)),
    counts: (now, longest = 0) =>
      read(function* (): Steps<CourseCounts> {
        const states = yield* all<StateRow>(TEXTS.byState)
        const problems = yield* all<{ kind: Problem['kind']; count: number }>(TEXTS.byProblem)
        const hours = yield* all<{ hour: number; count: number }>(TEXTS.byHour, { now })
        const { due, sending, ...inHand } = yield* backlog(now)
        const most = Math.max(longest, ...states.map(({ lessons }) => lessons))
        const courses = [...Map.groupBy(states, ({ course }) => course)].sort()
        return {
          byCourse: Object.fromEntries(courses.map(([course, of]) => [course, byState(of)])),
          byState: byState(states),
          byLessons: Array.from({ length: most + 1 }, (_, sent) =>
            sum(states, ({ state, lessons }) => state === 'confirmed' && lessons === sent),
          ),
          dueNow: due + sending,
          ...inHand,
          dueByHour: Array.from({ length: 24 }, (_, wanted) => sum(hours, ({ hour }) => hour === wanted)),
          parked: sum(problems, ({ kind }) => kind === 'parked'),
          unknown: sum(problems, ({ kind }) => kind === 'unknown'),
        }
      }),
    listDue: (now, limit, request) => one(subscriptions.list(TEXTS.listDue, { ...request, now, limit })),
    isDue: async (now) => (await one(first(TEXTS.isDue, { now }))) !== undefined,
    listProblems: (limit, after = { since: Number.MIN_SAFE_INTEGER, id: '' }) =>
      one(subscriptions.list(TEXTS.problems, { limit, ...after })),
    undecided: async () => (await one(scalar<number>(TEXTS.undecided))) ?? 0,
    late: (asked) =>
      read(function* (): Steps<LateLessons> {
        return { stalledAt: yield* scalar(TEXTS.stalled, asked), ...(yield* first(TEXTS.late, asked)) }
      }),
  } satisfies Partial<CourseStore>
}

type StateRow = { course: string; state: SubscriptionState; lessons: number; count: number }

const sum = <T extends { readonly count: number }>(rows: readonly T[], matches: (row: T) => boolean) =>
  rows.reduce((total, row) => (matches(row) ? total + row.count : total), 0)

const byState = (rows: readonly StateRow[]) => ({
  unconfirmed: sum(rows, ({ state }) => state === 'unconfirmed'),
  confirmed: sum(rows, ({ state }) => state === 'confirmed'),
  unsubscribed: sum(rows, ({ state }) => state === 'unsubscribed'),
})
