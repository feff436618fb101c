import type { AuditEntry } from '../audit.ts'
import type { JournalEntry } from './journal.ts'
import { type MailboxRow, mailboxOf } from './mailboxes.ts'

/** Rows of a store that say who left it, as `departuresSql` selects them. */
export interface Departures {
  readonly left: readonly { readonly id: string; readonly enrolment: number; readonly at: number }[]
  readonly past: readonly {
    readonly id: string
    readonly enrolment: number
    readonly at: number
    readonly what: 'unsubscribed' | 'undone'
  }[]
  readonly suppressed: readonly MailboxRow[]
  readonly erased: readonly { readonly hash: string; readonly at: number }[]
  readonly audited: readonly AuditEntry[]
}

/** The statements whose rows `journalOf` takes; `schema` is `platformctl.` on PostgreSQL. */
export const departuresSql = (schema: string): Readonly<Record<keyof Departures, string>> => ({
  left: `SELECT id, enrolment, unsubscribed_at AS at FROM ${schema}subscription WHERE state = 'unsubscribed' AND unsubscribed_at IS NOT NULL`,
  // Of earlier enrolments what their history says; of the current one only a return, which its row does not show.
  past: `SELECT s.id, e.enrolment, e.at, e.kind AS what FROM ${schema}subscription_event e JOIN ${schema}subscription s ON s.id = e.subscription
    WHERE e.kind IN ('unsubscribed', 'undone')
      AND (e.enrolment < s.enrolment OR (e.kind = 'undone' AND e.enrolment = s.enrolment AND s.state = 'confirmed'))
    ORDER BY e.at`,
  suppressed: `SELECT * FROM ${schema}mailbox WHERE cause IS NOT NULL`,
  erased: `SELECT hash, created_at AS at FROM ${schema}suppression`,
  audited: `SELECT id, at, action, who, place, subject, details FROM ${schema}audit ORDER BY at, id`,
})

/** The journal that a store would have written, from its rows: for a store that had none, or lost it. */
export function journalOf(rows: Departures): readonly JournalEntry[] {
  return [
    ...rows.past,
    ...rows.left.map((row) => ({ what: 'unsubscribed' as const, ...row })),
    ...rows.suppressed
      .map(mailboxOf)
      .flatMap(({ identity, suppression }) =>
        suppression ? { what: 'suppressed' as const, at: suppression.at, identity, suppression } : [],
      ),
    ...rows.erased.map((row) => ({
      what: 'erased' as const,
      ...row,
      rows: { subscription: undefined, invites: [], logins: [] },
    })),
    ...rows.audited.map((entry) => ({ what: 'audited' as const, at: entry.at, entry })),
  ]
}
