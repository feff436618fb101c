/** The tables of a store, each after those that it refers to. */
export const TABLES = [
  'subscription',
  'confirmation',
  'message',
  'subscription_event',
  'course_plan',
  'course_text',
  'enrol_request',
  'suppression',
  'handled_hour',
  'meta',
  'organisation',
  'organisation_admin',
  'organisation_invite',
  'login_request',
  'exam_attempt',
  'sent_mail',
  'payment_event',
  'audit',
  'incident',
  'alert_message',
  'silence',
  'heartbeat',
  'announcement',
  'status_update',
  'notice',
  'feedback_event',
  'mailbox',
  'mail_minute',
  'mail_day',
  'breaker',
  'pace',
] as const

export type Table = (typeof TABLES)[number]

/** The tables of the recorded health, which each machine has in a file of its own too: they are not copied. */
export const HEALTH_TABLES = ['health_series', 'health_period', 'health_build'] as const

export type HealthTable = (typeof HEALTH_TABLES)[number]

/**
 * Entries of `meta` that describe one store itself. They are neither copied nor compared, because each store
 * keeps its own.
 */
export const OWN_META = ['readable_from', 'verified_at', 'backup_at', 'ping', 'journal_owed'] as const

export type CopiedRow = Readonly<Record<string, unknown>>

/** A store to copy from, which nobody writes to until it is closed. */
export interface CopySource {
  /** The names of a table's columns. */
  readonly columns: (table: Table) => readonly string[] | Promise<readonly string[]>
  /** The rows of a table, one page at a time. */
  readonly pages: (table: Table) => Iterable<readonly CopiedRow[]> | AsyncIterable<readonly CopiedRow[]>
  readonly close: () => void | Promise<void>
}

export interface CopyResult {
  readonly counts: Readonly<Record<string, number>>
}

/** A table that is not the same in two stores. */
export interface TableDifference {
  readonly table: Table
  readonly from: number
  readonly to: number
}
