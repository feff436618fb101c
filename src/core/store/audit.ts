import type { AuditEntry, AuditLog } from '../audit.ts'
import { all, journal, run, type Sql, type Steps } from './sql.ts'

export const TEXTS = {
  add: `INSERT INTO audit (at, id, action, who, place, subject, details)
    VALUES (@at, @id, @action, @who, @place, @subject, @details) ON CONFLICT DO NOTHING`,
  list: 'SELECT id, at, action, who, place, subject, details FROM audit ORDER BY at DESC, id DESC LIMIT @limit',
}

/** Adds to the audit log, in the transaction of the action, and to the journal: a restore must not forget it. */
export function* addAudit(entry: AuditEntry | undefined): Steps<void> {
  if (entry === undefined) return
  yield* journal({ what: 'audited', at: entry.at, entry })
  yield* run(TEXTS.add, entry)
}

export const listAudit = (limit: number): Steps<readonly AuditEntry[]> =>
  all<AuditEntry>(TEXTS.list, { limit })

export const auditLog = ({ one, write }: Sql): AuditLog => ({
  record: (entry) => write(() => addAudit(entry)),
  list: (limit) => one(listAudit(limit)),
})
