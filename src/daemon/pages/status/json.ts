import { DAY_MS } from '../../../core/durations.ts'
import type { StatusUpdate } from '../../../core/incidents/incident.ts'
import { DAYS_KEPT } from '../../../core/status/history.ts'
import type { DayState, Line, Window } from '../../../core/status/summary.ts'
import { verdict } from '../../../core/status/verdict.ts'
import type { StatusJson } from './answer.ts'
import type { StatusPageInput } from './page.ts'

const LETTER: Readonly<Record<DayState, string>> = { ok: 'o', degraded: 'd', failing: 'f', none: '-' }

/** The page's facts for programs. Times are ISO 8601, lengths in seconds, latencies in milliseconds. */
export function statusJson(input: StatusPageInput): StatusJson {
  const { summary, recorded, off, notConfigured, details, labels } = input
  const { now, state, checkedAt, since, services, incidents, announcements, skew } = summary
  const reasonOf = ({ probe, reason }: { probe: string; reason: string | undefined }) =>
    details === undefined ? {} : { reason: reason ?? null, target: details.targetOf(probe) ?? null }
  return {
    version: 1,
    time: iso(now),
    state,
    verdict: verdict(summary, labels),
    checkedAt: checkedAt === undefined ? null : iso(checkedAt),
    recorded,
    since: since === undefined ? null : iso(since),
    skew,
    services: services.map(({ service, seenFrom, whole, probes, build, buildSince }) => ({
      service,
      ...(seenFrom && { seenFrom }),
      build: build ?? null,
      ...(buildSince !== undefined && { buildSince: iso(buildSince) }),
      ...lineJson(whole, now),
      ...reasonOf(whole),
      probes: Object.fromEntries(
        probes.map((probe) => [probe.probe, { ...lineJson(probe, now), ...reasonOf(probe) }]),
      ),
    })),
    incidents: incidents.map((incident) => ({
      service: incident.service,
      probe: incident.probe,
      state: incident.state,
      beganAt: iso(incident.beganAt),
      endedAt: incident.endedAt === undefined ? null : iso(incident.endedAt),
      lengthSeconds: seconds(incident.lengthMs),
      feltBy: [...incident.feltBy],
      updates: timeline(incident),
      ...(details && { reason: incident.reason ?? null }),
    })),
    announcements: announcements.map((one) => ({
      id: one.id,
      text: one.text,
      from: iso(one.from),
      until: one.until === undefined ? null : iso(one.until),
      updates: timeline(one),
    })),
    off: [...off],
    ...(details && { notConfigured: [...notConfigured] }),
  }
}

const timeline = ({ updates = [] }: { readonly updates?: readonly StatusUpdate[] }) =>
  updates.map(({ at, state = null, text }) => ({ at: iso(at), state, text }))

function lineJson(
  { state, checkedAt, days, trouble, lastDay, allDays }: Line,
  now: number,
): Omit<StatusJson['services'][number]['probes'][string], 'reason' | 'target'> {
  return {
    state,
    checkedAt: iso(checkedAt),
    days: {
      first: iso(now - (DAYS_KEPT - 1) * DAY_MS).slice(0, 10),
      // One letter a day: o ok, d degraded, f failing, - no data.
      states: days.map((day) => LETTER[day]).join(''),
      trouble: trouble.map(({ start, degradedMs, failingMs }) => ({
        date: iso(start).slice(0, 10),
        degradedSeconds: seconds(degradedMs),
        failingSeconds: seconds(failingMs),
      })),
    },
    last24Hours: windowJson(lastDay),
    last90Days: windowJson(allDays),
  }
}

function windowJson(input: Window): StatusJson['services'][number]['last24Hours'] {
  const { ms, noDataMs, uptime, latency } = input
  return {
    uptime: uptime ?? null,
    seconds: {
      ok: seconds(ms.ok),
      degraded: seconds(ms.degraded),
      failing: seconds(ms.failing),
      noData: seconds(noDataMs),
    },
    latencyMs: latency
      ? { count: latency.count, p50: round(latency.p50), p95: round(latency.p95), p99: round(latency.p99) }
      : null,
  }
}

const iso = (ms: number) => new Date(ms).toISOString()
const seconds = (ms: number) => Math.round(ms / 1000)
/** Three digits are more than the histograms know. */
const round = (ms: number) => Number(ms.toPrecision(3))
