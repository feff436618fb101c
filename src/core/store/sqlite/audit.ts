import type { AuditEntry, AuditLog } from '../../audit.ts'
import { type AuditRow, auditEntryOf, auditRow } from '../audit-rows.ts'
import type { Guarded, SqliteDatabase } from './connection.ts'
import type { Journal } from './journal.ts'

/**
 * Adds to the audit log; call it within the transaction of the action. The entry goes into the journal too, so that
 * restoring an older backup does not forget it.
 */
export function addAudit(database: SqliteDatabase, journal: Journal, entry: AuditEntry | undefined): void {
  if (entry === undefined) return
  journal.add({ what: 'audited', at: entry.at, entry })
  insertAudit(database, entry)
}

/** Adds an entry once, however often it is added. */
export function insertAudit(database: SqliteDatabase, entry: AuditEntry): void {
  database
    .prepare(
      'INSERT OR IGNORE INTO audit (at, id, action, who, place, subject, details) VALUES (@at, @id, @action, @who, @place, @subject, @details)',
    )
    .run(auditRow(entry))
}

/** The newest entries first; none from a store that is older than the log. */
export function listAudit(database: SqliteDatabase, limit: number): readonly AuditEntry[] {
  if (database.prepare(`SELECT 1 FROM sqlite_schema WHERE name = 'audit'`).get() === undefined) return []
  const rows = database
    .prepare(
      'SELECT id, at, action, who, place, subject, details FROM audit ORDER BY at DESC, id DESC LIMIT ?',
    )
    .all(limit)
  // Safe to cast: the table is STRICT, so SQLite enforces the types of the columns selected above.
  return (rows as AuditRow[]).map(auditEntryOf)
}

export function sqliteAudit(database: SqliteDatabase, guarded: Guarded, journal: Journal): AuditLog {
  return {
    record: async (entry) =>
      guarded(() => database.transaction(() => addAudit(database, journal, entry)).immediate()),
    list: async (limit) => guarded(() => listAudit(database, limit)),
  }
}
