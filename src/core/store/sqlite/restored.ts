import type { RestoredStore } from '../replay.ts'
import { sqliteAudit } from './audit.ts'
import type { SqliteDatabase } from './connection.ts'
import { sqliteCourse } from './course.ts'
import { sqliteFeedback } from './feedback.ts'
import { addressKeysOf, openJournal } from './journal.ts'

/** The image of a backup, to apply the restore rule to; it has no journal of its own yet. */
export function sqliteRestored(database: SqliteDatabase): RestoredStore {
  const journal = openJournal(database, undefined)
  const plain = <T>(work: () => T) => work()
  const suppress = database.prepare('INSERT OR IGNORE INTO suppression (hash, created_at) VALUES (?, ?)')
  const key = (table: string) => (table === 'mailbox' ? 'identity' : 'id')
  return {
    // Nothing is claimed during a restore, so no lease is measured.
    course: sqliteCourse(database, plain, () => 0, { journal }),
    feedback: sqliteFeedback(database, plain, journal),
    audit: sqliteAudit(database, plain, journal),
    addressKeys: async () => addressKeysOf(database),
    personal: async (table, after, limit) =>
      database
        .prepare(
          `SELECT ${key(table)} AS id, ${table === 'mailbox' ? 'identity AS address' : 'address'} FROM ${table} WHERE ${key(table)} > ? ORDER BY 1 LIMIT ?`,
        )
        // Safe to cast: the tables are STRICT, so SQLite enforces the types of the columns selected above.
        .all(after, limit) as { id: string; address: string }[],
    erase: async ({ hash, at, rows }) =>
      database.transaction(() => {
        let { changes } = suppress.run(hash, at)
        for (const [table, ids] of Object.entries(rows))
          for (const id of ids)
            changes += database.prepare(`DELETE FROM ${table} WHERE ${key(table)} = ?`).run(id).changes
        return changes
      })(),
  }
}
