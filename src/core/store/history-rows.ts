import type { HistoryEntry, HistoryKind, PastEntry } from '../course/history.ts'
import { storableText } from './rows.ts'

/** The table `subscription_event` as every SQL store has it. */
export interface HistoryRow {
  readonly at: number
  readonly kind: HistoryKind
  readonly enrolment: number
  readonly day: number
  readonly attempt: number | null
  readonly outcome: string | null
  readonly reason: string | null
  readonly message_id: string | null
  readonly provider_id: string | null
  readonly source: string | null
}

/** An entry as its row; the store numbers attempts itself. */
export function historyRow(
  subscription: string,
  entry: HistoryEntry,
): Omit<HistoryRow, 'attempt'> & { readonly subscription: string } {
  return {
    subscription,
    at: entry.at,
    kind: entry.kind,
    enrolment: entry.enrolment,
    day: entry.day,
    outcome: entry.outcome ?? null,
    reason: entry.reason === undefined ? null : storableText(entry.reason),
    message_id: entry.messageId ?? null,
    provider_id: entry.providerId === undefined ? null : storableText(entry.providerId),
    source: entry.source ?? null,
  }
}

export function pastEntry(row: HistoryRow): PastEntry {
  return {
    at: row.at,
    kind: row.kind,
    enrolment: row.enrolment,
    day: row.day,
    attempt: row.attempt ?? undefined,
    outcome: row.outcome ?? undefined,
    reason: row.reason ?? undefined,
    messageId: row.message_id ?? undefined,
    providerId: row.provider_id ?? undefined,
    source: row.source ?? undefined,
  }
}
