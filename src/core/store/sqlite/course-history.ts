import { type HistoryEntry, MOST_ENTRIES, mayExceed, type PastEntry } from '../../course/history.ts'
import { type HistoryRow, historyRow, pastEntry } from '../history-rows.ts'
import type { SqliteDatabase } from './connection.ts'

const COLUMNS =
  'subscription, at, kind, enrolment, day, outcome, reason, message_id, provider_id, source, attempt'

/** The history of subscriptions on SQLite; both are called within the transaction of the change that they tell of. */
export function sqliteHistory(database: SqliteDatabase): {
  /** The subscription must exist. */
  readonly add: (subscription: string, entry: HistoryEntry) => void
  readonly of: (subscription: string) => readonly PastEntry[]
} {
  // Run for every lesson sent. INSERT … SELECT would read its rows into a temporary table first, and named parameters
  // are looked up by name: together they take twice as long.
  const insert = (attempt: string) =>
    database.prepare(
      `INSERT OR IGNORE INTO subscription_event (${COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ${attempt})`,
    )
  const sql = {
    attempt: insert(
      "(SELECT count(*) + 1 FROM subscription_event WHERE subscription = ? AND kind = 'attempt' AND enrolment = ? AND day = ?)",
    ),
    other: insert('NULL'),
  }
  const bound = database.prepare(`
    DELETE FROM subscription_event WHERE subscription = @subscription AND at <= (
      SELECT at FROM subscription_event WHERE subscription = @subscription ORDER BY at DESC LIMIT 1 OFFSET ${MOST_ENTRIES})`)
  const select = database.prepare(
    'SELECT at, kind, enrolment, day, attempt, outcome, reason, message_id, provider_id, source FROM subscription_event WHERE subscription = ? ORDER BY at, kind, day',
  )
  return {
    add(subscription, entry) {
      const { at, kind, enrolment, day, ...row } = historyRow(subscription, entry)
      const { outcome, reason, message_id, provider_id, source } = row
      const values = [
        subscription,
        at,
        kind,
        enrolment,
        day,
        outcome,
        reason,
        message_id,
        provider_id,
        source,
      ]
      if (kind === 'attempt') sql.attempt.run(...values, subscription, enrolment, day)
      else sql.other.run(...values)
      if (mayExceed(entry)) bound.run({ subscription })
    },
    // Safe to cast: the table is STRICT, so SQLite enforces the types of the columns that the statement selects.
    of: (subscription) => (select.all(subscription) as HistoryRow[]).map(pastEntry),
  }
}
