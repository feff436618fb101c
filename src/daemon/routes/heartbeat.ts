import * as z from 'zod'
import { PlatformError } from '../../core/errors.ts'
import { heartbeatState } from '../../core/heartbeats.ts'
import type { ResolvedPlatform } from '../../core/platform.ts'
import { defineRoute, inPath, json, jsonBody } from '../http/route.ts'

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

export const route = ({ heartbeats: definitions }: ResolvedPlatform) =>
  defineRoute({
    tag: 'Operations',
    summary: 'Reports that a job ran, or that it failed',
    description:
      'For heartbeats of the definition. A heartbeat that is late or failed is a failing probe of web, and an alert.',
    security: 'dispatchSecret',
    parameters: [
      inPath(
        'name',
        'The heartbeat, as the definition names it.',
        definitions[0]?.name ?? 'backup',
        z.enum(definitions.map(({ name }) => name)),
      ),
    ],
    body: jsonBody(
      4 * 1024,
      'HeartbeatRequest',
      HeartbeatRequest,
      { failed: { exitCode: 1 } },
      { optional: true },
    ),
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
