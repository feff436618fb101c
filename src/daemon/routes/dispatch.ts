import * as z from 'zod'
import { parseWith } from '../http/body.ts'
import { defineRoute, json, jsonBody, OPTIONAL, query } from '../http/route.ts'

const ONE_TO_TEN_THOUSAND = 'a whole number from 1 to 10,000'
const Limit = z.int(ONE_TO_TEN_THOUSAND).min(1, ONE_TO_TEN_THOUSAND).max(10_000, ONE_TO_TEN_THOUSAND)
const DispatchRequest = z.strictObject({ limit: Limit.optional() })
const Query = z.object({
  limit: z
    .string()
    .regex(/^\d{1,6}$/, ONE_TO_TEN_THOUSAND)
    .transform(Number)
    .pipe(Limit)
    .optional(),
  run: z
    .string()
    .regex(/^[A-Za-z0-9_-]{8,64}$/, '8 to 64 letters, digits, hyphens and underscores')
    .optional(),
})

const count = z.int().min(0)
export const DispatchAnswer = z.strictObject({
  processed: count,
  sent: count,
  failed: count,
  unknown: count.describe('The connection broke after the message was handed over.'),
  remaining: count.describe('Lessons due that this call left.'),
  waiting: count
    .describe('Lessons that are due and wait for their next attempt, because one failed.')
    .exactOptional(),
  nextTryAt: z.iso.datetime().describe('The first of those attempts.').exactOptional(),
  limit: z.int().min(1).max(10_000),
  reason: z.string().exactOptional(),
  results: z.array(
    z.strictObject({
      subscription: z.string(),
      day: z.int().min(1),
      sent: z.boolean(),
      reason: z.string().exactOptional(),
    }),
  ),
})

const NONE = { processed: 0, sent: 0, failed: 0, unknown: 0, remaining: 0, limit: 100 }

/** The longest call; `dispatch --url` waits for five minutes more. */
const CALL_MS = 10 * 60 * 1000

export const route = () =>
  defineRoute({
    tag: 'Operations',
    summary: 'Sends the lessons that are due',
    description:
      'At most one message for each subscription. The limit comes from the query, else the body, else EMAIL_DISPATCH_LIMIT, else 100. Without mail configured nothing is processed and `reason` says so.',
    security: 'dispatchSecret',
    parameters: [query('limit', 'How many lessons at most.', 100, Limit)],
    body: jsonBody(8 * 1024, 'DispatchRequest', DispatchRequest, { limited: { limit: 100 } }, OPTIONAL),
    answers: [
      json('What became of each.', 'DispatchAnswer', DispatchAnswer, {
        sent: {
          ...NONE,
          processed: 1,
          sent: 1,
          results: [{ subscription: 'Jk3nM0aPq9xT2vLs', day: 3, sent: true }],
        },
        withoutMail: { ...NONE, remaining: 4, reason: 'mail is not configured', results: [] },
      }),
    ],
    errors: ['store_not_persistent', 'store_unavailable'],
    handle:
      ({ course, settings: { dispatch } }) =>
      async (c) => {
        const body = await c.json()
        const asked = parseWith(Query, { limit: c.query('limit'), run: c.query('run') })
        const limit = asked.limit ?? body.limit ?? dispatch.limit
        // A caller that disconnects does not stop the run, which its limit and its time bound.
        const run = asked.run && { run: asked.run }
        const result = await (await course()).dispatch({ limit, forMs: CALL_MS, ...run })
        return { ...result, results: [...result.results] }
      },
  })
