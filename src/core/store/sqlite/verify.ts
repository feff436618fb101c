import type { StoreContent, VerifyResult } from '../maintenance.ts'
import { checkRows, verifyResult } from '../upkeep.ts'
import { type SqliteDatabase, schemaVersion } from './connection.ts'
import { DIALECT, plainPerformer } from './sql.ts'

/** SQLite's own integrity check, foreign keys, and (`holds`) the invariants of the course. Changes nothing. */
export function verifyDatabase(
  database: SqliteDatabase,
  { now, holds }: { readonly now: number; readonly holds: StoreContent },
): VerifyResult {
  const faults: string[] = []
  let checked = 0
  let damaged = false
  try {
    for (const line of database.pragma('integrity_check(100)') as { integrity_check: string }[])
      if (line.integrity_check !== 'ok') faults.push(`integrity: ${line.integrity_check}`)
    damaged = faults.length > 0
    for (const { table, parent } of database.pragma('foreign_key_check') as {
      table: string
      parent: string
    }[])
      faults.push(`${table}: a row refers to a ${parent} that does not exist`)
    // A store that was never migrated has no rows to look at.
    if (!damaged && holds === 'course' && schemaVersion(database) > 0) {
      const found = plainPerformer(database)(checkRows(DIALECT, now))
      faults.push(...found.faults)
      checked = found.checked
    }
  } catch (error) {
    // A page that cannot be read ends the check; that is its result.
    damaged = true
    faults.push(`integrity: ${error instanceof Error ? error.message : 'it cannot be read'}`)
  }
  return verifyResult({ checked, faults }, damaged)
}
