import { createHmac, timingSafeEqual } from 'node:crypto'
import { decodeWebhookKey } from '../../webhook-key.ts'
import { FEEDBACK_KINDS, type Feedback, type FeedbackEvent, FeedbackFormatError } from './event.ts'
import {
  type FeedbackProvider,
  type FeedbackRequest,
  fields,
  messageId,
  optionalFields,
  optionalText,
  parseBody,
  recentSeconds,
  refused,
  text,
  timeOf,
  type Verification,
  type VerifyOptions,
} from './provider.ts'
import { bounceKind, bounceReason, enhancedCode } from './status.ts'

const MOST_SIGNATURES = 8

/** Verifies a Standard Webhooks signature: `v1,BASE64` over `id.timestamp.body`, with the headers' names given. */
function verifySigned(
  prefix: 'webhook' | 'svix',
  { header, body }: FeedbackRequest,
  { secret, now }: VerifyOptions,
): Verification {
  const [id, time, signatures] = [
    header(`${prefix}-id`),
    header(`${prefix}-timestamp`),
    header(`${prefix}-signature`),
  ]
  if (!id || !time || !signatures) return refused('the signature headers are missing')
  if (id.length > 255 || recentSeconds(time, now) === undefined) return refused('the signature is too old')
  const expected = secret.accepted.flatMap((one) => {
    const key = decodeWebhookKey(one.reveal())
    return key === undefined ? [] : [createHmac('sha256', key).update(`${id}.${time}.`).update(body).digest()]
  })
  const given = signatures
    .split(' ', MOST_SIGNATURES)
    .flatMap((one) => (one.startsWith('v1,') ? [Buffer.from(one.slice(3), 'base64')] : []))
  const fits = given.some((signature) =>
    expected.some((one) => signature.length === one.length && timingSafeEqual(signature, one)),
  )
  if (!fits) return refused('the signature does not fit')
  const value = parseBody(body)
  return value === undefined ? refused('the body is not JSON') : { kind: 'genuine', value, deliveryId: id }
}

/** A provider or relay of your own, by Standard Webhooks: `{ type, timestamp, data: { address, messageId?, status? } }`. */
export const standard: FeedbackProvider = {
  verify: (request, options) => verifySigned('webhook', request, options),
  read(value, { now, deliveryId }): Feedback {
    const event = fields(value, 'the body')
    const type = text(event.type, 'type')
    const data = fields(event.data, 'data')
    const kind = FEEDBACK_KINDS.find((one) => one === type)
    if (kind === undefined) return { events: [], ignored: 1 }
    const status = enhancedCode(optionalText(data.status) ?? '')
    return {
      events: [
        {
          id: text(deliveryId, 'webhook-id'),
          kind,
          address: text(data.address, 'data.address'),
          messageId: messageId(data.messageId),
          at: timeOf(event.timestamp, now),
          reason: reasonFor(kind, status),
        },
      ],
      ignored: 0,
    }
  },
}

/** Resend signs as Standard Webhooks does, with headers of Svix. */
export const resend: FeedbackProvider = {
  verify: (request, options) => verifySigned('svix', request, options),
  read(value, { now, deliveryId }): Feedback {
    const event = fields(value, 'the body')
    const type = text(event.type, 'type')
    const data = fields(event.data, 'data')
    const bounce = optionalFields(data.bounce)
    const status = enhancedCode(optionalText(bounce.message) ?? '')
    const kind = resendKind(type, optionalText(bounce.type), status)
    if (kind === undefined) return { events: [], ignored: 1 }
    const recipients = Array.isArray(data.to) ? data.to : [data.to]
    if (recipients.length === 0 || recipients.length > 50)
      throw new FeedbackFormatError('data.to does not hold 1 to 50 recipients')
    const id = text(deliveryId, 'svix-id')
    return {
      events: recipients.map((address, index) => ({
        id: `${id}/${index}`,
        kind,
        address: text(address, `data.to[${index}]`),
        messageId: messageId(data.message_id),
        at: timeOf(event.created_at, now),
        reason: reasonFor(kind, status),
      })),
      ignored: 0,
    }
  },
}

function resendKind(
  type: string,
  bounce: string | undefined,
  status: string | undefined,
): FeedbackEvent['kind'] | undefined {
  switch (type) {
    case 'email.bounced':
      // Resend reports only final bounces; `Transient` and `Undetermined` are those that may pass.
      return bounce === 'Permanent' || bounceKind(status) === 'hard-bounce' ? 'hard-bounce' : 'soft-bounce'
    case 'email.suppressed':
      return 'hard-bounce'
    case 'email.complained':
      return 'complaint'
    case 'email.delivered':
      return 'delivered'
    default:
      return undefined
  }
}

/** A sentence of ours for each kind. */
export function reasonFor(kind: FeedbackEvent['kind'], status: string | undefined): string {
  switch (kind) {
    case 'hard-bounce':
    case 'soft-bounce':
      return bounceReason(status, kind)
    case 'complaint':
      return 'the recipient reported the message as spam'
    case 'unsubscribed':
      return 'the recipient unsubscribed at the mail provider'
    case 'delivered':
      return 'the receiving server accepted the message'
  }
}
