import { DAY_MS, HOUR_MS } from '../durations.ts'
import type { ProbeState } from '../health/probe.ts'
import type { Service } from '../service.ts'
import { decode, encode, observe } from '../status/histogram.ts'
import type { Period, Recorded, Round, SharedHistory } from '../status/history.ts'
import { DAYS_KEPT, HOURS_KEPT } from '../status/history.ts'
import { floor, followLook, type SeriesMark, STATE_BITS } from '../status/rounds.ts'
import { all, assigned, insertRows, lock, run, SPACE, type Sql, type Steps } from './sql.ts'

const MARK = 'at, counted_to, state, reason, recorder, state_at'
const SERIES = `service, probe, first_at, ${MARK}`
const BUILD = 'service, build, since, seen_at'
const STATES = Object.keys(STATE_BITS) as ProbeState[]
const PERIOD = `length, start, service, probe, ${STATES.join(', ')}, seen`

export const TEXTS = {
  series: `SELECT * FROM health_series ORDER BY {inserted}`,
  periods: `SELECT * FROM health_period
    WHERE (length = ${DAY_MS} AND start >= @day) OR (length = ${HOUR_MS} AND start >= @hour) ORDER BY start`,
  builds: `SELECT ${BUILD} FROM health_build`,
  putSeries: `${insertRows('health_series', SERIES)}
    ON CONFLICT (service, probe) DO UPDATE SET ${assigned(MARK, 'excluded')}`,
  addPeriods: `INSERT INTO health_period AS p (${PERIOD}, latency)
    SELECT ${PERIOD}, {bytes latency} FROM {rows health_period: ${PERIOD}, latency} AS r WHERE true
    ON CONFLICT (length, start, service, probe) DO UPDATE SET
      ${STATES.map((state) => `${state} = p.${state} + excluded.${state}`).join(', ')}, seen = p.seen | excluded.seen,
      latency = CASE WHEN length(excluded.latency) = 0 THEN p.latency ELSE excluded.latency END`,
  putBuilds: `${insertRows('health_build', BUILD)}
    ON CONFLICT (service) DO UPDATE SET seen_at = excluded.seen_at, build = excluded.build, since =
      CASE WHEN health_build.build IS NOT DISTINCT FROM excluded.build THEN health_build.since ELSE excluded.since END`,
  prune: `DELETE FROM health_period WHERE (length = ${DAY_MS} AND start < @day) OR (length = ${HOUR_MS} AND start < @hour)`,
}

type Named = { readonly service: Service; readonly probe: string }
type SeriesRow = Named & SeriesMark & { readonly firstAt: number }

/** An hour or a day of a probe: milliseconds in each state, and bits of `seen`. */
type PeriodRow = Named &
  Readonly<Record<ProbeState | 'length' | 'start' | 'seen', number> & { latency: Uint8Array }>

const firstDay = (now: number) => floor(now, DAY_MS) - (DAYS_KEPT - 1) * DAY_MS
const NOTHING = new Uint8Array()
const NO_TIME = { ok: 0, degraded: 0, failing: 0, skipped: 0 }
const keyOf = ({ service, probe }: Named) => JSON.stringify([service, probe])
const periodKey = ({ length, start, ...named }: Pick<PeriodRow, 'length' | 'start' | keyof Named>) =>
  `${length} ${start} ${keyOf(named)}`

function periodOf({ start, ok, degraded, failing, skipped, seen, latency }: PeriodRow): Period {
  const states = STATES.filter((state) => (seen & STATE_BITS[state]) !== 0)
  return { start, ms: { ok, degraded, failing, skipped }, seen: states, latency: decode(latency) }
}

const listSeries = () => all<SeriesRow>(TEXTS.series)
const listPeriods = (day: number, hour: number) => all<PeriodRow>(TEXTS.periods, { day, hour })

type Builds = Recorded['builds']
function* put(series: readonly SeriesRow[], periods: readonly PeriodRow[], builds: Builds): Steps<void> {
  // Bytes as PostgreSQL reads them in JSON.
  const inJson = (latency: Uint8Array) => `\\x${Buffer.from(latency).toString('hex')}`
  yield* run(TEXTS.putSeries, { rows: series })
  yield* run(TEXTS.addPeriods, { rows: periods.map((row) => ({ ...row, latency: inJson(row.latency) })) })
  yield* run(TEXTS.putBuilds, { rows: builds })
}

export const health = {
  /** Adds what a machine saw, one at a time: each goes on from the counts of the one before. Gives the state of each probe. */
  *record({ at, observations, builds }: Round, recorder: string, now = at): Steps<readonly SeriesRow[]> {
    yield* lock(SPACE.health, 'health')
    const known = new Map((yield* listSeries()).map((row) => [keyOf(row), row]))
    const current = yield* listPeriods(floor(at, DAY_MS), floor(at, HOUR_MS))
    const latencies = new Map(current.map((row) => [periodKey(row), row.latency]))
    const looks = observations.map((look) => {
      const { service, probe } = look
      const before = known.get(keyOf(look))
      const { series, periods } = followLook(look, { at, now, recorder, before })
      return {
        series: { service, probe, firstAt: before?.firstAt ?? at, ...series },
        periods: periods.map(({ ms, latencyMs, ...period }) => {
          const row = { service, probe, ...period, ...NO_TIME, ...ms, latency: NOTHING }
          if (latencyMs === undefined) return row
          const counted = decode(latencies.get(periodKey(row)) ?? NOTHING)
          return { ...row, latency: encode(observe(counted, latencyMs)) }
        }),
      }
    })
    const series = looks.map((look) => look.series)
    const noted = { since: at, seenAt: at }
    const seen = Object.entries(builds).map(([service, build = null]) => ({ service, build, ...noted }))
    const periods = looks.flatMap((look) => look.periods)
    yield* put(series, periods, seen)
    yield* run(TEXTS.prune, { day: firstDay(now), hour: now - HOURS_KEPT * HOUR_MS })
    return series
  },
  /** What the status page shows, but for incidents. */
  *read(now: number): Steps<Omit<Recorded, 'incidents'>> {
    const series = yield* listSeries()
    const periods = yield* listPeriods(firstDay(now), floor(now, HOUR_MS) - 23 * HOUR_MS)
    const builds = yield* all<Builds[number]>(TEXTS.builds)
    const byProbe = Map.groupBy(periods, keyOf)
    return {
      series: series.map((row) => {
        const { service, probe, firstAt, at, state, reason } = row
        const byLength = Map.groupBy(byProbe.get(keyOf(row)) ?? [], ({ length }) => length)
        const of = (length: number) => (byLength.get(length) ?? []).map(periodOf)
        const periods = { days: of(DAY_MS), hours: of(HOUR_MS) }
        return { service, probe, firstAt, last: { at, state, reason }, ...periods }
      }),
      builds: builds.map((row) => ({ ...row, build: row.build ?? null })),
    }
  },
  /** Begins a record with what the machine `recorder` has on its own; false if that is nothing. */
  *begin({ series, builds }: Recorded, recorder: string): Steps<boolean> {
    yield* lock(SPACE.health, 'health')
    if (series.length === 0 || (yield* listSeries()).length > 0) return false
    const rows = ({ service, probe }: Named, length: number, periods: readonly Period[]) =>
      periods.map(({ start, ms, seen, latency }): PeriodRow => {
        const bits = seen.reduce((sum, state) => sum | STATE_BITS[state], 0)
        return { length, start, service, probe, ...ms, seen: bits, latency: encode(latency) }
      })
    const marks = series.map(({ service, probe, firstAt, last }) => {
      return { service, probe, firstAt, ...last, countedTo: last.at, recorder, stateAt: last.at }
    })
    const past = series.flatMap((one) => [...rows(one, DAY_MS, one.days), ...rows(one, HOUR_MS, one.hours)])
    yield* put(marks, past, builds)
    return true
  },
}

export const sharedHistory = ({ one, read, write }: Sql): Omit<SharedHistory, 'close'> => ({
  record: async (round, recorder, now) => void (await write(() => health.record(round, recorder, now))),
  // The store keeps incidents elsewhere, with the alerts sent about each.
  read: async (now) => ({ ...(await read(() => health.read(now))), incidents: [] }),
  async seed(past, recorder) {
    if ((await one(listSeries())).length > 0) return false
    const recorded = await past()
    return write(() => health.begin(recorded, recorder))
  },
})
