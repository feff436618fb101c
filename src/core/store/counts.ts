import type { DispatchRequest } from '../course/dispatch-request.ts'
import type { Backlog, CourseCounts, CourseStore } from '../course/store.ts'
import type { Problem, SubscriptionState } from '../course/subscription.ts'
import { DAY_MS, HOUR_MS } from '../durations.ts'
import { all, first, getTime, type Sql, type Steps, scalar } from './sql.ts'
import { subscriptions } from './subscriptions.ts'

/** The name in `meta` of the time at which the last lesson was sent, to within seconds. */
export const SENT_NOTE = 'lesson_sent_at'

const FIRST = { since: Number.MIN_SAFE_INTEGER, id: '' }

/** When the lesson in hand became due, as `recordOf` reads it. */
export const LESSON_DUE = `coalesce(due_at, confirmed_at + CAST(${DAY_MS} AS bigint) * {length sent_days})`

/** Not overdue, or an hour after the lesson before; a clock that was set back has sent nothing in the future. */
export const IS_GENTLE = `(last_sent_at IS NULL OR last_sent_at <= @now - CAST(${HOUR_MS} AS bigint) OR last_sent_at > @now OR ${LESSON_DUE} > last_sent_at)`

/**
 * What holds of every lesson that a call is asked for: a condition of a `DispatchRequest` is added here, and claims,
 * counts, route and embedding have it. A field left out is null: `(CAST(@course AS text) IS NULL OR course = @course)`.
 */
export const ASKED_FOR = 'next_attempt_at IS NOT NULL'

/** Both halves of the index of what is due: lessons that never failed, and those that did. */
function bothHalves(select: string, bounds: string): string {
  const planned = `${select} FROM subscription {by subscription_due} WHERE ${ASKED_FOR}`
  return `${planned} AND {neverFailed} AND ${bounds} UNION ALL ${planned} AND {failed} AND ${bounds}`
}
const TROUBLED = 'FROM subscription {by subscription_problem} WHERE problem_kind IS NOT NULL'

export const TEXTS = {
  due: `SELECT CAST(coalesce(sum(n), 0) AS bigint) AS count, min(oldest) AS oldest
      FROM (${bothHalves('SELECT count(*) AS n, min(next_attempt_at) AS oldest', 'next_attempt_at <= @now')}) AS halves`,
  // Lessons with a problem or out for sending: attempts moved their next attempt, but not the time they became due.
  inHand: `SELECT count(*) FILTER (WHERE waits AND at > @now) AS waiting,
        count(*) FILTER (WHERE NOT waits AND at > @now) AS sending,
        min(at) FILTER (WHERE waits AND at > @now) AS next, min(due) AS oldest
      FROM (
        SELECT true AS waits, next_attempt_at AS at, ${LESSON_DUE} AS due ${TROUBLED} AND ${ASKED_FOR}
        UNION ALL SELECT false, next_attempt_at, ${LESSON_DUE} FROM subscription {by subscription_claimed}
          WHERE claimed_at IS NOT NULL AND ${ASKED_FOR} AND problem_kind IS NULL) AS in_hand`,
  byHour: `SELECT CAST((at - @now) / ${HOUR_MS} AS bigint) AS hour, count(*) AS count FROM (${bothHalves(
    'SELECT next_attempt_at AS at',
    `next_attempt_at > @now AND next_attempt_at < @now + ${DAY_MS}`,
  )}) AS halves GROUP BY 1`,
  byState: `SELECT course, state, {length sent_days} AS lessons, count(*) AS count FROM subscription GROUP BY 1, 2, 3`,
  byProblem: `SELECT problem_kind AS kind, count(*) AS count FROM subscription WHERE problem_kind IS NOT NULL GROUP BY 1`,
  listDue: `SELECT * FROM subscription WHERE id IN (SELECT id FROM (${bothHalves('SELECT id, next_attempt_at', 'next_attempt_at <= @now')}) AS halves
      ORDER BY next_attempt_at LIMIT @limit) ORDER BY next_attempt_at`,
  isDue: `${bothHalves('SELECT 1 AS one', `next_attempt_at <= @now AND ${IS_GENTLE}`)} LIMIT 1`,
  problems: `SELECT * FROM subscription WHERE problem_kind IS NOT NULL AND (problem_since, id) > (@since, @id)
      ORDER BY problem_since, id LIMIT @limit`,
  stalled: `WITH last AS (
        SELECT coalesce((SELECT CAST(value AS bigint) FROM meta WHERE name = '${SENT_NOTE}'), (SELECT max(last_sent_at) FROM subscription), 0) AS at)
      SELECT ${LESSON_DUE} AS due ${TROUBLED} AND problem_kind IN ('failed', 'unknown', 'parked')
        AND state = 'confirmed'
        AND ${LESSON_DUE} <= @before AND ${LESSON_DUE} > (SELECT CASE WHEN at <= @now THEN at ELSE 0 END FROM last)
      LIMIT 1`,
}

export function counts({ one, read }: Sql) {
  function* backlog(now: number, request?: DispatchRequest): Steps<Backlog> {
    const due = yield* first<{ count: number; oldest: number | undefined }>(TEXTS.due, { ...request, now })
    type InHand = { waiting: number; sending: number; next?: number; oldest?: number }
    const inHand = yield* first<InHand>(TEXTS.inHand, { ...request, now })
    const oldest = [due?.oldest, inHand?.oldest].filter((time) => time !== undefined)
    return {
      due: due?.count ?? 0,
      waiting: inHand?.waiting ?? 0,
      sending: inHand?.sending ?? 0,
      nextTryAt: inHand?.next,
      oldestDueAt: oldest.length === 0 ? undefined : Math.min(...oldest),
    }
  }
  return {
    backlog: (now, request) => read(() => backlog(now, request)),
    lastSentAt: () => read(() => getTime(SENT_NOTE)),
    counts: (now, longest = 0) =>
      read(function* (): Steps<CourseCounts> {
        const states = yield* all<StateRow>(TEXTS.byState)
        const problems = yield* all<{ kind: Problem['kind']; count: number }>(TEXTS.byProblem)
        const hours = yield* all<{ hour: number; count: number }>(TEXTS.byHour, { now })
        const { due, sending, ...inHand } = yield* backlog(now)
        const most = Math.max(longest, ...states.map(({ lessons }) => lessons))
        const of = (wanted: string) => states.filter(({ course }) => course === wanted)
        const courses = [...new Set(states.map(({ course }) => course))].sort()
        return {
          byCourse: Object.fromEntries(courses.map((course) => [course, byState(of(course))])),
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
    listProblems: (limit, after = FIRST) => one(subscriptions.list(TEXTS.problems, { limit, ...after })),
    stalledSince: (at) => one(scalar(TEXTS.stalled, at)),
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
