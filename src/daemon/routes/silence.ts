import * as z from 'zod'
import { parseDuration } from '../../core/env/values.ts'
import { defineRoute, json, jsonBody } from '../http/route.ts'

const SilenceRequest = z.strictObject({
  duration: z
    .string()
    .regex(
      /^(?:0|[1-9]\d{0,3}s|[1-9]\d{0,2}m|(?:[1-9]|1\d|2[0-4])h)$/,
      'seconds, minutes or hours, as 15m, at most 24h; 0 ends a silence',
    ),
  reason: z.string().regex(/\S/, 'not empty').max(200),
  by: z
    .string()
    .regex(/\S/, 'not empty')
    .max(100)
    .describe('Who asked, for alert list; `ci` when left out.')
    .optional(),
})

const SilenceAnswer = z.strictObject({ until: z.iso.datetime().describe('When alerts go out again.') })

export const route = () =>
  defineRoute({
    tag: 'Operations',
    summary: 'Keeps alerts quiet for a while, for a deploy',
    description:
      'What still fails afterwards is sent then. A later call replaces an earlier one; the duration `0` ends a silence.',
    security: 'dispatchSecret',
    body: jsonBody(
      4 * 1024,
      'SilenceRequest',
      SilenceRequest,
      { deploy: { duration: '15m', reason: 'deploy of 4.3' } },
      { lenient: true },
    ),
    answers: [
      json('Recorded.', 'SilenceAnswer', SilenceAnswer, { silent: { until: '2026-11-21T09:15:00.000Z' } }),
    ],
    errors: ['store_unavailable'],
    handle:
      ({ store, clock }) =>
      async (c) => {
        const { duration, reason, by = 'ci' } = await c.json()
        const from = clock.now()
        const until = from + (duration === '0' ? 0 : (parseDuration(duration) ?? 0))
        await (await store()).incidents.silence({ from, until, reason, by })
        return { until: new Date(until).toISOString() }
      },
  })
