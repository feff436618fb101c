import type { HeartbeatStore } from '../../heartbeats.ts'
import { type HeartbeatRow, heartbeatOf } from '../heartbeat-rows.ts'
import { guarded, type Pool } from './connection.ts'

/** The heartbeats in a PostgreSQL that several machines share. */
export function postgresHeartbeats(pool: Pool): HeartbeatStore {
  const find = async (name: string) =>
    (await pool.query<HeartbeatRow>('SELECT * FROM platformctl.heartbeat WHERE name = $1', [name])).rows[0]
  const found = async (name: string, now: number) =>
    heartbeatOf((await find(name)) ?? { name, since: now, beat_at: null, failed_at: null, exit_code: null })
  return {
    expect: ({ name, now }) =>
      guarded(async () => {
        const known = await find(name)
        if (known !== undefined) return heartbeatOf(known)
        await pool.query(
          'INSERT INTO platformctl.heartbeat (name, since) VALUES ($1, $2) ON CONFLICT DO NOTHING',
          [name, now],
        )
        return found(name, now)
      }),
    beat: ({ name, now, failed }) =>
      guarded(async () => {
        if (failed === undefined)
          await pool.query(
            `INSERT INTO platformctl.heartbeat (name, since, beat_at) VALUES ($1, $2, $2)
             ON CONFLICT (name) DO UPDATE SET beat_at = $2, failed_at = NULL, exit_code = NULL`,
            [name, now],
          )
        else
          await pool.query(
            `INSERT INTO platformctl.heartbeat (name, since, failed_at, exit_code) VALUES ($1, $2, $2, $3)
             ON CONFLICT (name) DO UPDATE SET failed_at = $2, exit_code = $3`,
            [name, now, failed.exitCode ?? null],
          )
        return found(name, now)
      }),
  }
}
