import { type HistoryEntry, MOST_ENTRIES, mayExceed, type PastEntry } from '../course/history.ts'
import { all, run, type Steps } from './sql.ts'

const COLUMNS = 'subscription, at, kind, enrolment, day, outcome, reason, message_id, provider_id, source'

export const TEXTS = {
  // An entry about a subscription that was erased meanwhile is left out.
  add: `INSERT INTO subscription_event (${COLUMNS}, attempt)
    SELECT ${COLUMNS.replace(/\w+/g, 'r.$&')}, CASE WHEN r.kind = 'attempt' THEN (
      SELECT count(*) + 1 FROM subscription_event e
      WHERE e.subscription = r.subscription AND e.kind = 'attempt' AND e.enrolment = r.enrolment AND e.day = r.day) END
    FROM {rows subscription_event: ${COLUMNS}} AS r JOIN subscription s ON s.id = r.subscription WHERE true
    ON CONFLICT DO NOTHING`,
  bound: `DELETE FROM subscription_event WHERE subscription = @subscription AND at <= (
    SELECT at FROM subscription_event WHERE subscription = @subscription ORDER BY at DESC LIMIT 1 OFFSET ${MOST_ENTRIES})`,
  list: `SELECT at, kind, enrolment, day, attempt, outcome, reason, message_id, provider_id, source
    FROM subscription_event WHERE subscription = @subscription ORDER BY at, kind, day`,
}

export const history = {
  /** In the transaction of the changes that the entries tell of. */
  *remember(...entries: readonly (readonly [subscription: string, entry: HistoryEntry])[]): Steps<void> {
    if (entries.length === 0) return
    const rows = entries.map(([subscription, entry]) => ({ subscription, ...entry }))
    yield* run(TEXTS.add, { rows })
    for (const [subscription, entry] of entries)
      if (mayExceed(entry)) yield* run(TEXTS.bound, { subscription })
  },
  of: (subscription: string): Steps<readonly PastEntry[]> => all<PastEntry>(TEXTS.list, { subscription }),
}
