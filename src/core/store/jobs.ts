import type { HourStore } from '../course/hours.ts'
import type { Beat, HeartbeatRecord } from '../heartbeats.ts'
import { first, run, type Sql, type Steps, scalar } from './sql.ts'

export const TEXTS = {
  // A lease that ends much later than any new one could was taken before the clock of leases was set back.
  claim: `INSERT INTO handled_hour (hour, claimed_until) VALUES (@hour, @leaseNow + @leaseMs)
    ON CONFLICT (hour) DO UPDATE SET claimed_until = excluded.claimed_until
    WHERE handled_hour.claimed_until IS NOT NULL
      AND (handled_hour.claimed_until <= @leaseNow OR handled_hour.claimed_until > @leaseNow + 2 * @leaseMs)`,
  isHandled: 'SELECT 1 FROM handled_hour WHERE hour = @hour AND claimed_until IS NULL',
  keep: 'UPDATE handled_hour SET claimed_until = @leaseNow + @leaseMs WHERE hour = @hour AND claimed_until IS NOT NULL',
  forgetAfter: 'DELETE FROM handled_hour WHERE hour > @hour',
  end: 'UPDATE handled_hour SET claimed_until = @until WHERE hour = @hour AND claimed_until IS NOT NULL',
  last: 'SELECT max(hour) AS hour FROM handled_hour',
  now: 'SELECT @leaseNow AS now',
  find: 'SELECT * FROM heartbeat WHERE name = @name',
  expect: `INSERT INTO heartbeat (name, since) VALUES (@name, @now)
    ON CONFLICT (name) DO UPDATE SET since = heartbeat.since RETURNING *`,
  beat: `INSERT INTO heartbeat (name, since, beat_at) VALUES (@name, @now, @now)
    ON CONFLICT (name) DO UPDATE SET beat_at = excluded.beat_at, failed_at = NULL, exit_code = NULL RETURNING *`,
  fail: `INSERT INTO heartbeat (name, since, failed_at, exit_code) VALUES (@name, @now, @now, @exitCode)
    ON CONFLICT (name) DO UPDATE SET failed_at = excluded.failed_at, exit_code = excluded.exit_code RETURNING *`,
}

export function hours({ one, read }: Sql) {
  return {
    claimHour: ({ hour, leaseMs }) =>
      read(function* (): Steps<'claimed' | 'handled' | 'busy'> {
        if ((yield* run(TEXTS.claim, { hour, leaseMs })) === 1) return 'claimed'
        return (yield* first(TEXTS.isHandled, { hour })) === undefined ? 'busy' : 'handled'
      }),
    keepHour: async ({ hour, leaseMs }) => void (await one(run(TEXTS.keep, { hour, leaseMs }))),
    forgetHoursAfter: (hour) => one(run(TEXTS.forgetAfter, { hour })),
    endHour: async (hour, done) => void (await one(run(TEXTS.end, { hour, until: done ? null : 0 }))),
    lastHour: () => one(scalar<string>(TEXTS.last)),
    /** The clock that leases are measured by, in UTC milliseconds: the server's, where there is one. */
    time: async () => (await one(scalar<number>(TEXTS.now))) ?? Number.NaN,
  } satisfies HourStore & Record<'lastHour' | 'time', unknown>
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
