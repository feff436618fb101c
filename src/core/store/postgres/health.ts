import { DAY_MS, HOUR_MS } from '../../durations.ts'
import type { ProbeState } from '../../health/probe.ts'
import type { Log } from '../../log.ts'
import type { Secret } from '../../secret.ts'
import { decode, EMPTY, encode, type Histogram, observe } from '../../status/histogram.ts'
import {
  DAYS_KEPT,
  HOURS_KEPT,
  type Period,
  type Recorded,
  type Round,
  type SharedHistory,
} from '../../status/history.ts'
import { floor, followLook, type SeriesMark, STATE_BITS } from '../../status/looks.ts'
import { type PeriodRow, periodOf } from '../period-rows.ts'
import { storableText } from '../sql.ts'
import { createPool, guarded, type Pool, type Queryable, transaction } from './connection.ts'

/**
 * The time limit for recording a round. Waiting longer for a lock is pointless: the next round comes a minute
 * later.
 */
const RECORD_MS = 5000

interface SeriesRow {
  readonly service: string
  readonly probe: string
  readonly first_at: number
  readonly at: number
  readonly counted_to: number
  readonly state: ProbeState
  readonly reason: string | null
  readonly recorder: string
  readonly state_at: number
}

interface Named {
  readonly service: string
  readonly probe: string
}

const keyOf = ({ service, probe }: Named) => JSON.stringify([service, probe])

/** The recorded health in a PostgreSQL that several machines share; the store was opened before, and has its tables. */
export function openPostgresHealth({ url, log }: { readonly url: Secret; readonly log: Log }): SharedHistory {
  const onIdleFault = (code: string) =>
    log.warn('store_connection_lost', 'an idle connection to the store was lost', { code })
  const pool = createPool({ url, size: 1, onIdleFault })
  return {
    close: () => pool.end(),
    record: (round, { recorder, now = round.at }) =>
      guarded(() => transaction(pool, (on) => record(on, round, { recorder, now }), RECORD_MS)),
    read: (now) => guarded(() => read(pool, now)),
    seed: (past, { recorder, now }) =>
      guarded(async () => {
        const isEmpty = async (on: Queryable) =>
          (await on.query('SELECT 1 FROM platformctl.health_series LIMIT 1')).rowCount === 0
        if (!(await isEmpty(pool))) return false
        const recorded = await past()
        return transaction(pool, async (on) => {
          await lock(on)
          if (recorded.series.length === 0 || !(await isEmpty(on))) return false
          await fill(on, recorded, { recorder, now })
          return true
        })
      }),
  }
}

/** Lets one process record at a time, so that each continues from the counts of the one before. */
const lock = (on: Queryable) => on.query("SELECT pg_advisory_xact_lock(hashtextextended('health', 3))")

async function record(
  on: Queryable,
  { at, observations, builds }: Round,
  { recorder, now }: { readonly recorder: string; readonly now: number },
): Promise<void> {
  await lock(on)
  const known = new Map(
    (await on.query<SeriesRow>('SELECT * FROM platformctl.health_series')).rows.map((row) => [
      keyOf(row),
      row,
    ]),
  )
  const { rows: current } = await on.query<Named & Pick<PeriodRow, 'length' | 'latency'>>(
    `SELECT service, probe, length, latency FROM platformctl.health_period
     WHERE (length = $1 AND start = $2) OR (length = $3 AND start = $4)`,
    [HOUR_MS, floor(at, HOUR_MS), DAY_MS, floor(at, DAY_MS)],
  )
  const latencies = new Map(current.map((row) => [`${row.length} ${keyOf(row)}`, row.latency]))
  const looks = observations.map((look) => {
    const { service, probe } = look
    const row = known.get(keyOf(look))
    const { series, periods } = followLook(look, {
      at,
      now,
      recorder,
      before: row && { ...row, countedTo: row.counted_to, stateAt: row.state_at },
    })
    return {
      series: rowOf({ service, probe }, row?.first_at ?? at, series),
      periods: periods.map(({ length, start, ms, seen, latencyMs }) => {
        const before = latencies.get(`${length} ${keyOf(look)}`)
        const latency =
          latencyMs === undefined ? EMPTY : observe(before === undefined ? EMPTY : decode(before), latencyMs)
        return periodRow({ service, probe, length, start, ms, seen, latency })
      }),
    }
  })
  await putSeries(
    on,
    looks.map(({ series }) => series),
  )
  await addPeriods(
    on,
    looks.flatMap(({ periods }) => periods),
  )
  await putBuilds(
    on,
    Object.entries(builds).map(([service, build]) => ({ service, build, since: at, seen_at: at })),
  )
  await on.query(
    'DELETE FROM platformctl.health_period WHERE (length = $1 AND start < $2) OR (length = $3 AND start < $4)',
    [HOUR_MS, now - HOURS_KEPT * HOUR_MS, DAY_MS, floor(now, DAY_MS) - (DAYS_KEPT - 1) * DAY_MS],
  )
}

function rowOf({ service, probe }: Named, first_at: number, mark: SeriesMark): SeriesRow {
  const { at, countedTo, state, reason, recorder, stateAt } = mark
  return { service, probe, first_at, at, counted_to: countedTo, state, reason, recorder, state_at: stateAt }
}

/** A row as JSON carries it; bytes as PostgreSQL reads them. */
function periodRow({
  ms,
  latency,
  ...row
}: Named & {
  readonly length: number
  readonly start: number
  readonly ms: Readonly<Partial<Record<ProbeState, number>>>
  readonly seen: number
  readonly latency: Histogram
}) {
  const bytes = `\\x${Buffer.from(encode(latency)).toString('hex')}`
  return { ...row, ok: 0, degraded: 0, failing: 0, skipped: 0, ...ms, latency: bytes }
}

async function putSeries(on: Queryable, rows: readonly SeriesRow[]): Promise<void> {
  await on.query(
    `INSERT INTO platformctl.health_series (service, probe, first_at, at, counted_to, state, reason, recorder, state_at)
     SELECT service, probe, first_at, at, counted_to, state, reason, recorder, state_at
     FROM jsonb_populate_recordset(NULL::platformctl.health_series, $1::jsonb)
     ON CONFLICT (service, probe) DO UPDATE SET at = excluded.at, counted_to = excluded.counted_to, state = excluded.state, reason = excluded.reason,
       recorder = excluded.recorder, state_at = excluded.state_at`,
    [JSON.stringify(rows.map((row) => ({ ...row, reason: row.reason && storableText(row.reason) })))],
  )
}

async function addPeriods(on: Queryable, rows: readonly object[]): Promise<void> {
  await on.query(
    `INSERT INTO platformctl.health_period AS p (length, start, service, probe, ok, degraded, failing, skipped, seen, latency)
     SELECT length, start, service, probe, ok, degraded, failing, skipped, seen, latency
     FROM jsonb_populate_recordset(NULL::platformctl.health_period, $1::jsonb)
     ON CONFLICT (length, start, service, probe) DO UPDATE SET ok = p.ok + excluded.ok,
       degraded = p.degraded + excluded.degraded, failing = p.failing + excluded.failing,
       skipped = p.skipped + excluded.skipped, seen = p.seen | excluded.seen,
       latency = CASE WHEN length(excluded.latency) = 0 THEN p.latency ELSE excluded.latency END`,
    [JSON.stringify(rows)],
  )
}

async function putBuilds(
  on: Queryable,
  rows: readonly {
    readonly service: string
    readonly build: string | null | undefined
    readonly since: number
    readonly seen_at: number
  }[],
): Promise<void> {
  await on.query(
    `INSERT INTO platformctl.health_build AS b (service, build, since, seen_at)
     SELECT service, build, since, seen_at FROM jsonb_populate_recordset(NULL::platformctl.health_build, $1::jsonb)
     ON CONFLICT (service) DO UPDATE SET seen_at = excluded.seen_at, build = excluded.build,
       since = CASE WHEN b.build IS NOT DISTINCT FROM excluded.build THEN b.since ELSE excluded.since END`,
    // Another service reports its own build, so the text may need cleaning.
    [JSON.stringify(rows.map((row) => ({ ...row, build: row.build && storableText(row.build) })))],
  )
}

async function fill(
  on: Queryable,
  { series, builds }: Recorded,
  { recorder, now }: { readonly recorder: string; readonly now: number },
): Promise<void> {
  await putSeries(
    on,
    series.map(({ firstAt, last, ...named }) =>
      rowOf(named, firstAt, {
        ...last,
        reason: last.reason ?? null,
        recorder,
        countedTo: last.at,
        stateAt: last.at,
      }),
    ),
  )
  const rows = (length: number, of: (one: Recorded['series'][number]) => readonly Period[]) =>
    series.flatMap((one) =>
      of(one).map(({ start, ms, seen, latency }) =>
        periodRow({
          service: one.service,
          probe: one.probe,
          length,
          start,
          ms,
          seen: seen.reduce((bits, state) => bits | STATE_BITS[state], 0),
          latency,
        }),
      ),
    )
  await addPeriods(on, [...rows(HOUR_MS, ({ hours }) => hours), ...rows(DAY_MS, ({ days }) => days)])
  await putBuilds(
    on,
    builds.map(({ service, build, since, seenAt }) => ({
      service,
      build,
      since,
      seen_at: Math.min(seenAt, now),
    })),
  )
}

async function read(pool: Pool, now: number): Promise<Recorded> {
  const { rows: series } = await pool.query<SeriesRow>(
    'SELECT * FROM platformctl.health_series ORDER BY place',
  )
  const { rows: periods } = await pool.query<Named & PeriodRow>(
    `SELECT * FROM platformctl.health_period WHERE (length = $1 AND start >= $2) OR (length = $3 AND start > $4)
     ORDER BY start`,
    [DAY_MS, floor(now, DAY_MS) - (DAYS_KEPT - 1) * DAY_MS, HOUR_MS, floor(now, HOUR_MS) - 24 * HOUR_MS],
  )
  const { rows: builds } = await pool.query<Recorded['builds'][number]>(
    'SELECT service, build, since, seen_at AS "seenAt" FROM platformctl.health_build',
  )
  const of = Map.groupBy(periods, (row) => `${row.length} ${keyOf(row)}`)
  return {
    series: series.map((row) => ({
      service: row.service,
      probe: row.probe,
      firstAt: row.first_at,
      last: { at: row.at, state: row.state, reason: row.reason ?? undefined },
      days: (of.get(`${DAY_MS} ${keyOf(row)}`) ?? []).map(periodOf),
      hours: (of.get(`${HOUR_MS} ${keyOf(row)}`) ?? []).map(periodOf),
    })),
    // The store keeps incidents elsewhere, with the alerts sent about each.
    incidents: [],
    builds,
  }
}
