import * as z from 'zod'
import { DAY_MS } from '../../../core/durations.ts'
import { announcementKind, type StatusUpdate, UPDATE_STATES } from '../../../core/incidents/incident.ts'
import { DAYS_KEPT } from '../../../core/status/history.ts'
import type { DayState, Line, Window } from '../../../core/status/summary.ts'
import { incidentKey, verdict } from '../../../core/status/words.ts'
import { iso } from './format.ts'
import { incidentTitle } from './incidents.ts'
import type { StatusPageInput } from './page.ts'

const seconds = z.int().min(0)
const state = z
  .enum(['ok', 'degraded', 'failing', 'skipped', 'unknown'])
  .describe('`unknown`: nothing recorded lately.')
const latency = z.number().min(0)

const StatusWindow = z.strictObject({
  uptime: z
    .number()
    .min(0)
    .max(1)
    .nullable()
    .describe('By time, of the time with data; degraded counts as up.'),
  seconds: z.strictObject({ ok: seconds, degraded: seconds, failing: seconds, noData: seconds }),
  latencyMs: z
    .strictObject({ count: seconds, p50: latency, p95: latency, p99: latency })
    .nullable()
    .describe('Of the checks that were answered; each within 2 %.'),
})

const updates = z
  .array(z.strictObject({ at: z.iso.datetime(), state: z.enum(UPDATE_STATES).nullable(), text: z.string() }))
  .describe('What operators wrote about it since, oldest first.')

const line = {
  state,
  checkedAt: z.iso.datetime(),
  days: z.strictObject({
    first: z.iso.date(),
    states: z
      .string()
      .regex(/^[odf-]{90}$/)
      .describe('A letter a day (UTC), by its worst: o ok, d degraded, f failing, - no data.'),
    trouble: z
      .array(z.strictObject({ date: z.iso.date(), degradedSeconds: seconds, failingSeconds: seconds }))
      .describe('How long each day that was not ok throughout was in which state.'),
  }),
  last24Hours: StatusWindow,
  last90Days: StatusWindow,
  reason: z.string().nullable().exactOptional().describe('With the health token only.'),
  target: z.string().nullable().exactOptional().describe('With the health token only.'),
}

export const statusAnswer = (names: readonly string[]) => {
  const service = z.enum(names)
  return z.strictObject({
    version: z.literal(1),
    time: z.iso.datetime(),
    state: z.enum(['ok', 'degraded', 'failing', 'unknown']),
    verdict: z.string(),
    checkedAt: z.iso.datetime().nullable(),
    recorded: z.enum(['file', 'memory', 'none']).describe('`none`: no daemon records here.'),
    since: z.iso.datetime().nullable().describe('When the record began.'),
    skew: z.boolean().describe('The services run different builds.'),
    services: z.array(
      z.strictObject({
        service,
        seenFrom: service
          .exactOptional()
          .describe('It runs elsewhere: this is what that service’s probe of it saw.'),
        build: z.string().nullable(),
        buildSince: z.iso.datetime().exactOptional(),
        ...line,
        hours: z
          .array(z.strictObject({ start: z.iso.datetime(), p50: latency, p95: latency }))
          .describe('Response times of the last day, for each hour in which something answered.'),
        probes: z.record(z.string(), z.strictObject(line)),
      }),
    ),
    incidents: z.array(
      z.strictObject({
        page: z.string().describe('Its own page, relative to this address.'),
        title: z.string(),
        service,
        probe: z.string(),
        state: z.enum(['degraded', 'failing']).describe('The worst it came to.'),
        beganAt: z.iso.datetime(),
        endedAt: z.iso.datetime().nullable(),
        lengthSeconds: seconds,
        feltBy: z.array(z.string()).describe('Services and probes that failed because of it.'),
        updates,
        reason: z.string().nullable().exactOptional().describe('With the health token only.'),
      }),
    ),
    announcements: z
      .array(
        z.strictObject({
          id: z.string(),
          kind: z.enum(['planned', 'current', 'resolved']),
          text: z.string(),
          translations: z
            .record(z.string(), z.string())
            .exactOptional()
            .describe('The text in other languages, by language tag.'),
          from: z.iso.datetime(),
          until: z.iso.datetime().nullable(),
          updates,
        }),
      )
      .describe('What operators announced and is not over; `from` is in the future for what is planned.'),
    off: z.array(z.string()).describe('What visitors miss because it is not configured: a sentence each.'),
    notConfigured: z
      .array(z.strictObject({ name: z.string(), means: z.string() }))
      .exactOptional()
      .describe('With the health token only.'),
  })
}

type StatusJson = z.infer<ReturnType<typeof statusAnswer>>

export const EXAMPLE_STATUS: StatusJson = {
  version: 1,
  time: '2026-11-21T08:00:00.000Z',
  state: 'unknown',
  verdict: 'No history is recorded yet',
  checkedAt: null,
  recorded: 'none',
  since: null,
  skew: false,
  services: [],
  incidents: [],
  announcements: [],
  off: ['Mail is off: no messages are sent.'],
}

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
      hours: whole.hours.map(({ start, p50, p95 }) => ({
        start: iso(start),
        p50: round(p50),
        p95: round(p95),
      })),
      probes: Object.fromEntries(
        probes.map((probe) => [probe.probe, { ...lineJson(probe, now), ...reasonOf(probe) }]),
      ),
    })),
    incidents: incidents.map((incident) => ({
      page: `incidents/${incidentKey(incident)}.html`,
      title: incidentTitle(incident, labels),
      service: incident.service,
      probe: incident.probe,
      state: incident.state,
      beganAt: iso(incident.beganAt),
      endedAt: incident.endedAt === undefined ? null : iso(incident.endedAt),
      lengthSeconds: inSeconds(incident.lengthMs),
      feltBy: [...incident.feltBy],
      updates: timeline(incident),
      ...(details && { reason: incident.reason ?? null }),
    })),
    announcements: announcements.map((one) => ({
      id: one.id,
      kind: announcementKind(one, now),
      text: one.text,
      ...(one.translations && { translations: { ...one.translations } }),
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

function lineJson({ state, checkedAt, days, trouble, lastDay, allDays }: Line, now: number) {
  return {
    state,
    checkedAt: iso(checkedAt),
    days: {
      first: iso(now - (DAYS_KEPT - 1) * DAY_MS).slice(0, 10),
      states: days.map((day) => LETTER[day]).join(''),
      trouble: trouble.map(({ start, degradedMs, failingMs }) => ({
        date: iso(start).slice(0, 10),
        degradedSeconds: inSeconds(degradedMs),
        failingSeconds: inSeconds(failingMs),
      })),
    },
    last24Hours: windowJson(lastDay),
    last90Days: windowJson(allDays),
  }
}

function windowJson({ ms, noDataMs, uptime, latency }: Window) {
  return {
    uptime: uptime ?? null,
    seconds: {
      ok: inSeconds(ms.ok),
      degraded: inSeconds(ms.degraded),
      failing: inSeconds(ms.failing),
      noData: inSeconds(noDataMs),
    },
    latencyMs: latency
      ? { count: latency.count, p50: round(latency.p50), p95: round(latency.p95), p99: round(latency.p99) }
      : null,
  }
}

const inSeconds = (ms: number) => Math.round(ms / 1000)
/** Three digits are more than the histograms know. */
const round = (ms: number) => Number(ms.toPrecision(3))
