import * as z from 'zod'
import { MOST_EVENTS } from '../../core/analytics/events.ts'
import type { Ingest } from '../../core/analytics/ingest.ts'
import { readJson } from '../http/body.ts'
import { jsonResponse } from '../http/respond.ts'
import type { Handler } from '../http/route.ts'

/** 500 events of a browser are about 124 KB; the rest is room for long properties. */
const BODY_BYTES = 1024 * 1024

/** The frame only: each event is judged by the sanitiser, which drops and counts what is wrong in it. */
export const AnalyticsBody = z.strictObject({
  batch: z
    .string()
    .regex(/^[\w.:-]{1,64}$/, 'letters, digits and . : _ - only, at most 64')
    .optional(),
  events: z.array(z.unknown()).max(MOST_EVENTS, `a batch holds at most ${MOST_EVENTS} events`),
})

export function analyticsRoute(ingest: Ingest): Handler {
  return async ({ request, requestId }) => {
    const { batch, events } = await readJson(request, AnalyticsBody, BODY_BYTES)
    // https://www.w3.org/TR/gpc/#the-sec-gpc-header-field-for-http-requests
    const objects = request.headers.get('sec-gpc') === '1'
    return jsonResponse(await ingest.take({ id: batch, events }, { objects }), { status: 202, requestId })
  }
}
