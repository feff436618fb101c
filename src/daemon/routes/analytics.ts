import * as z from 'zod'
import { UNKNOWN_CLIENT } from '../../core/access/client.ts'
import { MOST_EVENTS } from '../../core/analytics/events.ts'
import type { Ingest } from '../../core/analytics/ingest.ts'
import { readJson } from '../http/body.ts'
import { jsonResponse } from '../http/respond.ts'
import type { RouteHandler } from '../http/route.ts'

/** A browser of ours sends 60 KB at the most, and 500 of its events are about 124 KB. */
const BODY_BYTES = 256 * 1024

/** The frame only: each event is judged by the sanitiser, which drops and counts what is wrong in it. */
export const AnalyticsBody = z.strictObject({
  batch: z
    .string()
    .regex(/^[\w.:-]{1,64}$/, 'letters, digits and . : _ - only, at most 64')
    .optional(),
  events: z.array(z.unknown()).max(MOST_EVENTS, `a batch holds at most ${MOST_EVENTS} events`),
})

export function analyticsRoute(ingest: Ingest): RouteHandler {
  return async (asked) => {
    const { request, requestId, client } = asked
    const { batch, events } = await readJson(asked, AnalyticsBody, BODY_BYTES)
    // https://www.w3.org/TR/gpc/#the-sec-gpc-header-field-for-http-requests
    const objects = request.headers.get('sec-gpc') === '1'
    // In a host that passes no socket on, all clients have one key, which has no share of its own.
    const known = client === UNKNOWN_CLIENT ? undefined : client
    const answer = await ingest.take({ id: batch, events }, { objects, client: known })
    return jsonResponse(answer, { status: 202, requestId })
  }
}
