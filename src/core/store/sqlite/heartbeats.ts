import type { HeartbeatStore } from '../../heartbeats.ts'
import { type HeartbeatRow, heartbeatOf } from '../heartbeat-rows.ts'
import type { Guarded, SqliteDatabase } from './connection.ts'

/** The heartbeats in an SQLite file. */
export function sqliteHeartbeats(database: SqliteDatabase, guarded: Guarded): HeartbeatStore {
  const sql = {
    find: database.prepare('SELECT * FROM heartbeat WHERE name = ?'),
    expect: database.prepare(
      'INSERT INTO heartbeat (name, since) VALUES (@name, @now) ON CONFLICT DO NOTHING',
    ),
    beat: database.prepare(`
      INSERT INTO heartbeat (name, since, beat_at) VALUES (@name, @now, @now)
      ON CONFLICT (name) DO UPDATE SET beat_at = @now, failed_at = NULL, exit_code = NULL`),
    fail: database.prepare(`
      INSERT INTO heartbeat (name, since, failed_at, exit_code) VALUES (@name, @now, @now, @exitCode)
      ON CONFLICT (name) DO UPDATE SET failed_at = @now, exit_code = @exitCode`),
  }
  // The columns of the STRICT table make it this row.
  const find = (name: string) => sql.find.get(name) as HeartbeatRow | undefined
  const found = (name: string, now: number) =>
    heartbeatOf(find(name) ?? { name, since: now, beat_at: null, failed_at: null, exit_code: null })
  return {
    expect: async ({ name, now }) =>
      guarded(() => {
        // Read first: it is asked every minute, and writes once.
        if (find(name) === undefined) sql.expect.run({ name, now })
        return found(name, now)
      }),
    beat: async ({ name, now, failed }) =>
      guarded(() => {
        if (failed === undefined) sql.beat.run({ name, now })
        else sql.fail.run({ name, now, exitCode: failed.exitCode ?? null })
        return found(name, now)
      }),
  }
}
