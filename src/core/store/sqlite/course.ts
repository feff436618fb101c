import { DAY_MS, dueAt, nextDay, TOKEN_LIFE_MS } from '../../course/schedule.ts'
import type {
  Claim,
  CourseStore,
  Problem,
  Settlement,
  Subscription,
  SubscriptionState,
} from '../../course/store.ts'
import { guarded, type SqliteDatabase } from './connection.ts'

const HOUR_MS = 60 * 60 * 1000
const CONFIRMATIONS_A_DAY = 3

interface Row {
  readonly id: string
  readonly identity: string
  readonly address: string
  readonly state: SubscriptionState
  readonly enrolment: number
  readonly created_at: number
  readonly confirmed_at: number | null
  readonly unsubscribed_at: number | null
  readonly sent_days: string
  readonly next_attempt_at: number | null
  readonly first_attempt_at: number | null
  readonly fence: number
  readonly failures: number
  readonly problem_kind: Problem['kind'] | null
  readonly problem_reason: string | null
  readonly problem_since: number | null
}

/**
 * The course on SQLite. A claim moves the row's next attempt to the end of its lease, so that the one index on
 * `next_attempt_at` finds what is due, hides what is claimed and brings back what a crash left behind.
 */
export function sqliteCourse(database: SqliteDatabase): CourseStore {
  const prepare = (sql: string) => database.prepare(sql)
  const sql = {
    byIdentity: prepare('SELECT * FROM subscription WHERE identity = ?'),
    byId: prepare('SELECT * FROM subscription WHERE id = ?'),
    insert: prepare(
      `INSERT INTO subscription (id, identity, address, state, created_at) VALUES (?, ?, ?, 'unconfirmed', ?)`,
    ),
    suppressed: prepare('SELECT 1 FROM suppression WHERE hash = ?'),
    recentConfirmations: prepare(
      'SELECT count(*) AS count, max(created_at) AS newest FROM confirmation WHERE subscription = ? AND created_at > ?',
    ),
    insertConfirmation: prepare(
      'INSERT INTO confirmation (token_hash, subscription, created_at) VALUES (?, ?, ?)',
    ),
    dropOldConfirmations: prepare('DELETE FROM confirmation WHERE subscription = ? AND created_at < ?'),
    confirmation: prepare(`
      SELECT c.created_at, c.used_at, c.subscription,
        NOT EXISTS (SELECT 1 FROM confirmation n WHERE n.subscription = c.subscription AND n.created_at > c.created_at) AS newest
      FROM confirmation c WHERE c.token_hash = ?`),
    useConfirmation: prepare('UPDATE confirmation SET used_at = ? WHERE token_hash = ?'),
    enrol: prepare(`
      UPDATE subscription SET state = 'confirmed', enrolment = enrolment + 1, fence = fence + 1, confirmed_at = @now, unsubscribed_at = NULL,
        sent_days = '[]', next_attempt_at = @now, first_attempt_at = NULL, failures = 0, problem_kind = NULL, problem_reason = NULL, problem_since = NULL
      WHERE id = @id`),
    unsubscribe: prepare(`
      UPDATE subscription SET state = 'unsubscribed', unsubscribed_at = @now, next_attempt_at = NULL, first_attempt_at = NULL, fence = fence + 1
      WHERE id = @id AND enrolment = @enrolment AND state = 'confirmed'`),
    undo: prepare(`
      UPDATE subscription SET state = 'confirmed', unsubscribed_at = NULL, next_attempt_at = @next, fence = fence + 1
      WHERE id = @id AND enrolment = @enrolment AND state = 'unsubscribed' AND problem_kind IS NOT 'bounced'`),
    claim: prepare(`
      UPDATE subscription SET next_attempt_at = @until, fence = fence + 1, first_attempt_at = coalesce(first_attempt_at, @now)
      WHERE id IN (
        SELECT id FROM subscription INDEXED BY subscription_due
        WHERE next_attempt_at <= @now AND id NOT IN (SELECT value FROM json_each(@except))
        ORDER BY next_attempt_at LIMIT @limit)
      RETURNING *`),
    holds: prepare(`SELECT 1 FROM subscription WHERE id = ? AND fence = ? AND state = 'confirmed'`),
    settle: prepare(`
      UPDATE subscription SET
        sent_days = CASE WHEN @sent THEN json_insert(sent_days, '$[#]', @day) ELSE sent_days END,
        first_attempt_at = CASE WHEN @sent THEN NULL ELSE first_attempt_at END,
        next_attempt_at = @next, failures = @failures, problem_kind = @kind, problem_reason = @reason, problem_since = @since,
        state = CASE WHEN @end THEN 'unsubscribed' ELSE state END,
        unsubscribed_at = CASE WHEN @end THEN @now ELSE unsubscribed_at END
      WHERE id = @id AND fence = @fence`),
    countDue: prepare(
      'SELECT count(*) AS count, min(next_attempt_at) AS oldest FROM subscription WHERE next_attempt_at <= ?',
    ),
    listDue: prepare(
      'SELECT * FROM subscription WHERE next_attempt_at <= ? ORDER BY next_attempt_at LIMIT ?',
    ),
    byState: prepare('SELECT state, count(*) AS count FROM subscription GROUP BY state'),
    byProblem: prepare(
      'SELECT problem_kind AS kind, count(*) AS count FROM subscription WHERE problem_kind IS NOT NULL GROUP BY problem_kind',
    ),
    problems: prepare(
      'SELECT * FROM subscription WHERE problem_kind IS NOT NULL ORDER BY problem_since LIMIT ?',
    ),
    erase: prepare('DELETE FROM subscription WHERE identity = ?'),
    suppress: prepare('INSERT OR IGNORE INTO suppression (hash, created_at) VALUES (?, ?)'),
    resolve: prepare(`
      UPDATE subscription SET sent_days = @days, next_attempt_at = @next, failures = 0, fence = fence + 1,
        first_attempt_at = CASE WHEN @sent THEN NULL ELSE first_attempt_at END, problem_kind = NULL, problem_reason = NULL, problem_since = NULL
      WHERE id = @id`),
  }
  // better-sqlite3 types rows as unknown; STRICT tables and the columns above make them Rows.
  const rowOf = (row: unknown) => row as Row | undefined
  const rowsOf = (rows: unknown[]) => rows as Row[]
  /** IMMEDIATE: takes the write lock first, so that a transaction never fails half-way for want of it. */
  const write = <T>(work: () => T): Promise<T> =>
    settleSync(() => guarded(() => database.transaction(work).immediate()))
  const read = <T>(work: () => T): Promise<T> => settleSync(() => guarded(work))

  return {
    requestConfirmation: ({ identity, address, id, tokenHash, now }) =>
      write(() => {
        let row = rowOf(sql.byIdentity.get(identity))
        if (row === undefined) {
          sql.insert.run(id, identity, address, now)
          row = rowOf(sql.byIdentity.get(identity))
        }
        if (row === undefined || row.problem_kind === 'bounced') return { mail: false }
        if (row.state === 'confirmed' && nextDay(daysOf(row)) !== undefined) return { mail: false }
        const { count, newest } = sql.recentConfirmations.get(row.id, now - DAY_MS) as {
          count: number
          newest: number | null
        }
        if (count >= CONFIRMATIONS_A_DAY || (newest !== null && newest > now - HOUR_MS))
          return { mail: false }
        sql.dropOldConfirmations.run(row.id, now - TOKEN_LIFE_MS)
        sql.insertConfirmation.run(tokenHash, row.id, now)
        return { mail: true, address: row.address, id: row.id }
      }),
    confirm: ({ tokenHash, now }) =>
      write(() => {
        const found = sql.confirmation.get(tokenHash) as
          | { created_at: number; used_at: number | null; subscription: string; newest: 0 | 1 }
          | undefined
        if (found === undefined) return 'invalid'
        if (found.used_at !== null) return 'confirmed'
        if (found.newest === 0) return 'invalid'
        if (now - found.created_at >= TOKEN_LIFE_MS) return 'expired'
        sql.useConfirmation.run(now, tokenHash)
        sql.enrol.run({ id: found.subscription, now })
        return 'confirmed'
      }),
    unsubscribe: ({ id, enrolment, now }) => write(() => void sql.unsubscribe.run({ id, enrolment, now })),
    undoUnsubscribe: ({ id, enrolment, now }) =>
      write(() => {
        const row = rowOf(sql.byId.get(id))
        if (row?.confirmed_at == null) return
        const day = nextDay(daysOf(row))
        sql.undo.run({
          id,
          enrolment,
          next: day === undefined ? null : Math.max(now, dueAt(row.confirmed_at, day)),
        })
      }),
    claimDue: ({ now, limit, leaseMs, except }) =>
      write(() =>
        rowsOf(sql.claim.all({ now, limit, until: now + leaseMs, except: JSON.stringify(except) }))
          .flatMap((row) => claimOf(row) ?? [])
          .sort((a, b) => a.confirmedAt - b.confirmedAt),
      ),
    stillHolds: (claim) => read(() => sql.holds.get(claim.subscription, claim.fence) !== undefined),
    settle: (settlements) =>
      write(() => settlements.forEach((one) => void sql.settle.run(settlementRow(one)))),
    countDue: (now) => read(() => (sql.countDue.get(now) as { count: number }).count),
    listDue: (now, limit) => read(() => rowsOf(sql.listDue.all(now, limit)).map(subscriptionOf)),
    counts: (now) =>
      read(() => {
        const states = sql.byState.all() as { state: SubscriptionState; count: number }[]
        const problems = sql.byProblem.all() as { kind: Problem['kind']; count: number }[]
        const due = sql.countDue.get(now) as { count: number; oldest: number | null }
        const of = <T extends { count: number }>(rows: readonly T[], matches: (row: T) => boolean) =>
          rows.find(matches)?.count ?? 0
        return {
          byState: {
            unconfirmed: of(states, ({ state }) => state === 'unconfirmed'),
            confirmed: of(states, ({ state }) => state === 'confirmed'),
            unsubscribed: of(states, ({ state }) => state === 'unsubscribed'),
          },
          dueNow: due.count,
          dueInADay: (sql.countDue.get(now + DAY_MS) as { count: number }).count,
          parked: of(problems, ({ kind }) => kind === 'parked'),
          unknown: of(problems, ({ kind }) => kind === 'unknown'),
          oldestDueAt: due.oldest ?? undefined,
        }
      }),
    find: (identity) => read(() => optional(rowOf(sql.byIdentity.get(identity)))),
    findById: (id) => read(() => optional(rowOf(sql.byId.get(id)))),
    listProblems: (limit) => read(() => rowsOf(sql.problems.all(limit)).map(subscriptionOf)),
    erase: ({ identity, suppressionHash, now }) =>
      write(() => {
        sql.suppress.run(suppressionHash, now)
        return sql.erase.run(identity).changes > 0
      }),
    isSuppressed: (hash) => read(() => sql.suppressed.get(hash) !== undefined),
    resolve: ({ id, as, now }) =>
      write(() => {
        const row = rowOf(sql.byId.get(id))
        const day = row && nextDay(daysOf(row))
        if (
          row?.confirmed_at == null ||
          row.state !== 'confirmed' ||
          row.problem_kind === null ||
          day === undefined
        )
          return false
        const days = as === 'sent' ? [...daysOf(row), day] : daysOf(row)
        const after = nextDay(days)
        const next = as === 'retry' ? now : after === undefined ? null : dueAt(row.confirmed_at, after)
        sql.resolve.run({ id, days: JSON.stringify(days), next, sent: as === 'sent' ? 1 : 0 })
        return true
      }),
  }
}

/** better-sqlite3 answers at once; the port is asynchronous, so a throw becomes a rejection. */
async function settleSync<T>(work: () => T): Promise<T> {
  return work()
}

function daysOf(row: Row): number[] {
  return JSON.parse(row.sent_days) as number[]
}

function optional(row: Row | undefined): Subscription | undefined {
  return row === undefined ? undefined : subscriptionOf(row)
}

function problemOf(row: Row): Problem | undefined {
  return row.problem_kind === null
    ? undefined
    : { kind: row.problem_kind, reason: row.problem_reason ?? '', since: row.problem_since ?? 0 }
}

function subscriptionOf(row: Row): Subscription {
  return {
    id: row.id,
    address: row.address,
    state: row.state,
    enrolment: row.enrolment,
    createdAt: row.created_at,
    confirmedAt: row.confirmed_at ?? undefined,
    unsubscribedAt: row.unsubscribed_at ?? undefined,
    sentDays: daysOf(row),
    nextAttemptAt: row.next_attempt_at ?? undefined,
    failures: row.failures,
    problem: problemOf(row),
  }
}

function claimOf(row: Row): Claim | undefined {
  const day = nextDay(daysOf(row))
  if (day === undefined || row.confirmed_at === null) return undefined
  return {
    subscription: row.id,
    address: row.address,
    enrolment: row.enrolment,
    day,
    confirmedAt: row.confirmed_at,
    fence: row.fence,
    firstAttemptAt: row.first_attempt_at ?? row.confirmed_at,
    failures: row.failures,
    problem: problemOf(row),
  }
}

function settlementRow({
  claim,
  now,
  sent,
  nextAttemptAt,
  failures,
  problem,
  end,
}: Settlement): Record<string, string | number | null> {
  return {
    id: claim.subscription,
    fence: claim.fence,
    day: claim.day,
    now,
    sent: sent ? 1 : 0,
    next: nextAttemptAt ?? null,
    failures,
    kind: problem?.kind ?? null,
    reason: problem?.reason ?? null,
    since: problem?.since ?? null,
    end: end ? 1 : 0,
  }
}
