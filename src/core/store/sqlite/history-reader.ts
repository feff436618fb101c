import { DAY_MS, HOUR_MS } from '../../durations.ts'
import { DAYS_KEPT, type History, type Period } from '../../status/history.ts'
import { floor } from '../../status/looks.ts'
import { type PeriodRow, periodOf } from '../period-rows.ts'
import type { SqliteDatabase } from './connection.ts'
import type { HistoryIncidentRow, SeriesRow } from './history-rows.ts'

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
