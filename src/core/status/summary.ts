import { DAY_MS, HOUR_MS } from '../durations.ts'
import type { ProbeState } from '../health/probe.ts'
import { type Prerequisites, rootsOf } from '../health/verdict.ts'
import type { Announcement, StatusUpdate } from '../incidents/incident.ts'
import { dependsOn, NO_PREREQUISITES } from '../incidents/prerequisites.ts'
import { namesakeProbeName, type Service } from '../service.ts'
import { count, type Histogram, merge, quantile } from './histogram.ts'
import {
  DAYS_KEPT,
  type Incident,
  type Period,
  type Recorded,
  type RootIncident,
  type Series,
  WHOLE_SERVICE,
} from './history.ts'

/** Within this time a service notices trouble of its neighbor: two rounds a minute apart, and their time. */
const NOTICE_MS = 3 * 60 * 1000

/** Separates causes from what follows: `agent: api` while the API itself was failing is no incident of its own. */
export function rootIncidents(
  incidents: readonly Incident[],
  now: number,
  services: readonly Service[],
  prerequisites: Prerequisites = NO_PREREQUISITES,
): RootIncident[] {
  const end = (incident: Incident) => incident.endedAt ?? now
  const explains = (cause: Incident, follower: Incident) =>
    cause.beganAt <= follower.beganAt + NOTICE_MS &&
    follower.beganAt <= end(cause) + NOTICE_MS &&
    ((services.includes(follower.probe) && cause.service === follower.probe) ||
      // One that goes on after its cause has ended is an incident of its own.
      (cause.state === 'failing' &&
        cause.probe !== follower.probe &&
        dependsOn(prerequisites, follower, cause) &&
        end(follower) <= end(cause) + NOTICE_MS))
  // A cause can itself follow from another: web notices the agent, which notices the API.
  const rootsOfEach = rootsOf(incidents, (incident) =>
    services.includes(incident.probe) || prerequisites.has(incident.probe)
      ? incidents.filter((cause) => explains(cause, incident))
      : [],
  )
  const feltBy = new Map<Incident, Set<string>>()
  for (const [incident, roots] of rootsOfEach) {
    for (const root of roots) {
      const felt = feltBy.get(root) ?? new Set()
      for (const name of [incident.service, incident.probe])
        if (name !== root.service && name !== root.probe) felt.add(name)
      feltBy.set(root, felt)
    }
  }
  const roots = incidents.flatMap((incident): RootIncident[] => {
    const felt = feltBy.get(incident)
    return felt === undefined ? [] : [{ ...incident, lengthMs: 0, feltBy: [...felt] }]
  })
  return joinObservers(roots).map((one) => ({ ...one, lengthMs: Math.max(0, end(one) - one.beganAt) }))
}

/** Joins what several services saw in probes of one name: an outage is one incident, of the first that saw it. */
function joinObservers(roots: readonly RootIncident[]): RootIncident[] {
  const joined: RootIncident[] = []
  for (const one of roots.toSorted((a, b) => a.beganAt - b.beganAt)) {
    const index = joined.findIndex(
      ({ probe, service, endedAt = Number.POSITIVE_INFINITY }) =>
        probe === one.probe && service !== one.service && one.beganAt <= endedAt + NOTICE_MS,
    )
    const other = joined[index]
    if (other === undefined) {
      joined.push(one)
      continue
    }
    const { service, reason = one.reason, feltBy } = other
    // One that goes on for either goes on.
    const goesOn = other.endedAt === undefined || one.endedAt === undefined
    const endedAt = goesOn ? undefined : Math.max(other.endedAt, one.endedAt)
    const state = one.state === 'failing' ? 'failing' : other.state
    const felt = new Set([...feltBy, one.service, ...one.feltBy])
    felt.delete(service)
    joined[index] = { ...other, state, reason, endedAt, feltBy: [...felt] }
  }
  return joined.toSorted((a, b) => b.beganAt - a.beganAt)
}

/** A look older than this says nothing about now: two were missed. */
const FRESH_MS = 3 * 60 * 1000

/** `unknown`: nothing was recorded lately. */
export type CurrentState = ProbeState | 'unknown'
/** The worst that was recorded in a day; `none`: no data. */
export type DayState = 'ok' | 'degraded' | 'failing' | 'none'

export type Window = Readonly<ReturnType<typeof window>>
export type Line = Readonly<ReturnType<typeof line>>

export type ServiceStatus = Readonly<Summary['services'][number]>

/** Data of the status page, its JSON and its badge, from the recorded history alone. Times are UTC milliseconds. */
export type Summary = Readonly<ReturnType<typeof summarise>>

export function summarise(
  recorded: Recorded,
  now: number,
  names: readonly Service[],
  prerequisites: Prerequisites = NO_PREREQUISITES,
) {
  const find = (service: Service, probe: string) =>
    recorded.series.find((series) => series.service === service && series.probe === probe)
  const isFresh = (series: Series | undefined) => series !== undefined && now - series.last.at < FRESH_MS

  const services = names.flatMap((service) => {
    const own = find(service, WHOLE_SERVICE)
    const seenBy = (other: Service) => find(other, namesakeProbeName(service)) ?? find(other, service)
    const observer = names.find((other) => other !== service && isFresh(seenBy(other)))
    const elsewhere = observer === undefined ? undefined : seenBy(observer)
    const series = isFresh(own) ? own : (elsewhere ?? own)
    if (series === undefined) return []
    const build = recorded.builds.find((one) => one.service === service && now - one.seenAt < FRESH_MS)
    return [
      {
        service,
        /** The service whose probe of this one is shown, because this one does not run in a process that records. */
        seenFrom: series === own ? undefined : observer,
        whole: { ...line(series, now), service, probe: WHOLE_SERVICE },
        // Without those that the looks at the service leave out by now, as they were removed.
        probes: recorded.series
          .filter((one) => series === own && one.service === service && one.probe !== WHOLE_SERVICE)
          .filter(({ last }) => series.last.at - last.at < FRESH_MS)
          .map((one) => line(one, now)),
        build: build?.build,
        buildSince: build?.since,
      },
    ]
  })
  const { updates = [], shared: roots = rootIncidents(recorded.incidents, now, names, prerequisites) } =
    recorded
  const states = services.map(({ whole }) => whole.state)
  const worst = (['failing', 'unknown', 'degraded'] as const).find((state) => states.includes(state))
  const builds = new Set(services.flatMap(({ build }) => (build === undefined ? [] : [build])))
  const looks = recorded.series.map(({ last }) => last.at).sort((a, b) => a - b)
  const starts = recorded.series.map(({ firstAt }) => firstAt).sort((a, b) => a - b)
  const state: Exclude<CurrentState, 'skipped'> = worst ?? (states.length === 0 ? 'unknown' : 'ok')
  return {
    now,
    state,
    /** Of the newest look; undefined when nothing was ever recorded. */
    checkedAt: looks.at(-1),
    /** The first look; undefined before it. */
    since: starts.at(0),
    services,
    /** Newest first; one that follows from another is in the other's `feltBy`. */
    incidents: roots.map((one): RootIncident => {
      // What this machine saw began before an incident was opened for it.
      const isOf = ({ cause, openedAt = 0 }: StatusUpdate) =>
        cause === one.probe && openedAt >= one.beganAt && openedAt <= (one.endedAt ?? openedAt)
      return { ...one, updates: updates.filter(isOf) }
    }),
    prerequisites,
    /** Those that are not over: current ones, then planned ones. */
    announcements: (recorded.announcements ?? [])
      .filter(({ until }) => until === undefined || until > now)
      .map((one): Announcement => ({ ...one, updates: updates.filter(({ subject }) => subject === one.id) })),
    skew: builds.size > 1,
  }
}

function line(series: Series, now: number) {
  const today = Math.floor(now / DAY_MS) * DAY_MS
  const byDay = new Map(series.days.map((day) => [day.start, day]))
  const fresh = now - series.last.at < FRESH_MS
  const state: CurrentState = fresh || series.last.state === 'skipped' ? series.last.state : 'unknown'
  return {
    service: series.service,
    /** Empty for the service as a whole. */
    probe: series.probe,
    /** A probe that is not configured stays so, whether anybody looks or not. */
    state,
    reason: series.last.reason,
    /** UTC milliseconds of the last look. */
    checkedAt: series.last.at,
    /** Oldest first, `DAYS_KEPT` of them; the last is today (UTC). */
    days: Array.from({ length: DAYS_KEPT }, (_, index): DayState => {
      const start = today - (DAYS_KEPT - 1 - index) * DAY_MS
      const seen = byDay.get(start)?.seen ?? []
      return (['failing', 'degraded', 'ok'] as const).find((state) => seen.includes(state)) ?? 'none'
    }),
    /** Days that were not ok throughout, oldest first. */
    trouble: series.days.flatMap(({ start, seen, ms }) =>
      start > today - DAYS_KEPT * DAY_MS && (seen.includes('failing') || seen.includes('degraded'))
        ? [{ start, degradedMs: ms.degraded, failingMs: ms.failing }]
        : [],
    ),
    /** Hours of the last day in which something answered, oldest first; latencies in milliseconds. */
    hours: series.hours.flatMap(({ start, latency }) => {
      const found = start > now - DAY_MS - HOUR_MS ? percentiles(latency) : undefined
      return found === undefined ? [] : [{ start, p50: found.p50, p95: found.p95 }]
    }),
    lastDay: window(series.hours, DAY_MS),
    allDays: window(series.days, DAYS_KEPT * DAY_MS),
  }
}

function window(periods: readonly Period[], lengthMs: number) {
  const total = (state: ProbeState) => periods.reduce((sum, { ms }) => sum + ms[state], 0)
  const ms = { ok: total('ok'), degraded: total('degraded'), failing: total('failing') }
  const data = ms.ok + ms.degraded + ms.failing
  return {
    ms,
    /** Time without data, or while the probe was not configured. */
    noDataMs: Math.max(0, lengthMs - data),
    /** The part of the time with data in which it answered, so degraded counts as up; undefined without data. */
    uptime: data === 0 ? undefined : (ms.ok + ms.degraded) / data,
    /** Milliseconds, of the checks that were answered. */
    latency: percentiles(merge(periods.map(({ latency }) => latency))),
  }
}

function percentiles(latency: Histogram) {
  const [p50, p95, p99] = [quantile(latency, 0.5), quantile(latency, 0.95), quantile(latency, 0.99)]
  return p50 === undefined || p95 === undefined || p99 === undefined
    ? undefined
    : { count: count(latency), p50, p95, p99 }
}
