import { BREAKER, breach, dayOfFeedback } from '../../mail/feedback/breaker.ts'
import {
  dayNameOf,
  furthestUs,
  type MailCount,
  type MailDayCount,
  minuteOf,
  type Pause,
  type SendingStore,
  sumCounts,
} from '../../mail/feedback/sending.ts'
import { addAudit } from './audit.ts'
import { guarded, type Pool, type Queryable, transaction } from './connection.ts'
import { statements } from './statements.ts'

/** Adds to the counts, within the transaction of what is counted. */
export async function addCounts(on: Queryable, counts: readonly MailCount[]): Promise<void> {
  if (counts.length === 0) return
  const { minutes, days } = sumCounts(counts)
  await on.query(
    `INSERT INTO platformctl.mail_minute AS m (minute, kind, count)
     SELECT minute, kind, count FROM jsonb_to_recordset($1::jsonb) AS r (minute bigint, kind text, count bigint)
     ON CONFLICT (minute, kind) DO UPDATE SET count = m.count + excluded.count`,
    [JSON.stringify(minutes)],
  )
  await on.query(
    `INSERT INTO platformctl.mail_day AS d (day, source, domain, kind, count)
     SELECT day, source, domain, kind, count FROM jsonb_to_recordset($1::jsonb) AS r (day text, source text, domain text, kind text, count bigint)
     ON CONFLICT (day, source, domain, kind) DO UPDATE SET count = d.count + excluded.count`,
    [JSON.stringify(days)],
  )
}

/** The pause, or the sums that decide about one, by one statement. */
const STATE = `
  SELECT b.paused_at, b.reason,
    (SELECT jsonb_object_agg(kind, count) FROM (
      SELECT kind, sum(count) AS count FROM platformctl.mail_minute
      WHERE minute >= greatest($1, coalesce(b.resumed_at, 0) / 60000 + 1) GROUP BY kind) AS sums) AS sums
  FROM (SELECT 1) AS one LEFT JOIN platformctl.breaker b ON b.name = 'mail'`

interface State {
  readonly paused_at: number | null
  readonly reason: string | null
  readonly sums: Readonly<Record<string, number>> | null
}

/** Sending state shared by all dispatchers of a PostgreSQL store. */
export function postgresSending(pool: Pool): SendingStore {
  const statement = statements(pool)
  const pauseOf = (row: Pick<State, 'paused_at' | 'reason'> | undefined): Pause | undefined =>
    typeof row?.paused_at === 'number' ? { at: row.paused_at, reason: row.reason ?? '' } : undefined
  const read = async (on: Pick<Queryable, 'query'>) => {
    const { rows } = await on.query<Pick<State, 'paused_at' | 'reason'>>(
      `SELECT paused_at, reason FROM platformctl.breaker WHERE name = 'mail'`,
    )
    return pauseOf(rows[0])
  }
  return {
    count: (counts) => guarded(() => transaction(pool, (on) => addCounts(on, counts))),
    check: (now) =>
      guarded(async () => {
        const { rows } = await pool.query<State>(STATE, [minuteOf(now - BREAKER.windowMs) + 1])
        const pause = pauseOf(rows[0])
        if (pause) return pause
        const reason = breach(dayOfFeedback((kind) => Number(rows[0]?.sums?.[kind] ?? 0)))
        if (reason === undefined) return undefined
        await pool.query(
          `INSERT INTO platformctl.breaker AS b (name, paused_at, reason) VALUES ('mail', $1, $2)
           ON CONFLICT (name) DO UPDATE SET paused_at = excluded.paused_at, reason = excluded.reason WHERE b.paused_at IS NULL`,
          [now, reason],
        )
        return read(pool)
      }),
    pause: () => guarded(() => read(pool)),
    resume: (now, audit) =>
      guarded(() =>
        transaction(pool, async (on) => {
          const pause = await read(on)
          if (pause === undefined) return undefined
          await on.query(
            `UPDATE platformctl.breaker SET paused_at = NULL, reason = NULL, resumed_at = $1 WHERE name = 'mail'`,
            [now],
          )
          await addAudit(on, audit)
          return pause
        }),
      ),
    days: (since) =>
      guarded(async () => {
        const { rows } = await pool.query<MailDayCount>(
          'SELECT day, source, domain, kind, count FROM platformctl.mail_day WHERE day >= $1 ORDER BY day, source, domain, kind',
          [dayNameOf(since)],
        )
        return rows
      }),
    reserve: ({ messages, intervalUs }) =>
      guarded(async () => {
        const now = '(extract(epoch FROM clock_timestamp()) * 1000000)::bigint'
        const { rows } = await pool.query<{ wait: number }>(
          `INSERT INTO platformctl.pace AS p (name, next_us) VALUES ('mail', ${now} + $1::bigint)
           ON CONFLICT (name) DO UPDATE SET next_us =
             CASE WHEN p.next_us BETWEEN ${now} AND ${now} + $2::bigint THEN p.next_us ELSE ${now} END + $1::bigint
           RETURNING p.next_us - $1::bigint - ${now} AS wait`,
          [messages * intervalUs, furthestUs(intervalUs)],
        )
        return Math.max(0, rows[0]?.wait ?? 0)
      }),
    prune: (before) =>
      statement.run('DELETE FROM platformctl.mail_minute WHERE minute < $1', [minuteOf(before)]),
  }
}
