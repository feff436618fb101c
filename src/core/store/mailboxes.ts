import type { SubscriptionRecord } from '../course/subscription.ts'
import type { MailboxRecord, SuppressionCause } from '../mail/feedback/event.ts'
import { all, assigned, first, run, type Steps } from './sql.ts'

const STATE = 'soft_bounces, soft_since, soft_until, delivered_at, cause, suppressed_at, source, reason'

export const TEXTS = {
  find: `SELECT * FROM mailbox WHERE identity IN (SELECT value FROM {each @identities}) ORDER BY cause IS NULL`,
  make: `INSERT INTO mailbox (identity) SELECT value FROM {each @identities} WHERE true
    ON CONFLICT DO NOTHING RETURNING identity`,
  lock: `SELECT * FROM mailbox WHERE identity IN (SELECT value FROM {each @identities}) ORDER BY identity FOR UPDATE`,
  save: `UPDATE mailbox SET ${assigned(STATE)}
    FROM {rows mailbox: identity, ${STATE}} AS r WHERE mailbox.identity = r.identity`,
  drop: `DELETE FROM mailbox WHERE identity IN (SELECT value FROM {each @identities})`,
  release: `UPDATE mailbox SET cause = NULL, suppressed_at = NULL, source = NULL, reason = NULL
    WHERE identity = @identity AND cause = 'hard-bounce'`,
  suppressed: `SELECT * FROM mailbox WHERE cause IS NOT NULL AND identity LIKE '%@%' AND (suppressed_at, identity) > (@at, @identity)
    ORDER BY suppressed_at, identity LIMIT @limit`,
}

export interface MailboxRow extends Omit<MailboxRecord, 'suppression'> {
  readonly cause: SuppressionCause | undefined
  readonly suppressedAt: number | undefined
  readonly source: string | undefined
  readonly reason: string | undefined
}

export function mailboxOf({ cause, suppressedAt, source, reason, ...record }: MailboxRow): MailboxRecord {
  const suppression = cause && { cause, at: suppressedAt ?? 0, source: source ?? '', reason: reason ?? '' }
  return { ...record, suppression }
}

function rowOf({ suppression, ...record }: MailboxRecord): MailboxRow {
  const { cause, at, source, reason } = suppression ?? {}
  return { ...record, cause, suppressedAt: at, source, reason }
}

export const mailboxes = {
  /** The record of an address, or what an erasure left of it under one of its hashes. */
  *find(identity: string, hashes: readonly string[] = []): Steps<MailboxRecord | undefined> {
    const row = yield* first<MailboxRow>(TEXTS.find, { identities: [identity, ...hashes] })
    return row && mailboxOf(row)
  },
  /** Without the problem that the list has dropped: an operator may have resolved the bounce in another course. */
  *cleared(record: SubscriptionRecord): Steps<SubscriptionRecord> {
    const isKnown = record.problem && (yield* mailboxes.find(record.identity))
    return isKnown ? { ...record, problem: undefined } : record
  },
  /** In the order of their identities, so that two deliveries never wait in a circle; `made`: had no row before. */
  *lockAll(identities: readonly string[]) {
    const made = yield* all<Pick<MailboxRow, 'identity'>>(TEXTS.make, { identities })
    const rows = yield* all<MailboxRow>(TEXTS.lock, { identities })
    return {
      known: new Map(rows.map((row) => [row.identity, mailboxOf(row)])),
      made: made.map(({ identity }) => identity),
    }
  },
  /** Which of them are suppressed. Waits for feedback that is under way: it sees no enrolment that is not committed yet. */
  *suppressedOf(identities: readonly string[]): Steps<ReadonlySet<string>> {
    const { known, made } = yield* mailboxes.lockAll(identities)
    yield* mailboxes.drop(made)
    return new Set(identities.filter((identity) => known.get(identity)?.suppression !== undefined))
  },
  *save(records: readonly MailboxRecord[]): Steps<void> {
    if (records.length > 0) yield* run(TEXTS.save, { rows: records.map(rowOf) })
  },
  *drop(identities: readonly string[]): Steps<number> {
    return identities.length > 0 ? yield* run(TEXTS.drop, { identities }) : 0
  },
  release: (identity: string) => run(TEXTS.release, { identity }),
  *suppressed(limit: number, after: { readonly at: number; readonly identity: string }) {
    return (yield* all<MailboxRow>(TEXTS.suppressed, { limit, ...after })).map(mailboxOf)
  },
}
