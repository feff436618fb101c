import type { SubscriptionRecord } from '../../course/subscription.ts'
import { type Row, recordOf } from '../rows.ts'

/** SQLite has no type for a list: the days are JSON in a text column. */
export type SqliteRow = Omit<Row, 'sent_days' | 'sent_lessons'> & {
  readonly sent_days: string
  readonly sent_lessons: string | null
}

export function recordOfRow(row: SqliteRow): SubscriptionRecord {
  const record = recordOf({
    ...row,
    sent_days: parsed(row.sent_days),
    sent_lessons: row.sent_lessons === null ? null : parsed(row.sent_lessons),
  })
  return record.unreadableDays === undefined ? record : { ...record, unreadableDays: row.sent_days }
}

/** A text that is no JSON stays the text that it is. */
function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}
