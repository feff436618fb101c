import type { AuditEntry } from '../audit.ts'
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

/** The log of operators' actions on a store: both stores refuse to change or delete an entry. */
export const auditLog = ({ one, write }: Sql) => ({
  /** Records an action that has no transaction of its own. All others write their entry in theirs. */
  record: (entry: AuditEntry) => write(() => addAudit(entry)),
  /** The newest first. */
  list: (limit: number) => one(listAudit(limit)),
})
