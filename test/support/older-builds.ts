import Database from 'better-sqlite3'
import pg from 'pg'
import type { openStore } from '../../src/core/store/open.ts'

/** A row as the older build read it. */
interface OldRow extends Readonly<Record<string, unknown>> {
  readonly id: string
  readonly address: string
  readonly enrolment: number
  readonly course: string
  readonly fence: number
  readonly sent_days: unknown
  readonly confirmed_at: number
  readonly first_attempt_at: number | null
  readonly claimed_at: number | null
}

interface Sent {
  readonly to: string
  readonly day: number
}

export type OldVersion = '0.1.0' | '0.2.0'

const LEASE_MS = 90_000
const DAY_MS = 86_400_000
/** No call of an older build claims one row more often than this, unless it spins. */
const MOST_CLAIMS = 10

const lease = (version: OldVersion, text: string) => (version === '0.2.0' ? text : '')

/** What older builds asked of SQLite, word for word. */
const SQLITE = (version: OldVersion) => ({
  interrupted:
    version === '0.1.0'
      ? `SELECT rowid, * FROM subscription INDEXED BY subscription_claimed
      WHERE claimed_at IS NOT NULL AND next_attempt_at <= @now AND claimed_by IS NOT @call
      ORDER BY first_attempt_at LIMIT @limit`
      : `SELECT rowid, * FROM subscription INDEXED BY subscription_claimed
      WHERE claimed_at IS NOT NULL AND next_attempt_at IS NOT NULL AND claimed_by IS NOT @call
        AND CASE WHEN lease_until IS NULL THEN next_attempt_at <= @now
          ELSE lease_until <= @lease OR lease_until > @lease + ${LEASE_MS} END
      ORDER BY first_attempt_at LIMIT @limit`,
  due: `SELECT rowid, * FROM subscription INDEXED BY subscription_due
      WHERE (failures > 0) = 0 AND next_attempt_at IS NOT NULL AND next_attempt_at <= @now AND claimed_at IS NULL AND claimed_by IS NOT @call
      ORDER BY next_attempt_at LIMIT @limit`,
  claim: `UPDATE subscription SET next_attempt_at = @next_attempt_at, first_attempt_at = @first_attempt_at, claimed_at = @claimed_at, ${lease(version, 'lease_until = @lease_until, ')}claimed_by = @claimed_by, fence = @fence
      WHERE rowid = @rowid`,
  holds: `SELECT 1 FROM subscription WHERE id = @id AND fence = @fence AND state = 'confirmed'`,
  sent: `UPDATE subscription SET sent_days = @sent_days, next_attempt_at = @next_attempt_at, first_attempt_at = NULL, claimed_at = NULL, ${lease(version, 'lease_until = NULL, ')}
        failures = 0, problem_kind = NULL, problem_reason = NULL, problem_since = NULL, fence = fence + 1
      WHERE id = @id AND fence = @fence`,
})

const COLUMNS = (version: OldVersion) => [
  'state text',
  'enrolment integer',
  'confirmed_at bigint',
  'unsubscribed_at bigint',
  ...(version === '0.2.0'
    ? [
        'course_version text',
        'lessons integer',
        'due_at bigint',
        'last_sent_at bigint',
        'time_zone text',
        'language text',
        'lease_until bigint',
      ]
    : []),
  'sent_days jsonb',
  'next_attempt_at bigint',
  'first_attempt_at bigint',
  'claimed_at bigint',
  'claimed_by text',
  'fence integer',
  'failures integer',
  'problem_kind text',
  'problem_reason text',
  'problem_since bigint',
]

const TABLE = 'platformctl.subscription'
/** What they asked of PostgreSQL: every change of a row was one statement over all its columns. */
const POSTGRES = (version: OldVersion) => ({
  interrupted: `SELECT * FROM ${TABLE} WHERE claimed_at IS NOT NULL AND next_attempt_at IS NOT NULL AND claimed_by IS DISTINCT FROM $2
    AND ${version === '0.1.0' ? 'next_attempt_at <= $1' : 'CASE WHEN lease_until IS NULL THEN next_attempt_at <= $1 ELSE lease_until <= $4 END'}
  ORDER BY first_attempt_at LIMIT $3 FOR UPDATE SKIP LOCKED`,
  due: `SELECT * FROM ${TABLE}
  WHERE next_attempt_at IS NOT NULL AND failures = 0 AND next_attempt_at <= $1 AND claimed_at IS NULL AND claimed_by IS DISTINCT FROM $2
  ORDER BY next_attempt_at LIMIT $3 FOR UPDATE SKIP LOCKED`,
  save: `UPDATE ${TABLE} s SET ${COLUMNS(version)
    .map((column) => column.split(' ')[0])
    .map((name) => `${name} = r.${name}`)
    .join(', ')}
  FROM jsonb_to_recordset($1::jsonb) AS r (id text, ${COLUMNS(version).join(', ')})
  WHERE s.id = r.id`,
  holds: `SELECT 1 FROM ${TABLE} WHERE id = $1 AND fence = $2 AND state = 'confirmed'`,
})

interface Statements {
  /** Claims in one transaction, and gives what the build takes for its claims. */
  claim(input: { now: number; lease: number; call: string; limit: number }): Promise<readonly OldRow[]>
  holds(row: OldRow): Promise<boolean>
  sent(row: OldRow, columns: Readonly<Record<string, unknown>>): Promise<void>
  /** Any other statement, for what a test looks at or prepares. */
  run(sql: string): Promise<readonly Readonly<Record<string, unknown>>[]>
  close(): Promise<void>
}

const taken = (
  row: OldRow,
  { now, lease: leaseNow, call, version }: { now: number; lease: number; call: string; version: OldVersion },
): OldRow => ({
  ...row,
  next_attempt_at: now + LEASE_MS,
  first_attempt_at: row.first_attempt_at ?? now,
  claimed_at: now,
  ...(version === '0.2.0' && { lease_until: leaseNow + LEASE_MS }),
  claimed_by: call,
  fence: row.fence + 1,
})

function onSqlite(database: Database.Database, version: OldVersion): Statements {
  const sql = SQLITE(version)
  const statements = new Map<string, Database.Statement>()
  const prepared = (text: string) => {
    const statement = statements.get(text) ?? database.prepare(text)
    statements.set(text, statement)
    return statement
  }
  return {
    claim: async ({ limit, ...input }) =>
      database
        .transaction(() => {
          const asked = { ...input, limit }
          const rows = [...prepared(sql.interrupted).all(asked), ...prepared(sql.due).all(asked)]
          return (rows as OldRow[]).map((row) => {
            const claim = taken(row, { ...input, version })
            prepared(sql.claim).run(claim)
            return claim
          })
        })
        .immediate(),
    holds: async (row) => prepared(sql.holds).get(row) !== undefined,
    sent: async (row, columns) => void prepared(sql.sent).run({ ...row, ...columns }),
    async run(text) {
      const statement = database.prepare(text)
      if (statement.reader) return statement.all() as Readonly<Record<string, unknown>>[]
      statement.run()
      return []
    },
    close: async () => void database.close(),
  }
}

function onPostgres(pool: pg.Pool, version: OldVersion): Statements {
  const sql = POSTGRES(version)
  return {
    async claim({ now, lease: leaseNow, call, limit }) {
      const on = await pool.connect()
      try {
        await on.query('BEGIN')
        const interrupted = [now, call, limit, ...(version === '0.2.0' ? [leaseNow] : [])]
        const rows = [
          ...(await on.query<OldRow>(sql.interrupted, interrupted)).rows,
          ...(await on.query<OldRow>(sql.due, [now, call, limit])).rows,
        ]
        const claims = rows.map((row) => taken(row, { now, lease: leaseNow, call, version }))
        if (claims.length > 0) await on.query(sql.save, [JSON.stringify(claims)])
        await on.query('COMMIT')
        return claims
      } finally {
        on.release()
      }
    },
    holds: async ({ id, fence }) => ((await pool.query(sql.holds, [id, fence])).rowCount ?? 0) > 0,
    sent: async (row, columns) =>
      void (await pool.query(sql.save, [
        JSON.stringify([{ ...row, ...columns, fence: row.fence + 1, claimed_at: null }]),
      ])),
    run: async (text) => (await pool.query(text)).rows,
    close: () => pool.end(),
  }
}

/**
 * A dispatcher of an older build on a store of this one: its own statements, and what it made of their answers. It
 * knows one course of seven lessons, one a day.
 */
export function olderBuild(address: NonNullable<Parameters<typeof openStore>[0]>, version: OldVersion) {
  const statements =
    address.kind === 'sqlite'
      ? onSqlite(new Database(address.file), version)
      : onPostgres(
          new pg.Pool({
            connectionString: address.url.reveal(),
            max: 1,
            types: { getTypeParser: (id: number) => (id === 20 ? Number : pg.types.getTypeParser(id)) },
          } as pg.PoolConfig),
          version,
        )
  const daysOf = ({ sent_days: days }: OldRow): readonly number[] =>
    (typeof days === 'string' ? JSON.parse(days) : days) as readonly number[]
  return {
    ...statements,
    /** A whole dispatch call; gives what went out. Throws if the call would never end. */
    async dispatch(
      call: string,
      now: number,
      between: () => Promise<void> = async () => {},
    ): Promise<readonly (Pick<OldRow, 'id' | 'enrolment' | 'course'> & Sent)[]> {
      const sent: (OldRow & Sent)[] = []
      const times = new Map<string, number>()
      for (;;) {
        const claims = await statements.claim({ now, lease: now, call, limit: 100 })
        if (claims.length === 0) return sent
        for (const { id } of claims) times.set(id, (times.get(id) ?? 0) + 1)
        if (claims.some(({ id }) => times.get(id) === MOST_CLAIMS))
          throw new Error('the older build claims the same rows again and again')
        await between()
        for (const row of claims) {
          if (!(await statements.holds(row))) continue
          const day = daysOf(row).length + 1
          sent.push({ ...row, to: row.address, day })
          await statements.sent(row, {
            sent_days:
              address.kind === 'sqlite' ? JSON.stringify([...daysOf(row), day]) : [...daysOf(row), day],
            next_attempt_at: day < 7 ? row.confirmed_at + day * DAY_MS : null,
            ...(version === '0.2.0' && { lease_until: null }),
            first_attempt_at: null,
          })
        }
      }
    },
  }
}
