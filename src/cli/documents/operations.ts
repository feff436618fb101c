import * as z from 'zod'
import { count, countsByName, courseCounts, list, milliseconds, text, time, versioned } from './parts.ts'

const messageKind = text.describe('opened, acknowledged, closed, or reminder-1 and so on.')
const channel = text.describe('webhook or mail.')
const message = z.strictObject({ kind: messageKind, channel })

export const alertList = versioned({
  channels: list(text),
  silence: z.strictObject({ from: milliseconds, until: milliseconds, reason: text, by: text }).optional(),
  incidents: list(
    z.strictObject({
      id: text,
      cause: text.describe('The name of the failing probe.'),
      service: text,
      reason: text.optional(),
      affected: list(text),
      openedAt: milliseconds,
      seenAt: milliseconds,
      closedAt: milliseconds.optional(),
      acknowledgedAt: milliseconds.optional(),
      acknowledgedBy: text.optional(),
      messages: list(
        z.strictObject({
          incident: text,
          kind: messageKind,
          channel,
          outcome: z.enum(['pending', 'sent', 'failed']),
          attempts: count,
          at: milliseconds,
          reason: text.optional(),
        }),
      ),
      due: list(message),
      held: list(message).describe('Held back by a silence.'),
    }),
  ),
})

export const analyticsSummary = versioned({
  from: z.iso.date(),
  to: z.iso.date(),
  total: count,
  kinds: list(z.strictObject({ kind: text, count })).describe('The most frequent first.'),
  days: list(z.strictObject({ day: z.iso.date(), count, kinds: countsByName })),
  stored: z.strictObject({ batches: count, events: count, bytes: count.optional() }),
})

export const billingSmoke = versioned({
  ok: z.boolean(),
  mode: z.enum(['test', 'live', 'unknown']),
  checks: list(
    z.strictObject({
      name: text,
      state: z.enum(['passed', 'failed', 'unreached', 'skipped']),
      finding: text,
    }),
  ),
})

const store = { kind: text, location: text }

export const status = versioned({
  daemon: z.strictObject({
    version: z.literal(1),
    pid: count,
    host: text,
    startedAt: time,
    stoppedAt: time.optional(),
    build: text.nullable(),
    platform: z
      .strictObject({
        name: text,
        definition: text.nullable().describe('Its file; null: the default platform.'),
        fingerprint: text.nullable(),
      })
      .optional(),
    store: z.strictObject({ kind: z.enum(['sqlite', 'postgres']), location: text }),
    envFiles: list(text),
    schedule: z.boolean(),
    urls: z.record(z.string(), text.optional()),
    running: z.boolean(),
  }),
  services: list(
    z.strictObject({
      service: text,
      url: text,
      state: z.enum(['ok', 'degraded', 'failing', 'unreached', 'stopped']),
      reason: text.optional(),
    }),
  ),
  store: z.union([
    z.strictObject({
      ...store,
      version: count,
      latest: count,
      backupAt: milliseconds.optional(),
      lastHour: text.optional(),
      counts: courseCounts,
    }),
    z.strictObject({ ...store, fault: text.describe('Why it could not be read.') }),
  ]),
  alerts: list(text).describe('The channels that are set, by variable.'),
})
