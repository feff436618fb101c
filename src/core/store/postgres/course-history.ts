import { type HistoryEntry, MOST_ENTRIES, mayExceed } from '../../course/history.ts'
import { historyRow } from '../history-rows.ts'
import type { Queryable } from './connection.ts'

const INSERT = `
  INSERT INTO platformctl.subscription_event (subscription, at, kind, enrolment, day, attempt, outcome, reason, message_id, provider_id, source)
  SELECT r.subscription, r.at, r.kind, r.enrolment, r.day,
    CASE WHEN r.kind = 'attempt' THEN (
      SELECT count(*) + 1 FROM platformctl.subscription_event e
      WHERE e.subscription = r.subscription AND e.kind = 'attempt' AND e.enrolment = r.enrolment AND e.day = r.day) END,
    r.outcome, r.reason, r.message_id, r.provider_id, r.source
  FROM jsonb_to_recordset($1::jsonb) AS r (subscription text, at bigint, kind text, enrolment integer, day integer,
    outcome text, reason text, message_id text, provider_id text, source text)
  JOIN platformctl.subscription s ON s.id = r.subscription
  ON CONFLICT DO NOTHING`

const BOUND = `
  DELETE FROM platformctl.subscription_event WHERE subscription = $1 AND at <= (
    SELECT at FROM platformctl.subscription_event WHERE subscription = $1 ORDER BY at DESC LIMIT 1 OFFSET ${MOST_ENTRIES})`

/** Adds to the histories of subscriptions, within the transaction of the changes that the entries tell of. */
export async function remember(
  on: Queryable,
  entries: readonly (readonly [subscription: string, entry: HistoryEntry])[],
): Promise<void> {
  if (entries.length === 0) return
  await on.query(INSERT, [JSON.stringify(entries.map(([id, entry]) => historyRow(id, entry)))])
  for (const [subscription, entry] of entries) if (mayExceed(entry)) await on.query(BOUND, [subscription])
}
