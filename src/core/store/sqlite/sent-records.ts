import Database from 'better-sqlite3'
import { codeOf } from '../../error-code.ts'
import { storeFault } from '../../store-fault.ts'
import { StoreMaintenanceError } from '../maintenance.ts'
import { sentSince } from '../sent-since.ts'
import { rowReader } from '../sql.ts'
import { type Row, recordOf } from '../subscriptions.ts'
import { type SqliteDatabase, schemaVersion } from './connection.ts'

/** Lessons that the replaced store sent and the restored one would send again; undefined if they cannot be counted. */
export function countRepeats(restored: SqliteDatabase, replaced: string): number | undefined {
  let count = 0
  let other: SqliteDatabase | undefined
  try {
    other = openedForReading(replaced)
    for (const { lessons } of newerRows(restored, other)) count += lessons
    return count
  } catch {
    // The store that is replaced may be damaged: that is why it is replaced.
    return undefined
  } finally {
    other?.close()
  }
}

/** Takes over what the replaced store has sent since the backup: the progress of enrolments, and their history. */
export function takeSentRecords(restored: SqliteDatabase, replaced: string): number {
  let taken = 0
  try {
    const other = openedForReading(replaced)
    const copy = (table: string, where: string, ...values: readonly unknown[]) => {
      const rows = other.prepare(`SELECT * FROM ${table} ${where}`).all(...values) as Record<
        string,
        unknown
      >[]
      const names = Object.keys(rows[0] ?? {})
      if (names.length === 0) return
      const insert = restored.prepare(
        `INSERT OR IGNORE INTO ${table} (${names.join(', ')}) VALUES (${names.map((name) => `@${name}`).join(', ')})`,
      )
      for (const row of rows) insert.run(row)
    }
    try {
      if (schemaVersion(other) !== schemaVersion(restored))
        throw new StoreMaintenanceError(
          `${replaced} has schema ${schemaVersion(other)}, and the restored store ${schemaVersion(restored)}: migrate a copy of it first (STORE_URL=sqlite:COPY platformctl db migrate), and name the copy.`,
        )
      restored.transaction(() => {
        copy('course_text', '')
        copy('course_plan', '')
        for (const { row, lessons } of newerRows(restored, other)) {
          const names = Object.keys(row).filter((name) => name !== 'id')
          restored
            .prepare(
              `UPDATE subscription SET ${names.map((name) => `${name} = @${name}`).join(', ')} WHERE id = @id`,
            )
            .run(row)
          copy('subscription_event', 'WHERE subscription = ?', row.id)
          taken += lessons
        }
      })()
    } finally {
      other.close()
    }
    return taken
  } catch (error) {
    if (error instanceof StoreMaintenanceError) throw error
    throw new StoreMaintenanceError(
      `the sent records of ${replaced} cannot be read (${codeOf(error) || 'no reason given'}): restore without --sent-from, or name the file that an earlier restore kept.`,
      { cause: error },
    )
  }
}

type StoredRow = Readonly<Record<string, unknown>>

/** Rows of the replaced store whose enrolment went on after the backup. */
function* newerRows(
  restored: SqliteDatabase,
  other: SqliteDatabase,
): Generator<{ readonly row: StoredRow; readonly lessons: number }> {
  const find = restored.prepare('SELECT * FROM subscription WHERE id = ?')
  const read = rowReader()
  const record = (row: StoredRow) => recordOf(read(row) as Row)
  // Safe to cast: the tables are STRICT, so SQLite enforces the types of the columns.
  for (const row of other
    .prepare(`SELECT * FROM subscription WHERE sent_days <> '[]'`)
    .iterate() as Iterable<StoredRow>) {
    const known = find.get(row.id) as StoredRow | undefined
    const lessons = known === undefined ? 0 : sentSince(record(known), record(row)).length
    if (lessons > 0) yield { row, lessons }
  }
}

/** Writes nothing. Not opened read-only, because the log beside the file would then be left there. */
export function openedForReading(file: string): SqliteDatabase {
  const database = new Database(file, { fileMustExist: true })
  try {
    database.prepare('SELECT 1 FROM sqlite_schema').get()
  } catch (error) {
    database.close()
    if (storeFault(error) !== 'disk_full') throw error
    // Keeps the index of the log in memory.
    const alone = new Database(file, { fileMustExist: true })
    alone.pragma('locking_mode = EXCLUSIVE')
    return alone
  }
  return database
}
