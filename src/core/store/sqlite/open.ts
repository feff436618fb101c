import { statSync } from 'node:fs'
import type { Store } from '../store.ts'
import { sqliteDirectory, sqlitePaymentEvents, sqliteSentMail } from './account.ts'
import { guard, IN_MEMORY, openDatabase } from './connection.ts'
import { sqliteCourse } from './course.ts'
import { MIGRATIONS } from './migrations.ts'

/**
 * The store in an SQLite file, or (`file` undefined) in memory: the same code, but nothing outlives the process.
 * `onLost`: a write was not confirmed by the disk, and the store has closed itself.
 */
export function openSqlite(file: string | undefined, onLost?: (cause: unknown) => void): Store {
  const database = openDatabase({ file: file ?? IN_MEMORY, synchronous: 'FULL', migrations: MIGRATIONS })
  const guarded = guard(database, onLost)
  const sql = {
    claimHour: database.prepare('INSERT OR IGNORE INTO handled_hour (hour) VALUES (?)'),
    lastHour: database.prepare('SELECT max(hour) FROM handled_hour').pluck(),
    put: database.prepare('INSERT OR IGNORE INTO meta (name, value) VALUES (?, ?)'),
    get: database.prepare('SELECT value FROM meta WHERE name = ?').pluck(),
    ping: database.prepare(
      `INSERT INTO meta (name, value) VALUES ('ping', ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value`,
    ),
  }
  return {
    kind: file === undefined ? 'memory' : 'sqlite',
    persistent: file !== undefined,
    course: sqliteCourse(database, guarded),
    directory: sqliteDirectory(database, guarded),
    sentMail: sqliteSentMail(database, guarded),
    paymentEvents: sqlitePaymentEvents(database, guarded),
    claimHour: async (hour) => guarded(() => sql.claimHour.run(hour).changes === 1),
    lastHour: async () => guarded(() => (sql.lastHour.get() as string | null) ?? undefined),
    getOrCreate: async (name, make) =>
      guarded(() => {
        sql.put.run(name, make())
        return String(sql.get.get(name))
      }),
    async ping() {
      const mark = String(performance.now())
      guarded(() => {
        sql.ping.run(mark)
        if (sql.get.get('ping') !== mark) throw new TypeError('what was written could not be read back')
      })
    },
    status: async () =>
      guarded(() => ({
        kind: file === undefined ? 'memory' : 'sqlite',
        version: Number(database.pragma('user_version', { simple: true })),
        latest: MIGRATIONS.length,
        bytes: file === undefined ? undefined : statSync(file).size,
      })),
    async close() {
      if (!database.open) return
      // Leaves one file behind instead of three; a busy reader elsewhere only postpones it.
      if (file !== undefined) database.pragma('wal_checkpoint(TRUNCATE)')
      database.close()
    },
  }
}
