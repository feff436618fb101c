import { exportAnchor } from '../departures.ts'
import { ANCHOR, type JournalEntry } from '../journal.ts'
import { all, getMeta } from '../sql.ts'

/** A server gives none of these twice, also where a dump was restored and nobody ran after-restore. */
export const NEXT_NUMBER = `INSERT INTO meta AS m (name, value) VALUES ('journal_number', CAST(pg_current_xact_id() AS text)) ON CONFLICT (name)
  DO UPDATE SET value = greatest(CAST(m.value AS bigint) + 1, CAST(excluded.value AS bigint)) RETURNING CAST(value AS bigint) AS number`
/** Says that after-restore ran here: a dump of the row is brought back by another transaction than it names. */
export const MARK = `INSERT INTO meta AS m (name, value) VALUES ('restored_here', CAST(CAST(pg_current_xact_id() AS xid) AS text))
  ON CONFLICT (name) DO UPDATE SET value = excluded.value WHERE m.value <> CAST(m.xmin AS text)`
/** Restores that a dump tells of, without those since it was restored. */
const RESTORES = `SELECT id FROM audit a WHERE action = 'restore' AND NOT EXISTS (SELECT FROM meta m
  WHERE m.name = 'restored_here' AND m.value = CAST(m.xmin AS text) AND age(a.xmin) <= age(m.xmin))`
export const OF_ANOTHER = 'is not the journal of this store'

/** Why an export does not cover a restored dump: by the order of both. Clocks, which may be wrong, decide if neither has a number. */
export function* faultOf(named: readonly JournalEntry[], restoredTo: number, now: number) {
  const anchors = [yield* getMeta(ANCHOR), yield* exportAnchor()]
  const closing = named.findLast((entry) => entry.what === 'anchor' && anchors.includes(entry.id))
  if (closing?.what !== 'anchor') return OF_ANOTHER
  const { at, number = 0 } = closing
  const before = Number((yield* getMeta('journal_number')) ?? 0)
  const isLater = number + before > 0 ? number > before : at >= restoredTo && at <= now
  return isLater && (yield* tellsAll(named, RESTORES)) ? undefined : 'is older'
}

/** Whether entries tell of all these rows of the audit log. */
export function* tellsAll(entries: readonly JournalEntry[], rows: string, values: object = {}) {
  const known = new Set(entries.map((entry) => ('entry' in entry ? entry.entry.id : undefined)))
  return (yield* all<{ id: string }>(rows, values)).every(({ id }) => known.has(id))
}
