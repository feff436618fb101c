import * as z from 'zod'
import { UNKNOWN_CLIENT } from '../../core/access/client.ts'
import { MOST_EVENTS } from '../../core/analytics/events.ts'
import { DROP_REASONS } from '../../core/analytics/sanitise.ts'
import type { ResolvedPlatform } from '../../core/platform.ts'
import { defineRoute, json, jsonBody } from '../http/route.ts'

/** The frame only: each event is judged by the sanitiser, which drops and counts what is wrong in it. */
const AnalyticsRequest = z.strictObject({
  batch: z
    .string()
    .regex(/^[\w.:-]{1,64}$/, 'letters, digits and . : _ - only, at most 64')
    .optional(),
  events: z.array(z.unknown()).max(MOST_EVENTS, `a batch holds at most ${MOST_EVENTS} events`),
})

const count = z.int().min(0)
const AnalyticsAnswer = z.strictObject({
  accepted: count,
  dropped: z
    .partialRecord(z.enum(DROP_REASONS), count)
    .describe('Events and properties that were left out, by reason.'),
  stored: z.boolean(),
  reason: z.string().exactOptional(),
})

const SAMPLES = { string: 'one', number: 1, boolean: true } as const

export const route = ({ events }: ResolvedPlatform) => {
  const { name: kind = 'page.viewed', properties = {} } =
    events.find((one) => one.properties) ?? events[0] ?? {}
  const sample = Object.entries(properties).map(([name, type]) => [name, SAMPLES[type]])
  const example = { kind, at: 1_795_248_000_000, properties: Object.fromEntries(sample) }
  return defineRoute({
    tag: 'Analytics',
    summary: 'Takes a batch of events',
    description:
      'At most 500 events. What is personal or malformed is dropped, by the sanitiser that the browser runs too, and counted in `dropped`. A batch id seen before is acknowledged and not stored twice. With `Sec-GPC: 1` nothing is kept. Scripts of the origins in CORS_ALLOWED_ORIGINS may send batches.',
    // A browser of ours sends 60 KB at the most, and 500 of its events are about 124 KB.
    body: jsonBody(256 * 1024, 'AnalyticsRequest', AnalyticsRequest, {
      one: { batch: 'b_7f3a', events: [example] },
    }),
    answers: [
      json(
        'Taken. `stored` says whether the events are kept; `reason` why not, or that the batch was stored before.',
        'AnalyticsAnswer',
        AnalyticsAnswer,
        {
          stored: { accepted: 1, dropped: {}, stored: true },
          notStored: {
            accepted: 1,
            dropped: { property_personal: 1 },
            stored: false,
            reason: 'no table is named, so events are counted by nobody',
          },
        },
        202,
      ),
    ],
    errors: ['store_unavailable'],
    handle:
      ({ ingest }) =>
      async (c) => {
        const { batch, events } = await c.json()
        // https://www.w3.org/TR/gpc/#the-sec-gpc-header-field-for-http-requests
        const objects = c.request.headers.get('sec-gpc') === '1'
        // In a host that passes no socket on, all clients have one key, which has no share of its own.
        const client = c.client === UNKNOWN_CLIENT ? undefined : c.client
        return ingest.take({ id: batch, events }, { objects, client })
      },
  })
}
