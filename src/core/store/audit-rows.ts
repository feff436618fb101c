import type { AuditAction, AuditEntry } from '../audit.ts'

/** The table `audit` as every SQL store has it. */
export interface AuditRow {
  readonly id: string
  readonly at: number
  readonly action: AuditAction
  readonly who: string
  readonly place: string
  readonly subject: string | null
  readonly details: string | null
}

export function auditRow({ subject, details, ...entry }: AuditEntry): AuditRow {
  return { ...entry, subject: subject ?? null, details: details ?? null }
}

export function auditEntryOf({ subject, details, ...row }: AuditRow): AuditEntry {
  return { ...row, subject: subject ?? undefined, details: details ?? undefined }
}
