import * as z from 'zod'
import { parseDuration } from '../../core/env/values.ts'
import { PlatformError } from '../../core/errors.ts'
import { heartbeatState } from '../../core/heartbeats.ts'
import type { ResolvedPlatform } from '../../core/platform.ts'
import { defineRoute, inPath, json, jsonBody, OPTIONAL } from '../http/route.ts'

const HeartbeatRequest = z.strictObject({
  exitCode: z
    .int()
    .min(0)
    .max(2 ** 32 - 1)
    .describe('Of the job; anything but 0 is a failure. Left out, the job succeeded.')
    .optional(),
})

const HeartbeatAnswer = z.strictObject({
  heartbeat: z.string(),
  state: z.enum(['ok', 'late', 'failed']),
  nextBy: z.iso.datetime().describe('When the next success has to be there, grace included.'),
})

export const heartbeatRoute = ({ heartbeats: definitions }: ResolvedPlatform) =>
  defineRoute({
    tag: 'Operations',
    summary: 'Reports that a job ran, or that it failed',
    description:
      'For heartbeats of the definition. One that is late or failed raises an alert, and fails deep health of web.',
    security: 'dispatchSecret',
    parameters: [
      inPath(
        'name',
        'The heartbeat, as the definition names it.',
        definitions[0]?.name ?? 'backup',
        z.enum(definitions.map(({ name }) => name)),
      ),
    ],
    body: jsonBody(4 * 1024, 'HeartbeatRequest', HeartbeatRequest, { failed: { exitCode: 1 } }, OPTIONAL),
    answers: [
      json('Recorded.', 'HeartbeatAnswer', HeartbeatAnswer, {
        ok: { heartbeat: 'backup', state: 'ok', nextBy: '2026-11-22T05:00:00.000Z' },
      }),
    ],
    errors: ['not_found', 'store_unavailable'],
    handle:
      ({ store, clock }) =>
      async (c) => {
        const { exitCode = 0 } = await c.json()
        const definition = definitions.find(({ name }) => name === c.params.name)
        if (definition === undefined)
          throw new PlatformError('not_found', 'The definition names no such heartbeat.')
        const { name } = definition
        const now = clock.now()
        const failed = exitCode === 0 ? undefined : { exitCode }
        const record = await (await store()).heartbeats.beat({ name, now, failed })
        const { state, dueBy } = heartbeatState(definition, record, now)
        return { heartbeat: name, state, nextBy: new Date(dueBy).toISOString() }
      },
  })

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

export const silenceRoute = () =>
  defineRoute({
    tag: 'Operations',
    summary: 'Keeps alerts quiet for a while, for a deploy',
    description:
      'What still fails afterwards is sent then. Silences overlap, and the longest counts; the duration `0` ends all.',
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
        const { incidents } = await store()
        return { until: new Date(await incidents.silence({ from, until, reason, by })).toISOString() }
      },
  })
