import * as z from 'zod'
import { UPDATE_STATES } from '../../../core/incidents/incident.ts'
import { ServiceName } from '../../service-schema.ts'

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

export const StatusAnswer = z.strictObject({
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
      service: ServiceName,
      seenFrom: ServiceName.exactOptional().describe(
        'It runs elsewhere: this is what that service’s probe of it saw.',
      ),
      build: z.string().nullable(),
      buildSince: z.iso.datetime().exactOptional(),
      ...line,
      probes: z.record(z.string(), z.strictObject(line)),
    }),
  ),
  incidents: z.array(
    z.strictObject({
      service: ServiceName,
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
        text: z.string(),
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

export type StatusJson = z.infer<typeof StatusAnswer>

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
