import type { Beat, HeartbeatRecord } from '../heartbeats.ts'
import { first, type Sql } from './sql.ts'

export const TEXTS = {
  find: 'SELECT * FROM heartbeat WHERE name = @name',
  expect: `INSERT INTO heartbeat (name, since) VALUES (@name, @now)
    ON CONFLICT (name) DO UPDATE SET since = heartbeat.since RETURNING *`,
  beat: `INSERT INTO heartbeat (name, since, beat_at) VALUES (@name, @now, @now)
    ON CONFLICT (name) DO UPDATE SET beat_at = excluded.beat_at, failed_at = NULL, exit_code = NULL RETURNING *`,
  fail: `INSERT INTO heartbeat (name, since, failed_at, exit_code) VALUES (@name, @now, @now, @exitCode)
    ON CONFLICT (name) DO UPDATE SET failed_at = excluded.failed_at, exit_code = excluded.exit_code RETURNING *`,
}

/** Where jobs report in. Everything that shares the store shares it. */
export function heartbeats({ one }: Sql) {
  // What is written has a row.
  const put = async (text: string, beat: object) => (await one(first(text, beat))) as HeartbeatRecord
  return {
    /** The record of a heartbeat. If there is none, it is expected from now on. */
    expect: async ({ name, now }: Pick<Beat, 'name' | 'now'>) =>
      // Read first: it is asked every minute, and writes once.
      (await one(first<HeartbeatRecord>(TEXTS.find, { name }))) ?? put(TEXTS.expect, { name, now }),
    beat: ({ name, now, failed }: Beat) =>
      put(failed ? TEXTS.fail : TEXTS.beat, { name, now, exitCode: failed?.exitCode }),
  }
}
