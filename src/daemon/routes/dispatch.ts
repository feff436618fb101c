import * as z from 'zod'
import { FIELD_LIST } from '../../core/course/dispatch-request.ts'
import { parseWith } from '../http/body.ts'
import type { RouteContext } from '../http/context.ts'
import { defineRoute, json, jsonBody, OPTIONAL, query } from '../http/route.ts'

const FORMS = FIELD_LIST.map(({ name, option, most, meaning, example }) => {
  const words = `a whole number from 1 to ${most?.toLocaleString('en')}`
  const other = option.includes('<') ? z.string() : z.literal(true)
  const form = most === undefined ? other : z.int(words).min(1, words).max(most, words)
  return { name, meaning, example, form }
})
const Body: z.ZodObject = z.strictObject(
  Object.fromEntries(FORMS.map(({ name, form }) => [name, form.optional()])),
)
const Query = Body.strip().extend({
  run: z
    .string()
    .regex(/^[A-Za-z0-9_-]{8,64}$/, '8 to 64 letters, digits, hyphens and underscores')
    .optional(),
})

/** The fields that are in the query. A parameter is text: what reads as a number or as `true` is one, where the field takes it. */
const fieldsIn = (c: RouteContext) =>
  FORMS.flatMap(({ name, form }) => {
    const text = c.query(name)
    if (text === undefined) return []
    const value = text === 'true' || Number(text)
    return [[name, /^(?:\d{1,6}|true)$/.test(text) && form.safeParse(value).success ? value : text]]
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

/** A call claims for this long, and may wait for answers as long again; `dispatch --url` waits for five minutes more. */
const CALL_MS = 10 * 60 * 1000

export const route = () =>
  defineRoute({
    tag: 'Operations',
    summary: 'Sends the lessons that are due',
    description:
      'At most one message for each subscription. The limit comes from the query, else the body, else EMAIL_DISPATCH_LIMIT, else 100. Without mail configured nothing is processed and `reason` says so.',
    security: 'dispatchSecret',
    parameters: FORMS.map(({ name, meaning, example, form }) => query(name, meaning, example, form)),
    body: jsonBody(8 * 1024, 'DispatchRequest', Body, { limited: { limit: 100 } }, OPTIONAL),
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
      ({ course }) =>
      async (c) => {
        const body = await c.json()
        const given = { ...Object.fromEntries(fieldsIn(c)), run: c.query('run') }
        const request = { ...body, ...parseWith(Query, given) }
        // A caller that disconnects does not stop the run, which its limit and its time bound.
        const result = await (await course()).dispatch({ ...request, forMs: CALL_MS })
        return { ...result, results: [...result.results] }
      },
  })
