import { type HistoryEntry, MOST_ENTRIES, mayExceed, type PastEntry } from '../../course/history.ts'
import { type HistoryRow, historyRow, pastEntry } from '../history-rows.ts'
import type { SqliteDatabase } from './connection.ts'

/** The history of subscriptions on SQLite; both are called within the transaction of the change that they tell of. */
export function sqliteHistory(database: SqliteDatabase): {
  readonly add: (subscription: string, entry: HistoryEntry) => void
  readonly of: (subscription: string) => readonly PastEntry[]
} {
  const insert = database.prepare(`
    INSERT OR IGNORE INTO subscription_event (subscription, at, kind, enrolment, day, attempt, outcome, reason, message_id, provider_id, source)
    SELECT @subscription, @at, @kind, @enrolment, @day,
      CASE WHEN @kind = 'attempt' THEN (
        SELECT count(*) + 1 FROM subscription_event
        WHERE subscription = @subscription AND kind = 'attempt' AND enrolment = @enrolment AND day = @day) END,
      @outcome, @reason, @message_id, @provider_id, @source
    WHERE EXISTS (SELECT 1 FROM subscription WHERE id = @subscription)`)
  const bound = database.prepare(`
    DELETE FROM subscription_event WHERE subscription = @subscription AND at <= (
      SELECT at FROM subscription_event WHERE subscription = @subscription ORDER BY at DESC LIMIT 1 OFFSET ${MOST_ENTRIES})`)
  const select = database.prepare(
    'SELECT at, kind, enrolment, day, attempt, outcome, reason, message_id, provider_id, source FROM subscription_event WHERE subscription = ? ORDER BY at, kind, day',
  )
  return {
    add(subscription, entry) {
      insert.run(historyRow(subscription, entry))
      if (mayExceed(entry)) bound.run({ subscription })
    },
    // Safe to cast: the table is STRICT, so SQLite enforces the types of the columns that the statement selects.
    of: (subscription) => (select.all(subscription) as HistoryRow[]).map(pastEntry),
  }
}
