import type { FeedbackProviderName } from '../../feedback-providers.ts'
import type { SecretPair } from '../../secret.ts'
import { type Feedback, FeedbackFormatError } from './event.ts'
import { mailgun } from './mailgun.ts'
import { postmark } from './postmark.ts'
import type { FeedbackProvider, FeedbackRequest } from './provider.ts'
import { sendgrid } from './sendgrid.ts'
import { ses } from './ses.ts'
import { resend, standard } from './standard.ts'

export const FEEDBACK_PROVIDERS: Readonly<Record<FeedbackProviderName, FeedbackProvider>> = {
  ses,
  postmark,
  sendgrid,
  mailgun,
  resend,
  standard,
}

export type WebhookReading =
  | { readonly kind: 'feedback'; readonly feedback: Feedback }
  /** SNS asked to confirm that the topic is ours, and it was confirmed. */
  | { readonly kind: 'confirmed' }
  /** Not signed by the provider, or not for this account. */
  | { readonly kind: 'refused'; readonly reason: string }
  /** Signed, but of another form than the provider's documentation says. */
  | { readonly kind: 'not-understood'; readonly reason: string; readonly feedback: Feedback }

/** Verifies a provider's webhook and reads its events; a refused one is not read. */
export async function readWebhook({
  provider: name,
  request,
  secret,
  now,
  fetchText,
}: {
  readonly provider: FeedbackProviderName
  readonly request: FeedbackRequest
  readonly secret: SecretPair
  readonly now: number
  readonly fetchText: (url: string) => Promise<string>
}): Promise<WebhookReading> {
  const provider = FEEDBACK_PROVIDERS[name]
  const verified = await provider.verify(request, { secret, now, fetchText })
  if (verified.kind === 'refused') return verified
  if (verified.kind === 'confirm') {
    await fetchText(verified.url)
    return { kind: 'confirmed' }
  }
  const { value, deliveryId, token } = verified
  try {
    return { kind: 'feedback', feedback: { ...provider.read(value, { now, deliveryId }), token } }
  } catch (error) {
    if (error instanceof FeedbackFormatError)
      return { kind: 'not-understood', reason: error.message, feedback: { events: [], ignored: 1, token } }
    throw error
  }
}
