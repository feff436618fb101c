import * as z from 'zod'
import { hasBearer } from '../../core/access/identity.ts'
import type { Clock } from '../../core/clock.ts'
import { parseDuration } from '../../core/env/values.ts'
import { PlatformError } from '../../core/errors.ts'
import { type HeartbeatDefinition, type HeartbeatStore, heartbeatState } from '../../core/heartbeats.ts'
import type { IncidentStore } from '../../core/incidents/incident.ts'
import type { SecretPair } from '../../core/secret.ts'
import { parseJson, readText } from '../http/body.ts'
import { jsonResponse } from '../http/respond.ts'
import type { RouteHandler, RouteRequest } from '../http/route.ts'

const SMALL_BODY_BYTES = 4 * 1024

interface Guard {
  readonly secret: SecretPair | undefined
  /** Told of each call that did not bring the secret. */
  readonly onRefused: (given: 'wrong' | 'none') => void
  readonly clock: Pick<Clock, 'now'>
}

export const BeatBody = z.strictObject({
  exitCode: z
    .int()
    .min(0)
    .max(2 ** 32 - 1)
    .describe('Of the job; anything but 0 is a failure. Left out, the job succeeded.')
    .optional(),
})

/** A job reports that it ran, or that it failed. */
export function heartbeatRoute({
  definitions,
  heartbeats,
  ...guard
}: Guard & {
  readonly definitions: readonly HeartbeatDefinition[]
  readonly heartbeats: () => Promise<HeartbeatStore>
}): RouteHandler {
  return async (asked) => {
    const body = await authenticated(asked, guard, BeatBody)
    const definition = definitions.find(({ name }) => name === asked.params.name)
    if (definition === undefined)
      throw new PlatformError('not_found', 'The definition names no such heartbeat.')
    const { exitCode = 0 } = body
    const now = guard.clock.now()
    const record = await (await heartbeats()).beat({
      name: definition.name,
      now,
      failed: exitCode === 0 ? undefined : { exitCode },
    })
    const { state, dueBy } = heartbeatState(definition, record, now)
    const answer: z.infer<typeof BeatAnswer> = {
      heartbeat: definition.name,
      state,
      nextBy: new Date(dueBy).toISOString(),
    }
    return jsonResponse(answer, asked)
  }
}

export const BeatAnswer = z.strictObject({
  heartbeat: z.string(),
  state: z.enum(['ok', 'late', 'failed']),
  nextBy: z.iso.datetime().describe('When the next success has to be there, grace included.'),
})

export const SilenceBody = z.strictObject({
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

export const SilenceAnswer = z.strictObject({
  until: z.iso.datetime().describe('When alerts go out again.'),
})

/** Keeps alerts quiet for a while, for a deploy that a machine runs. */
export function silenceRoute({
  incidents,
  ...guard
}: Guard & { readonly incidents: () => Promise<IncidentStore> }): RouteHandler {
  return async (asked) => {
    const { duration, reason, by = 'ci' } = await authenticated(asked, guard, SilenceBody)
    const from = guard.clock.now()
    const until = from + (duration === '0' ? 0 : (parseDuration(duration) ?? 0))
    await (await incidents()).silence({ from, until, reason, by })
    const answer: z.infer<typeof SilenceAnswer> = { until: new Date(until).toISOString() }
    return jsonResponse(answer, asked)
  }
}

/** The body of a caller that brought the dispatch secret; an empty body is an empty object. */
async function authenticated<Schema extends z.ZodType>(
  asked: RouteRequest,
  { secret, onRefused }: Guard,
  schema: Schema,
): Promise<z.infer<Schema>> {
  if (!hasBearer(asked.request, secret)) {
    onRefused(asked.request.headers.has('authorization') ? 'wrong' : 'none')
    throw new PlatformError('unauthenticated', 'Send EMAIL_DISPATCH_SECRET as Authorization: Bearer.')
  }
  asked.passed()
  const text = await readText(asked, SMALL_BODY_BYTES)
  return parseJson(text.trim() === '' ? '{}' : text, schema)
}
