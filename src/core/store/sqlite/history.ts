import { DAY_MS } from '../../durations.ts'
import type { ProbeState } from '../../health/probe.ts'
import type { History, Incident } from '../../status/history.ts'
import { DAYS_KEPT, INCIDENTS_KEPT_PER_PROBE, SAME_INCIDENT_MS, WHOLE_SERVICE } from '../../status/history.ts'
import { health } from '../health.ts'
import { SQLITE_HEALTH } from '../migrations.ts'
import { all, run, type Steps } from '../sql.ts'
import type { OnLost } from '../store.ts'
import { closeFile, guard, IN_MEMORY } from './connection.ts'
import { openDatabase, sqliteSql } from './sql.ts'

/** A file has one: processes that share it are on one machine. */
const RECORDER = ''
const OPEN = 'service = @service AND probe = @probe AND ended_at IS NULL'

/** The incidents that this machine saw, which only a file has; `@at` is the time of the look. */
export const INCIDENTS = {
  open: 'SELECT service, probe, state, reason, seen_at FROM health_incident WHERE ended_at IS NULL ORDER BY began_at DESC',
  begin: `INSERT OR REPLACE INTO health_incident (service, probe, state, reason, began_at, seen_at)
    VALUES (@service, @probe, @state, @reason, @at, @at)`,
  goOn: `UPDATE health_incident SET state = @state, reason = @reason, seen_at = max(seen_at, @at) WHERE ${OPEN}`,
  end: `UPDATE health_incident SET ended_at = max(began_at, @at) WHERE ${OPEN}`,
  bound: `DELETE FROM health_incident WHERE service = @service AND probe = @probe AND began_at <= (
    SELECT began_at FROM health_incident WHERE service = @service AND probe = @probe
    ORDER BY began_at DESC LIMIT 1 OFFSET ${INCIDENTS_KEPT_PER_PROBE})`,
  // What goes on comes first, so that no limit leaves it out. What many later looks left out is over: its probe was removed.
  list: `SELECT service, probe, state, reason, began_at, CASE WHEN ended_at IS NULL
      AND seen_at < (SELECT max(at) FROM health_series WHERE at <= @now) - ${SAME_INCIDENT_MS} THEN seen_at ELSE ended_at END AS ended_at
    FROM health_incident i
    WHERE coalesce(ended_at, seen_at) >= @since ORDER BY i.ended_at IS NOT NULL, began_at DESC, rowid LIMIT 500`,
}

type Look = Pick<Incident, 'service' | 'probe' | 'reason'> & { state: ProbeState; at: number }
type OpenIncident = Omit<Incident, 'beganAt' | 'endedAt'> & { readonly seenAt: number }

function* followIncident(look: Look, known: OpenIncident | undefined): Steps<void> {
  const { state, at } = look
  const isBad = state === 'degraded' || state === 'failing'
  const silent = known !== undefined && at - known.seenAt > SAME_INCIDENT_MS
  if (known && isBad && !silent) {
    const eased = known.state === 'failing' && state === 'degraded'
    yield* run(INCIDENTS.goOn, { ...look, ...(eased && { state: known.state, reason: known.reason }) })
    return
  }
  if (known) yield* run(INCIDENTS.end, { ...look, at: silent ? known.seenAt : at })
  if (!isBad) return
  yield* run(INCIDENTS.begin, look)
  yield* run(INCIDENTS.bound, look)
}

/** What the tables that earlier builds write have and the newer ones have not. */
const TAKE_OVER = `
  INSERT OR IGNORE INTO health_series (service, probe, first_at, at, counted_to, state, reason, recorder, state_at)
    SELECT service, probe, first_at, at, at, state, reason, '${RECORDER}', at FROM series ORDER BY id;
  INSERT OR IGNORE INTO health_period (length, start, service, probe, ok, degraded, failing, skipped, seen, latency)
    SELECT length, start, service, probe, ok, degraded, failing, skipped, seen, latency FROM period JOIN series ON id = series;
  INSERT OR IGNORE INTO health_incident (service, probe, state, reason, began_at, seen_at, ended_at)
    SELECT service, probe, i.state, i.reason, began_at, seen_at, ended_at
    FROM incident i JOIN series s ON s.id = i.series ORDER BY i.id;
  INSERT OR IGNORE INTO health_build SELECT service, build, since, seen_at FROM build;
`

/** Steps of the schema, in order: never edited once released, only added to. */
const MIGRATIONS: readonly string[] = [
  `
  CREATE TABLE series (id INTEGER PRIMARY KEY, service TEXT NOT NULL, probe TEXT NOT NULL, first_at INTEGER NOT NULL,
    at INTEGER NOT NULL, state TEXT NOT NULL, reason TEXT, UNIQUE (service, probe)) STRICT;
  CREATE TABLE period (length INTEGER NOT NULL, start INTEGER NOT NULL, series INTEGER NOT NULL,
    ok INTEGER NOT NULL DEFAULT 0, degraded INTEGER NOT NULL DEFAULT 0, failing INTEGER NOT NULL DEFAULT 0,
    skipped INTEGER NOT NULL DEFAULT 0, seen INTEGER NOT NULL, latency BLOB NOT NULL DEFAULT x'',
    PRIMARY KEY (length, start, series)) STRICT, WITHOUT ROWID;
  CREATE TABLE incident (id INTEGER PRIMARY KEY, series INTEGER NOT NULL, state TEXT NOT NULL, reason TEXT,
    began_at INTEGER NOT NULL, seen_at INTEGER NOT NULL, ended_at INTEGER) STRICT;
  CREATE INDEX incident_open ON incident (series) WHERE ended_at IS NULL;
  CREATE INDEX incident_series ON incident (series, began_at);
  CREATE TABLE build (service TEXT PRIMARY KEY, build TEXT, since INTEGER NOT NULL, seen_at INTEGER NOT NULL) STRICT, WITHOUT ROWID;
  `,
  // The tables that a PostgreSQL has, and `meta`, which lets earlier builds go on with theirs.
  `${SQLITE_HEALTH}
  CREATE TABLE health_incident (
    service TEXT NOT NULL,
    probe TEXT NOT NULL,
    state TEXT NOT NULL,
    reason TEXT,
    began_at INTEGER NOT NULL,
    seen_at INTEGER NOT NULL,
    ended_at INTEGER,
    UNIQUE (service, probe, began_at)
  ) STRICT;
  CREATE INDEX health_incident_open ON health_incident (began_at) WHERE ended_at IS NULL;
  CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT, WITHOUT ROWID;
  ${TAKE_OVER}`,
]
const IS_BEHIND = 'SELECT (SELECT max(at) FROM series) > coalesce((SELECT max(at) FROM health_series), 0)'

/** The history in a file of its own (undefined: in memory). A power cut may lose the last minutes, which then are a gap. */
export async function openSqliteHistory(file: string | undefined, onLost?: OnLost): Promise<History> {
  const database = await openDatabase(file ?? IN_MEMORY, 'NORMAL', MIGRATIONS)
  // After a rollback an earlier build recorded into its own tables.
  if (database.prepare(IS_BEHIND).pluck().get() === 1) database.exec(`BEGIN IMMEDIATE; ${TAKE_OVER}; COMMIT`)
  const { read, write } = sqliteSql({ database, guarded: guard(database, onLost) })
  return {
    persistent: file !== undefined,
    record: (round) =>
      write(function* () {
        const looks = yield* health.record(round, RECORDER)
        const open = yield* all<OpenIncident>(INCIDENTS.open)
        // A service is the worst of its probes: their incidents are its own.
        for (const { service, probe, state, reason } of looks) {
          const known = open.find((one) => one.service === service && one.probe === probe)
          if (probe !== WHOLE_SERVICE)
            yield* followIncident({ service, probe, state, reason, at: round.at }, known)
        }
      }),
    read: (now) =>
      read(function* () {
        return {
          ...(yield* health.read(now)),
          incidents: yield* all<Incident>(INCIDENTS.list, { since: now - DAYS_KEPT * DAY_MS, now }),
        }
      }),
    close: async () => closeFile(database),
  }
}
