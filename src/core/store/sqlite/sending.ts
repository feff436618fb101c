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
import type { Guarded, SqliteDatabase } from './connection.ts'
import type { Journal } from './journal.ts'

/** Adds to the counts; call it within a transaction. */
export function sqliteCounts(database: SqliteDatabase): (counts: readonly MailCount[]) => void {
  const minute = database.prepare(
    'INSERT INTO mail_minute (minute, kind, count) VALUES (@minute, @kind, @count) ON CONFLICT DO UPDATE SET count = count + excluded.count',
  )
  const day = database.prepare(
    'INSERT INTO mail_day (day, source, domain, kind, count) VALUES (@day, @source, @domain, @kind, @count) ON CONFLICT DO UPDATE SET count = count + excluded.count',
  )
  return (counts) => {
    const rows = sumCounts(counts)
    for (const row of rows.minutes) minute.run(row)
    for (const row of rows.days) day.run(row)
  }
}

/** Sending state shared by all dispatchers of an SQLite store. */
export function sqliteSending(
  database: SqliteDatabase,
  guarded: Guarded,
  journal: Journal,
  /** The clock of leases: all processes share it, and nobody can set it. */
  leaseNow: () => number,
): SendingStore {
  const prepare = (sql: string) => database.prepare(sql)
  const addCounts = sqliteCounts(database)
  const sql = {
    state: prepare(`SELECT paused_at, reason, resumed_at FROM breaker WHERE name = 'mail'`),
    sums: prepare('SELECT kind, sum(count) AS count FROM mail_minute WHERE minute >= ? GROUP BY kind'),
    pause: prepare(
      `INSERT INTO breaker (name, paused_at, reason) VALUES ('mail', @at, @reason)
       ON CONFLICT DO UPDATE SET paused_at = excluded.paused_at, reason = excluded.reason`,
    ),
    resume: prepare(`UPDATE breaker SET paused_at = NULL, reason = NULL, resumed_at = ? WHERE name = 'mail'`),
    days: prepare(
      'SELECT day, source, domain, kind, count FROM mail_day WHERE day >= ? ORDER BY day, source, domain, kind',
    ),
    reserve: prepare(`
      INSERT INTO pace (name, next_us) VALUES ('mail', @now + @total)
      ON CONFLICT DO UPDATE SET next_us = CASE WHEN next_us BETWEEN @now AND @now + @furthest THEN next_us ELSE @now END + @total
      RETURNING next_us`).pluck(),
    prune: prepare('DELETE FROM mail_minute WHERE minute < ?'),
  }
  const write = async <T>(work: () => T): Promise<T> => guarded(() => database.transaction(work).immediate())
  // The cast is safe: the tables are STRICT and the queries above name these columns.
  const state = () =>
    sql.state.get() as
      | { paused_at: number | null; reason: string | null; resumed_at: number | null }
      | undefined
  const pauseOf = (row: ReturnType<typeof state>): Pause | undefined =>
    typeof row?.paused_at === 'number' ? { at: row.paused_at, reason: row.reason ?? '' } : undefined
  const found = (now: number, resumedAt: number | null | undefined): string | undefined => {
    const from = Math.max(minuteOf(now - BREAKER.windowMs) + 1, minuteOf(resumedAt ?? 0) + 1)
    const sums = new Map(
      (sql.sums.all(from) as { kind: string; count: number }[]).map(({ kind, count }) => [kind, count]),
    )
    return breach(dayOfFeedback((kind) => sums.get(kind) ?? 0))
  }
  return {
    count: (counts) => write(() => addCounts(counts)),
    async check(now) {
      const [row, reason] = guarded(() => {
        const known = state()
        return [known, pauseOf(known) ? undefined : found(now, known?.resumed_at)] as const
      })
      if (reason === undefined) return pauseOf(row)
      return write(() => {
        const other = pauseOf(state())
        if (other) return other
        sql.pause.run({ at: now, reason })
        return { at: now, reason }
      })
    },
    pause: async () => guarded(() => pauseOf(state())),
    resume: (now, audit) =>
      write(() => {
        const pause = pauseOf(state())
        if (pause === undefined) return undefined
        sql.resume.run(now)
        addAudit(database, journal, audit)
        return pause
      }),
    days: async (since) => guarded(() => sql.days.all(dayNameOf(since)) as MailDayCount[]),
    reserve: ({ messages, intervalUs }) =>
      write(() => {
        const now = Math.floor(leaseNow() * 1000)
        const total = messages * intervalUs
        return Math.max(
          0,
          Number(sql.reserve.get({ now, total, furthest: furthestUs(intervalUs) })) - total - now,
        )
      }),
    prune: async (before) => void guarded(() => sql.prune.run(minuteOf(before))),
  }
}
