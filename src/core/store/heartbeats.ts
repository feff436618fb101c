import type { Beat, HeartbeatRecord } from '../heartbeats.ts'
import { first, run, type Sql, type Steps } from './sql.ts'

export const TEXTS = {
  find: 'SELECT * FROM heartbeat WHERE name = @name',
  expect: 'INSERT INTO heartbeat (name, since) VALUES (@name, @now) ON CONFLICT DO NOTHING',
  beat: `INSERT INTO heartbeat (name, since, beat_at) VALUES (@name, @now, @now)
    ON CONFLICT (name) DO UPDATE SET beat_at = excluded.beat_at, failed_at = NULL, exit_code = NULL`,
  fail: `INSERT INTO heartbeat (name, since, failed_at, exit_code) VALUES (@name, @now, @now, @exitCode)
    ON CONFLICT (name) DO UPDATE SET failed_at = excluded.failed_at, exit_code = excluded.exit_code`,
}

/** Where jobs report in. Everything that shares the store shares it. */
export function heartbeats({ one, write }: Sql) {
  const find = (name: string) => first<HeartbeatRecord>(TEXTS.find, { name })
  function* found(name: string, since: number): Steps<HeartbeatRecord> {
    const none = { name, since, beatAt: undefined, failedAt: undefined, exitCode: undefined }
    return (yield* find(name)) ?? none
  }
  return {
    /** The record of a heartbeat. If there is none, it is expected from now on. */
    expect: async ({ name, now }: Pick<Beat, 'name' | 'now'>) =>
      // Read first: it is asked every minute, and writes once.
      (await one(find(name))) ??
      write(function* () {
        yield* run(TEXTS.expect, { name, now })
        return yield* found(name, now)
      }),
    beat: ({ name, now, failed }: Beat) =>
      write(function* () {
        if (failed === undefined) yield* run(TEXTS.beat, { name, now })
        else yield* run(TEXTS.fail, { name, now, exitCode: failed.exitCode })
        return yield* found(name, now)
      }),
  }
}
