import { DAY_MS, HOUR_MS } from '../../durations.ts'
import type { ProbeState } from '../../health/probe.ts'
import type { Service } from '../../service.ts'
import { decode, EMPTY, encode, observe } from '../../status/histogram.ts'
import {
  DAYS_KEPT,
  type History,
  HOURS_KEPT,
  INCIDENTS_KEPT_PER_PROBE,
  type Incident,
  type Period,
  SAME_INCIDENT_MS,
} from '../../status/history.ts'
import { floor, followLook, type PeriodDelta } from '../../status/looks.ts'
import { type PeriodRow, periodOf } from '../period-rows.ts'
import { closeFile, guard, IN_MEMORY, openDatabase, type SqliteDatabase } from './connection.ts'

/** A file has one: processes that share it are on one machine. */
const RECORDER = ''
const NO_TIME = { ok: 0, degraded: 0, failing: 0, skipped: 0 }
const NOTHING = new Uint8Array()

interface SeriesRow {
  readonly id: number
  readonly service: Service
  readonly probe: string
  readonly first_at: number
  readonly at: number
  readonly state: ProbeState
  readonly reason: string | null
}

interface HistoryIncidentRow {
  readonly id: number
  readonly series: number
  readonly state: Incident['state']
  readonly reason: string | null
  readonly began_at: number
  readonly seen_at: number
  readonly ended_at: number | null
}

/** Records a round in the hours, the days and the incidents that it touches; run in a transaction. */
export function writer(database: SqliteDatabase): (round: Parameters<History['record']>[0]) => void {
  const prepare = (sql: string) => database.prepare(sql)
  const sql = {
    known: prepare('SELECT * FROM series WHERE service = ? AND probe = ?'),
    series: prepare(`
      INSERT INTO series (service, probe, first_at, at, state, reason) VALUES (@service, @probe, @at, @at, @state, @reason)
      ON CONFLICT (service, probe) DO UPDATE SET at = excluded.at, state = excluded.state, reason = excluded.reason
      RETURNING id`).pluck(),
    latency: prepare('SELECT latency FROM period WHERE length = ? AND start = ? AND series = ?').pluck(),
    period: prepare(`
      INSERT INTO period (length, start, series, ok, degraded, failing, skipped, seen, latency)
      VALUES (@length, @start, @series, @ok, @degraded, @failing, @skipped, @seen, @latency)
      ON CONFLICT DO UPDATE SET ok = ok + excluded.ok, degraded = degraded + excluded.degraded,
        failing = failing + excluded.failing, skipped = skipped + excluded.skipped,
        seen = seen | excluded.seen,
        latency = CASE WHEN length(excluded.latency) = 0 THEN latency ELSE excluded.latency END`),
    open: prepare('SELECT * FROM incident WHERE series = ? AND ended_at IS NULL'),
    begin: prepare('INSERT INTO incident (series, state, reason, began_at, seen_at) VALUES (?, ?, ?, ?, ?)'),
    goOn: prepare('UPDATE incident SET state = ?, reason = ?, seen_at = max(seen_at, ?) WHERE id = ?'),
    end: prepare('UPDATE incident SET ended_at = max(began_at, ?) WHERE id = ?'),
    build: prepare(`
      INSERT INTO build (service, build, since, seen_at) VALUES (@service, @build, @at, @at)
      ON CONFLICT (service) DO UPDATE SET seen_at = excluded.seen_at, build = excluded.build,
        since = CASE WHEN build IS excluded.build THEN since ELSE excluded.since END`),
    dropPeriods: prepare('DELETE FROM period WHERE length = ? AND start < ?'),
    dropIncidents: prepare('DELETE FROM incident WHERE ended_at < ?'),
    dropFlapping: prepare(`
      DELETE FROM incident WHERE id IN (
        SELECT id FROM (SELECT id, row_number() OVER (PARTITION BY series ORDER BY began_at DESC) AS place FROM incident)
        WHERE place > ${INCIDENTS_KEPT_PER_PROBE})`),
  }
  let tidied = Number.NaN

  function addTo(series: number, { length, start, ms, seen, latencyMs }: PeriodDelta): void {
    const latency = withLatency(length, start, series, latencyMs)
    sql.period.run({ length, start, series, ...NO_TIME, ...ms, seen, latency })
  }

  function withLatency(
    length: number,
    start: number,
    series: number,
    latencyMs: number | undefined,
  ): Uint8Array {
    if (latencyMs === undefined) return NOTHING
    const before = sql.latency.get(length, start, series) as Uint8Array | undefined
    return encode(observe(before ? decode(before) : EMPTY, latencyMs))
  }

  function followIncident(series: number, at: number, state: ProbeState, reason: string | null): void {
    const known = sql.open.get(series) as HistoryIncidentRow | undefined
    const silent = known !== undefined && at - known.seen_at > SAME_INCIDENT_MS
    if (state === 'degraded' || state === 'failing') {
      if (known !== undefined && !silent) {
        const eased = known.state === 'failing' && state === 'degraded'
        sql.goOn.run(eased ? 'failing' : state, eased ? known.reason : reason, at, known.id)
        return
      }
      if (known !== undefined) sql.end.run(known.seen_at, known.id)
      sql.begin.run(series, state, reason, at, at)
    } else if (known !== undefined) sql.end.run(silent ? known.seen_at : at, known.id)
  }

  return ({ at, observations, builds }) => {
    for (const observation of observations) {
      const { service, probe } = observation
      const row = sql.known.get(service, probe) as SeriesRow | undefined
      const before = row && { ...row, recorder: RECORDER, stateAt: row.at, countedTo: row.at }
      const { series: mark, periods } = followLook(observation, { at, recorder: RECORDER, before })
      const { state, reason } = mark
      const series = Number(sql.series.get({ service, probe, at: mark.at, state, reason }))
      for (const period of periods) addTo(series, period)
      // A service is the worst of its probes: their incidents are its own.
      if (probe !== '') followIncident(series, at, state, reason)
    }
    for (const [service, build] of Object.entries(builds)) sql.build.run({ service, build, at })
    const today = floor(at, DAY_MS)
    if (today === tidied) return
    tidied = today
    sql.dropPeriods.run(HOUR_MS, at - HOURS_KEPT * HOUR_MS)
    sql.dropPeriods.run(DAY_MS, today - (DAYS_KEPT - 1) * DAY_MS)
    sql.dropIncidents.run(at - DAYS_KEPT * DAY_MS)
    sql.dropFlapping.run()
  }
}

/** All that is kept, as the status page reads it. */
export function read(database: SqliteDatabase, now: number): Awaited<ReturnType<History['read']>> {
  const series = database.prepare('SELECT * FROM series ORDER BY id').all() as SeriesRow[]
  const periods = database
    .prepare('SELECT * FROM period WHERE length = ? AND start >= ? ORDER BY start')
    .all(DAY_MS, floor(now, DAY_MS) - (DAYS_KEPT - 1) * DAY_MS)
    .concat(
      database
        .prepare('SELECT * FROM period WHERE length = ? AND start > ? ORDER BY start')
        .all(HOUR_MS, floor(now, HOUR_MS) - 24 * HOUR_MS),
    ) as (PeriodRow & { readonly series: number })[]
  const incidents = database
    .prepare('SELECT * FROM incident WHERE coalesce(ended_at, seen_at) >= ? ORDER BY began_at DESC LIMIT 500')
    .all(now - DAYS_KEPT * DAY_MS) as HistoryIncidentRow[]
  const builds = database.prepare('SELECT service, build, since, seen_at AS seenAt FROM build').all()
  const named = new Map(series.map(({ id, service, probe }) => [id, { service, probe }]))
  const periodsOf = Map.groupBy(periods, (row) => `${row.series} ${row.length}`)
  const of = (id: number, length: number): Period[] => (periodsOf.get(`${id} ${length}`) ?? []).map(periodOf)
  return {
    series: series.map(({ id, service, probe, first_at, at, state, reason }) => ({
      service,
      probe,
      firstAt: first_at,
      last: { at, state, reason: reason ?? undefined },
      days: of(id, DAY_MS),
      hours: of(id, HOUR_MS),
    })),
    incidents: incidents.flatMap(({ series: id, state, reason, began_at, ended_at }) => {
      const name = named.get(id)
      return name === undefined
        ? []
        : [{ ...name, state, reason: reason ?? undefined, beganAt: began_at, endedAt: ended_at ?? undefined }]
    }),
    // The table holds exactly these columns.
    builds: builds as Awaited<ReturnType<History['read']>>['builds'],
  }
}

/** Steps of the schema, in order: never edited once released, only added to. */
const MIGRATIONS: readonly string[] = [
  `
  CREATE TABLE series (
    id INTEGER PRIMARY KEY,
    service TEXT NOT NULL,
    probe TEXT NOT NULL,
    first_at INTEGER NOT NULL,
    at INTEGER NOT NULL,
    state TEXT NOT NULL,
    reason TEXT,
    UNIQUE (service, probe)
  ) STRICT;
  CREATE TABLE period (
    length INTEGER NOT NULL,
    start INTEGER NOT NULL,
    series INTEGER NOT NULL,
    ok INTEGER NOT NULL DEFAULT 0,
    degraded INTEGER NOT NULL DEFAULT 0,
    failing INTEGER NOT NULL DEFAULT 0,
    skipped INTEGER NOT NULL DEFAULT 0,
    seen INTEGER NOT NULL,
    latency BLOB NOT NULL DEFAULT x'',
    PRIMARY KEY (length, start, series)
  ) STRICT, WITHOUT ROWID;
  CREATE TABLE incident (
    id INTEGER PRIMARY KEY,
    series INTEGER NOT NULL,
    state TEXT NOT NULL,
    reason TEXT,
    began_at INTEGER NOT NULL,
    seen_at INTEGER NOT NULL,
    ended_at INTEGER
  ) STRICT;
  CREATE INDEX incident_open ON incident (series) WHERE ended_at IS NULL;
  CREATE INDEX incident_series ON incident (series, began_at);
  CREATE TABLE build (service TEXT PRIMARY KEY, build TEXT, since INTEGER NOT NULL, seen_at INTEGER NOT NULL) STRICT, WITHOUT ROWID;
  `,
]

/**
 * The history in an SQLite file of its own (`file` undefined: in memory). Synchronous NORMAL: a killed process loses
 * nothing that was recorded, a power cut perhaps the last minutes, which then are a gap.
 */
export function openSqliteHistory(file: string | undefined, onLost?: (cause: unknown) => void): History {
  const database = openDatabase({ file: file ?? IN_MEMORY, synchronous: 'NORMAL', migrations: MIGRATIONS })
  const guarded = guard(database, onLost)
  const write = writer(database)
  const record = database.transaction((round: Parameters<History['record']>[0]) => write(round))
  return {
    persistent: file !== undefined,
    record: async (round) => guarded(() => record.immediate(round)),
    read: async (now) => guarded(() => read(database, now)),
    async close() {
      if (!database.open) return
      if (file === undefined) database.close()
      else closeFile(database)
    },
  }
}
