import * as z from 'zod'
import type { Clock } from '../../core/clock.ts'
import type { Settings } from '../../core/env/settings.ts'
import { PlatformError } from '../../core/errors.ts'
import type { Log } from '../../core/log.ts'
import { applyFeedback } from '../../core/mail/feedback/changes.ts'
import type { SuppressionList } from '../../core/mail/feedback/suppressions.ts'
import { readWebhook } from '../../core/mail/feedback/webhook.ts'
import { parseJson, readBytes } from '../http/body.ts'
import { jsonResponse } from '../http/respond.ts'
import type { RouteHandler } from '../http/route.ts'
import type { Metrics } from '../metrics/metrics.ts'

/** The largest batch of a provider: SendGrid's has up to 768 KB. */
const LARGEST_BODY_BYTES = 1024 * 1024

export const FeedbackBody = z
  .union([z.record(z.string(), z.unknown()), z.array(z.record(z.string(), z.unknown()))])
  .describe('As the provider sends it.')

/** Takes what a mail provider reports of messages: bounces, complaints, unsubscribes and deliveries. */
export function feedbackRoute({
  configured,
  list,
  fetchText,
  count,
  clock,
  log,
}: {
  readonly configured: Settings['feedback']
  readonly list: () => Promise<SuppressionList>
  readonly fetchText: (url: string) => Promise<string>
  readonly count: Metrics['feedback']
  readonly clock: Clock
  readonly log: Log
}): RouteHandler {
  return async (asked) => {
    const { request, requestId, params } = asked
    if (configured === undefined || params.provider !== configured.provider)
      throw new PlatformError('not_found', 'This platform takes no feedback of this mail provider.')
    const { provider, secret } = configured
    const body = await readBytes(asked, LARGEST_BODY_BYTES)
    const now = clock.now()
    const reading = await readWebhook({
      provider,
      request: { header: (name) => request.headers.get(name) ?? undefined, body },
      secret,
      now,
      fetchText,
    }).catch((error: unknown) => {
      throw new PlatformError(
        'unavailable',
        'The sender’s certificate could not be read; deliver it again.',
        {
          cause: error,
        },
      )
    })
    if (reading.kind === 'refused') {
      count(provider, 'refused')
      log.warn('feedback_refused', `feedback was refused: ${reading.reason}`, { provider })
      // A password can be guessed, so count wrong ones.
      throw request.headers.has('authorization')
        ? new PlatformError('unauthenticated', 'The webhook’s password is wrong.')
        : new PlatformError('signature_invalid', `The webhook is refused: ${reading.reason}.`)
    }
    asked.passed()
    if (reading.kind === 'confirmed') {
      count(provider, 'confirmed')
      log.info('feedback_confirmed', 'the topic of the mail provider’s feedback was confirmed', { provider })
      return jsonResponse({ events: 0, repeated: 0, ignored: 0 }, { requestId })
    }
    const { store, sending, erasureHashes } = await list()
    const applied = await applyFeedback({
      feedback: reading.feedback,
      source: provider,
      store,
      sending,
      erasureHashes,
      now,
    })
    if (reading.kind === 'not-understood') {
      count(provider, 'not_understood')
      log.warn('feedback_not_understood', `feedback was not understood: ${reading.reason}`, { provider })
      parseJson(Buffer.from(body).toString(), FeedbackBody)
      // A repeat would not be understood either, and providers switch off webhooks that keep failing.
      return jsonResponse({ events: 0, repeated: 0, ignored: 1 }, { requestId })
    }
    const { counts, recorded, pause } = applied
    count(provider, 'recorded', recorded)
    log.info('feedback', 'feedback of the mail provider was recorded', { provider, ...counts })
    if (pause?.at === now) log.error('mail_paused', `courses are paused: ${pause.reason}`)
    const { repeated, ignored } = counts
    return jsonResponse({ events: reading.feedback.events.length, repeated, ignored }, { requestId })
  }
}
