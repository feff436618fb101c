import type { MailboxRecord, SuppressionCause } from '../mail/feedback/mailbox.ts'
import type { SuppressedAddress } from '../mail/feedback/store.ts'
import { storableText } from './rows.ts'

/** The table `mailbox` as every SQL store has it; times are UTC milliseconds. */
export interface MailboxRow {
  readonly identity: string
  readonly soft_bounces: number
  readonly soft_since: number | null
  readonly soft_until: number | null
  readonly delivered_at: number | null
  readonly cause: SuppressionCause | null
  readonly suppressed_at: number | null
  readonly source: string | null
  readonly reason: string | null
}

export function mailboxOf(row: MailboxRow): MailboxRecord {
  return {
    identity: row.identity,
    softBounces: row.soft_bounces,
    softSince: row.soft_since ?? undefined,
    softUntil: row.soft_until ?? undefined,
    deliveredAt: row.delivered_at ?? undefined,
    suppression:
      row.cause === null
        ? undefined
        : {
            cause: row.cause,
            at: row.suppressed_at ?? 0,
            source: row.source ?? '',
            reason: row.reason ?? '',
          },
  }
}

export function mailboxRow({ identity, suppression, ...record }: MailboxRecord): MailboxRow {
  return {
    identity,
    soft_bounces: record.softBounces,
    soft_since: record.softSince ?? null,
    soft_until: record.softUntil ?? null,
    delivered_at: record.deliveredAt ?? null,
    cause: suppression?.cause ?? null,
    suppressed_at: suppression?.at ?? null,
    source: suppression?.source ?? null,
    reason: suppression === undefined ? null : storableText(suppression.reason),
  }
}

/** The suppressed address of a row as a list for `flatMap`: empty for a row without a cause. */
export function suppressedAddress(row: MailboxRow): SuppressedAddress[] {
  const { identity, suppression } = mailboxOf(row)
  return suppression === undefined ? [] : [{ identity, ...suppression }]
}
