import type { AuditEntry, AuditLog } from '../../audit.ts'
import { type AuditRow, auditEntryOf, auditRow } from '../audit-rows.ts'
import { guarded, type Pool, type Queryable } from './connection.ts'

/** Adds to the audit log; call it on the connection of the action's transaction. */
export async function addAudit(on: Queryable, entry: AuditEntry | undefined): Promise<void> {
  if (entry === undefined) return
  const { at, id, action, who, place, subject, details } = auditRow(entry)
  await on.query(
    `INSERT INTO platformctl.audit (at, id, action, who, place, subject, details)
     VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT DO NOTHING`,
    [at, id, action, who, place, subject, details],
  )
}

/** The newest entries first; none from a store that is older than the log. */
export async function listAudit(on: Queryable, limit: number): Promise<readonly AuditEntry[]> {
  const { rows: tables } = await on.query<{ name: string | null }>(
    `SELECT to_regclass('platformctl.audit')::text AS name`,
  )
  if (tables[0]?.name == null) return []
  const { rows } = await on.query<AuditRow>(
    `SELECT id, at, action, who, place, subject, details FROM platformctl.audit ORDER BY at DESC, id DESC LIMIT $1`,
    [limit],
  )
  return rows.map(auditEntryOf)
}

export function postgresAudit(pool: Pool): AuditLog {
  return {
    record: (entry) => guarded(() => addAudit(pool, entry)),
    list: (limit) => guarded(() => listAudit(pool, limit)),
  }
}
