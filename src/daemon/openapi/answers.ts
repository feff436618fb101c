import * as z from 'zod'
import type { IngestAnswer } from '../../core/analytics/ingest.ts'
import type { DispatchResult, SubscribeResult } from '../../core/course/course.ts'
import { ERRORS, type ErrorCode } from '../../core/errors.ts'
import type { HealthReport } from '../../core/health/probe.ts'
import { ServiceName } from '../service-schema.ts'

/** The forms of the answers; `satisfies` holds each to the type that the code answers with. */

const CODES = Object.keys(ERRORS) as [ErrorCode, ...ErrorCode[]]

export const ErrorAnswer = z.strictObject({
  code: z.enum(CODES).describe('Stable; programs decide by it.'),
  status: z.int().min(400).max(599).describe('The HTTP status, again.'),
  message: z.string().describe('A sentence for a person, which may change.'),
  requestId: z.string().describe('The same as X-Request-Id; finds the request in the log.'),
  issues: z
    .array(z.strictObject({ path: z.string(), message: z.string() }))
    .optional()
    .describe('One for each fault of a request; `path` is dotted, empty for the whole body.'),
})

export const SubscribeAnswer = z.strictObject({
  status: z.literal('pending'),
  sent: z.boolean(),
  reason: z.string().exactOptional(),
}) satisfies z.ZodType<SubscribeResult>

export const EmailAnswer = z.union([
  z.strictObject({
    sent: z.literal(true),
    id: z.string(),
    queued: z
      .literal(true)
      .optional()
      .describe('It is stored, and will be sent whatever becomes of this process.'),
  }),
  z.strictObject({ sent: z.literal(false), reason: z.string() }),
])

const count = z.int().min(0)
export const FeedbackAnswer = z.strictObject({
  events: count.describe('Events of the webhook that are about a recipient.'),
  repeated: count.describe('Those of them that took effect before.'),
  ignored: count.describe('What says nothing about a recipient, or names no valid address.'),
})

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
}) satisfies z.ZodType<DispatchResult>

export const ConfirmAnswer = z.strictObject({ status: z.enum(['confirmed', 'unconfirmed']) })
export const UnsubscribeAnswer = z.strictObject({ status: z.enum(['unsubscribed', 'unchanged']) })
export const CheckoutAnswer = z.strictObject({ id: z.string(), url: z.url() })
export const WebhookAnswer = z.strictObject({
  received: z.literal(true),
  duplicate: z.boolean().describe('It was handled before; nothing was done.'),
})

const probeState = z.enum(['ok', 'degraded', 'failing', 'skipped'])
export const HealthAnswer = z.strictObject({
  service: ServiceName,
  state: z.enum(['ok', 'degraded', 'failing']),
  build: z.string().nullable(),
  startedAt: z.iso.datetime(),
  time: z.iso.datetime(),
  latencyMs: z.number().min(0),
  probes: z.record(
    z.string(),
    z.strictObject({
      state: probeState,
      checked: z.boolean().describe('False: nothing live was tried.'),
      reason: z.string().exactOptional(),
      latencyMs: z.number().min(0).exactOptional(),
    }),
  ),
}) satisfies z.ZodType<HealthReport>

export const AnalyticsAnswer = z.strictObject({
  accepted: count,
  dropped: z
    .partialRecord(
      z.enum([
        'malformed',
        'unknown_kind',
        'time_out_of_range',
        'opted_out',
        'property_name',
        'property_personal',
        'property_type',
        'property_limit',
        'property_unknown',
      ]),
      count,
    )
    .describe('Events and properties that were left out, by reason.'),
  stored: z.boolean(),
  reason: z.string().exactOptional(),
}) satisfies z.ZodType<IngestAnswer>

const pass = z.enum(['pass', 'warn', 'fail'])
/** draft-inadarei-api-health-check-06. Fields that the draft does not define have our names. */
export const HealthJsonAnswer = z.strictObject({
  status: pass,
  releaseId: z.string().exactOptional(),
  serviceId: ServiceName,
  description: z.string(),
  startedAt: z.iso.datetime(),
  time: z.iso.datetime(),
  latencyMs: z.number().min(0),
  checks: z.record(
    z.string(),
    z.array(
      z.strictObject({
        componentId: z.string(),
        componentType: z.literal('component'),
        status: pass,
        state: probeState,
        checked: z.boolean(),
        time: z.iso.datetime(),
        observedValue: z.number().exactOptional(),
        observedUnit: z.literal('ms').exactOptional(),
        output: z.string().exactOptional().describe('With warn and fail only.'),
        reason: z.string().exactOptional().describe('With pass only.'),
      }),
    ),
  ),
})

export const OpenapiAnswer = z.looseObject({ openapi: z.string(), paths: z.record(z.string(), z.unknown()) })
