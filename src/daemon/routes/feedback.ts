import * as z from 'zod'
import { localLimiter, policiesOf, secondsOf } from '../../core/access/limit/limiter.ts'
import { engineVariables } from '../../core/env/groups.ts'
import { PlatformError } from '../../core/errors.ts'
import { FEEDBACK_KINDS } from '../../core/mail/feedback/event.ts'
import { SECRET_WORKS_MS } from '../../core/mail/feedback/provider.ts'
import { readWebhook, WRONG_PASSWORD } from '../../core/mail/feedback/providers.ts'
import { createFetchText } from '../../core/mail/feedback/ses.ts'
import { applyFeedback } from '../../core/mail/feedback/store.ts'
import { parseJson } from '../http/body.ts'
import { defineRoute, inPath, json, jsonBody } from '../http/route.ts'

const FeedbackRequest = z
  .union([z.record(z.string(), z.unknown()), z.array(z.record(z.string(), z.unknown()))])
  .describe(
    `As the provider sends it. \`standard\` takes \`type\` (${FEEDBACK_KINDS.join(', ')}), \`timestamp\`, and \`data\` with \`address\` and, where known, \`messageId\` and \`status\` (RFC 3463).`,
  )

const count = z.int().min(0)
const FeedbackAnswer = z.strictObject({
  events: count.describe('Events of the webhook that are about a recipient.'),
  repeated: count.describe('Those of them that took effect before.'),
  ignored: count.describe('What says nothing about a recipient, or names no valid address.'),
})

export const route = () =>
  defineRoute({
    tag: 'Mail',
    summary: 'Takes what the mail provider reports of messages',
    description:
      'Bounces, complaints, unsubscribes and deliveries, as the provider documents them, signed over the body at most five minutes ago (`ses`: a day). Each event takes effect once. A hard bounce or a complaint suppresses its address and ends its subscriptions.',
    security: 'feedbackSignature',
    parameters: [
      inPath(
        'provider',
        'The provider that MAILER_FEEDBACK_PROVIDER names; 404 for any other.',
        'standard',
        z.enum(engineVariables.MAILER_FEEDBACK_PROVIDER.of),
      ),
    ],
    // The largest batch of a provider: SendGrid's has up to 768 KB.
    body: jsonBody(1024 * 1024, 'FeedbackRequest', FeedbackRequest, {
      standard: {
        type: 'hard-bounce',
        timestamp: '2026-11-22T02:00:00Z',
        data: { address: 'ada@example.com', messageId: 'c1@example.com', status: '5.1.1' },
      },
    }),
    answers: [
      json('Recorded, now or before.', 'FeedbackAnswer', FeedbackAnswer, {
        recorded: { events: 1, repeated: 0, ignored: 0 },
      }),
    ],
    errors: ['not_found', 'unavailable', 'store_unavailable'],
    handle: ({ settings: { feedback: configured, limits }, mailService, metrics, clock, log }) => {
      const fetchText = createFetchText()
      const { authFailure } = policiesOf(limits.perMinute)
      const refusals = localLimiter(clock)
      const webhooks = metrics.series.platformctl_feedback_webhooks_total
      /** When the secret was last right. A secret that works is not wrong, but after a start it may be another one. */
      let rightAt = Number.NEGATIVE_INFINITY
      return async (c) => {
        if (configured === undefined || c.params.provider !== configured.provider)
          throw new PlatformError('not_found', 'This platform takes no feedback of this mail provider.')
        const { provider, secret } = configured
        const body = await c.bytes()
        const now = clock.now()
        const request = { header: (name: string) => c.request.headers.get(name) ?? undefined, body }
        const asked = readWebhook(provider, request, { secret, now, fetchText })
        const reading = await asked.catch((cause: unknown) => {
          const message =
            'The sender’s certificate, or its link to confirm, could not be read; deliver it again.'
          throw new PlatformError('unavailable', message, { cause })
        })
        const { signature = 'right' } = reading.kind === 'refused' ? reading : {}
        if (signature === 'right') rightAt = now
        if (reading.kind === 'refused') {
          const works = now - rightAt <= SECRET_WORKS_MS
          const isForged = signature === 'none' || (signature === 'wrong' && works)
          webhooks.inc({ result: isForged ? 'forged' : 'refused' })
          // A password can be guessed, so the gate limits wrong ones. Only here, a right signature is never too many.
          const isPassword = reading === WRONG_PASSWORD
          const retryAfterSeconds = secondsOf(refusals.take(authFailure, c.client).retry)
          if (retryAfterSeconds > 0 && signature !== 'right' && !isPassword)
            throw new PlatformError('rate_limited', 'Too many webhooks were refused.', { retryAfterSeconds })
          const level = signature === 'none' && works ? 'debug' : 'warn'
          log[level]('feedback_refused', `feedback was refused: ${reading.reason}`, { provider })
          throw new PlatformError(
            isPassword ? 'unauthenticated' : 'signature_invalid',
            `The webhook is refused: ${reading.reason}.`,
          )
        }
        c.passed()
        if (reading.kind === 'confirmed') {
          webhooks.inc({ result: 'confirmed' })
          log.info('feedback_confirmed', 'the topic of the provider’s feedback was confirmed', { provider })
          return { events: 0, repeated: 0, ignored: 0 }
        }
        const list = await mailService.suppressionList()
        await mailService.tally.flush().catch(() => {})
        const taken = await applyFeedback({ ...list, feedback: reading.feedback, source: provider, now })
        if (reading.kind === 'not-understood') {
          webhooks.inc({ result: 'not_understood' })
          log.warn('feedback_not_understood', `feedback was not understood: ${reading.reason}`, { provider })
          parseJson(Buffer.from(body).toString(), FeedbackRequest)
          // A repeat would not be understood either, and providers switch off webhooks that keep failing.
          return { events: 0, repeated: 0, ignored: 1 }
        }
        const { counts, recorded, pause } = taken
        webhooks.inc({ result: 'recorded' })
        for (const kind of recorded) metrics.series.platformctl_feedback_total.inc({ provider, kind })
        log.info('feedback', 'feedback of the mail provider was recorded', { provider, ...counts })
        if (pause?.at === now) log.error('mail_paused', `courses are paused: ${pause.reason}`)
        const { repeated, ignored } = counts
        return { events: reading.feedback.events.length, repeated, ignored }
      }
    },
  })
