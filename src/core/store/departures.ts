import type { AuditEntry } from '../audit.ts'
import { systemRandom } from '../random.ts'
import { ANCHOR, type JournalEntry } from './journal.ts'
import { type MailboxRow, mailboxOf } from './mailboxes.ts'
import { getMeta, TEXTS as META } from './meta.ts'
import { all, run, type Steps } from './sql.ts'

const ANCHOR_BYTES = 12

interface Left {
  readonly id: string
  readonly enrolment: number
  readonly at: number
}

/** The id that ties a store, its backups and its dumps to their journal, made if there is none. */
export function* anchorOf(): Steps<string> {
  const value = Buffer.from(systemRandom.bytes(ANCHOR_BYTES)).toString('base64url')
  yield* run(META.make, { name: ANCHOR, value })
  return (yield* getMeta(ANCHOR)) ?? value
}

export const TEXTS = (schema = '') => ({
  left: `SELECT id, enrolment, unsubscribed_at AS at FROM ${schema}subscription WHERE state = 'unsubscribed' AND unsubscribed_at IS NOT NULL`,
  // Of earlier enrolments what their history says; of the current one only a return, which its row does not show.
  past: `SELECT s.id, e.enrolment, e.at, e.kind AS what FROM ${schema}subscription_event e JOIN ${schema}subscription s ON s.id = e.subscription
    WHERE e.kind IN ('unsubscribed', 'undone')
      AND (e.enrolment < s.enrolment OR (e.kind = 'undone' AND e.enrolment = s.enrolment AND s.state = 'confirmed'))
    ORDER BY e.at`,
  suppressed: `SELECT * FROM ${schema}mailbox WHERE cause IS NOT NULL`,
  erased: `SELECT hash, created_at AS at FROM ${schema}suppression`,
  held: `SELECT name, paused_at, reason, resumed_at FROM ${schema}breaker`,
  audited: `SELECT id, at, action, who, place, subject, details FROM ${schema}audit ORDER BY at, id`,
})

/** The journal that a store would have written, from its rows: for one that has none, or lost it. */
export function* departures(schema?: string): Steps<readonly JournalEntry[]> {
  const text = TEXTS(schema)
  const past = yield* all<Left & { readonly what: 'unsubscribed' | 'undone' }>(text.past)
  const left = yield* all<Left>(text.left)
  const mailboxes = (yield* all<MailboxRow>(text.suppressed)).map(mailboxOf)
  const erased = yield* all<{ readonly hash: string; readonly at: number }>(text.erased)
  const held = yield* all<{
    readonly name: string
    readonly pausedAt?: number
    readonly reason?: string
    readonly resumedAt?: number
  }>(text.held)
  const audited = yield* all<AuditEntry>(text.audited)
  const noRows = { subscription: undefined, invites: [], logins: [] }
  return [
    ...past,
    ...left.map((row) => ({ what: 'unsubscribed' as const, ...row })),
    ...mailboxes.flatMap(({ identity, suppression }) =>
      suppression ? { what: 'suppressed' as const, at: suppression.at, identity, suppression } : [],
    ),
    ...erased.map((row) => ({ what: 'erased' as const, ...row, rows: noRows })),
    ...held.map(({ name, pausedAt, reason = '', resumedAt = 0 }) =>
      pausedAt === undefined
        ? { what: 'resumed' as const, at: resumedAt, name }
        : { what: 'paused' as const, at: pausedAt, name, reason },
    ),
    ...audited.map((entry) => ({ what: 'audited' as const, at: entry.at, entry })),
  ]
}

/** What tells stores apart: each makes this key once, and its backups and dumps keep it. */
export const storeKey = (schema?: string): Steps<string | undefined> => getMeta('address_key', schema)

/** The departures of a replaced store; undefined if it is another one than that with this key. */
export function* departuresOf(
  key: string | undefined,
  schema?: string,
): Steps<readonly JournalEntry[] | undefined> {
  return (yield* storeKey(schema)) === key ? yield* departures(schema) : undefined
}
