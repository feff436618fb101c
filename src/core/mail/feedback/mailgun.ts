import { createHmac, timingSafeEqual } from 'node:crypto'
import type { FeedbackKind } from './event.ts'
import {
  type FeedbackProvider,
  fields,
  messageId,
  optionalFields,
  optionalText,
  parseBody,
  recentSeconds,
  refused,
  text,
  timeOf,
} from './provider.ts'
import { reasonFor } from './standard.ts'
import { bounceKind, enhancedCode } from './status.ts'

/**
 * Mailgun signs a timestamp and a token, not the body, so the token names the event: it takes effect once, also where
 * the event is ignored, and a captured signature is worth nothing with another body.
 */
export const mailgun: FeedbackProvider = {
  verify({ body }, { secret, now }) {
    const value = parseBody(body)
    const signature = optionalFields(optionalFields(value).signature)
    const [time, token, given] = [signature.timestamp, signature.token, signature.signature].map((one) =>
      typeof one === 'number' ? String(one) : optionalText(one),
    )
    if (!time || !token || !given) return refused('the signature is missing')
    if (recentSeconds(time, now) === undefined) return refused('the signature is too old')
    if (!/^[0-9a-f]{64}$/i.test(given) || token.length > 100) return refused('the signature does not fit')
    const bytes = Buffer.from(given, 'hex')
    const fits = secret.accepted.some((one) =>
      timingSafeEqual(
        bytes,
        createHmac('sha256', one.reveal())
          .update(time + token)
          .digest(),
      ),
    )
    return fits ? { kind: 'genuine', value, deliveryId: token, token } : refused('the signature does not fit')
  },
  read(value, { now, deliveryId }) {
    const event = fields(fields(value, 'the body')['event-data'], 'event-data')
    const status = optionalFields(event['delivery-status'])
    const code = enhancedCode(optionalText(status['enhanced-code']) ?? optionalText(status.message) ?? '')
    const kind = kindOf(event, optionalText(status['bounce-type']), code)
    if (kind === undefined) return { events: [], ignored: 1 }
    return {
      events: [
        {
          id: text(deliveryId, 'signature.token'),
          kind,
          address: text(event.recipient, 'event-data.recipient'),
          messageId: messageId(optionalFields(optionalFields(event.message).headers)['message-id']),
          at: timeOf(event.timestamp, now),
          reason: reasonFor(kind, code),
        },
      ],
      ignored: 0,
    }
  },
}

function kindOf(
  event: Readonly<Record<string, unknown>>,
  bounceType: string | undefined,
  code: string | undefined,
): FeedbackKind | undefined {
  switch (event.event) {
    case 'failed':
      // Temporary failures are tried again by Mailgun, and end in one that is permanent or in a delivery.
      if (event.severity !== 'permanent') return undefined
      if (event.reason === 'suppress-complaint') return 'complaint'
      if (event.reason === 'suppress-unsubscribe') return 'unsubscribed'
      return event.reason === 'suppress-bounce' || bounceType === 'hard' ? 'hard-bounce' : bounceKind(code)
    case 'complained':
      return 'complaint'
    case 'unsubscribed':
      return 'unsubscribed'
    case 'delivered':
      return 'delivered'
    default:
      return undefined
  }
}
