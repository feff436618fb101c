import * as z from 'zod'
import type { HeartbeatDefinition } from '../../../core/heartbeats.ts'
import { BeatAnswer, BeatBody, SilenceAnswer, SilenceBody } from '../../routes/alerts.ts'
import type { RouteOperations } from '../operation.ts'
import { json } from '../operation.ts'

export const alertOperations = (heartbeats: readonly HeartbeatDefinition[]) =>
  ({
    heartbeat: {
      POST: {
        tag: 'Operations',
        summary: 'Reports that a job ran, or that it failed',
        description:
          'For heartbeats of the definition. A heartbeat that is late or failed is a failing probe of web, and an alert.',
        security: 'dispatchSecret',
        parameters: [
          {
            in: 'path',
            name: 'name',
            schema: heartbeats.length === 0 ? z.string() : z.enum(heartbeats.map(({ name }) => name)),
            required: true,
            description: 'The heartbeat, as the definition names it.',
            example: heartbeats[0]?.name ?? 'backup',
          },
        ],
        body: {
          type: 'application/json',
          name: 'HeartbeatRequest',
          schema: BeatBody,
          required: false,
          examples: { failed: { exitCode: 1 } },
        },
        answers: [
          json('Recorded.', {
            name: 'HeartbeatAnswer',
            schema: BeatAnswer,
            examples: { ok: { heartbeat: 'backup', state: 'ok', nextBy: '2026-11-22T05:00:00.000Z' } },
          }),
        ],
        errors: ['bad_request', 'unauthenticated', 'not_found', 'payload_too_large', 'store_unavailable'],
      },
    },
    silence: {
      POST: {
        tag: 'Operations',
        summary: 'Keeps alerts quiet for a while, for a deploy',
        description:
          'What still fails afterwards is sent then. A later call replaces an earlier one; the duration `0` ends a silence.',
        security: 'dispatchSecret',
        body: {
          type: 'application/json',
          name: 'SilenceRequest',
          schema: SilenceBody,
          required: true,
          examples: { deploy: { duration: '15m', reason: 'deploy of 4.3' } },
        },
        answers: [
          json('Recorded.', {
            name: 'SilenceAnswer',
            schema: SilenceAnswer,
            examples: { silent: { until: '2026-11-21T09:15:00.000Z' } },
          }),
        ],
        errors: ['bad_request', 'unauthenticated', 'payload_too_large', 'store_unavailable'],
      },
    },
  }) satisfies Partial<RouteOperations>
