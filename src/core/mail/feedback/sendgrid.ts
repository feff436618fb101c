import { createPublicKey, verify } from 'node:crypto'
import { type FeedbackEvent, FeedbackFormatError, type FeedbackKind } from './event.ts'
import {
  type FeedbackProvider,
  fields,
  list,
  messageId,
  optionalText,
  parseBody,
  recentSeconds,
  refused,
  text,
  timeOf,
} from './provider.ts'
import { reasonFor } from './standard.ts'
import { bounceKind, enhancedCode } from './status.ts'

const HEADER = 'x-twilio-email-event-webhook'

/** SendGrid signs `timestamp + body` by ECDSA; the secret is the account's public key, as its settings page shows it. */
export const sendgrid: FeedbackProvider = {
  verify({ header, body }, { secret, now }) {
    const [time, signature] = [header(`${HEADER}-timestamp`), header(`${HEADER}-signature`)]
    if (!time || !signature) return refused('the signature headers are missing')
    if (recentSeconds(time, now) === undefined) return refused('the signature is too old')
    const signed = Buffer.concat([Buffer.from(time), body])
    const fits = secret.accepted.some((key) => isSignedBy(key.reveal(), signed, signature))
    if (!fits) return refused('the signature does not fit')
    const value = parseBody(body)
    return value === undefined ? refused('the body is not JSON') : { kind: 'genuine', value }
  },
  read(value, { now }) {
    const events = list(value, 'the body').map((one, index) => {
      try {
        return eventOf(one, index, now)
      } catch (error) {
        // One event of another form does not keep the others of its batch from being heard.
        if (error instanceof FeedbackFormatError) return undefined
        throw error
      }
    })
    const known = events.filter((one) => one !== undefined)
    return { events: known, ignored: events.length - known.length }
  },
}

function isSignedBy(key: string, signed: Buffer, signature: string): boolean {
  try {
    const publicKey = createPublicKey({ key: Buffer.from(key, 'base64'), format: 'der', type: 'spki' })
    return (
      publicKey.asymmetricKeyType === 'ec' &&
      verify('sha256', signed, publicKey, Buffer.from(signature, 'base64'))
    )
  } catch {
    // Not a key, or not a signature in DER.
    return false
  }
}

function eventOf(value: unknown, index: number, now: number): FeedbackEvent | undefined {
  const event = fields(value, `[${index}]`)
  const status = enhancedCode(optionalText(event.status) ?? optionalText(event.reason) ?? '')
  const kind = kindOf(event, status)
  if (kind === undefined) return undefined
  return {
    id: text(event.sg_event_id, `[${index}].sg_event_id`),
    kind,
    address: text(event.email, `[${index}].email`),
    messageId: messageId(event['smtp-id']),
    at: timeOf(event.timestamp, now),
    reason: reasonFor(kind, status),
  }
}

const DROPPED: readonly (readonly [RegExp, FeedbackKind])[] = [
  [/^(?:bounced address|invalid)/i, 'hard-bounce'],
  [/^spam reporting address/i, 'complaint'],
  [/^unsubscribed address/i, 'unsubscribed'],
]

function kindOf(
  event: Readonly<Record<string, unknown>>,
  status: string | undefined,
): FeedbackKind | undefined {
  switch (event.event) {
    case 'bounce': {
      if (event.type === 'blocked') return 'soft-bounce'
      return event.bounce_classification === 'Invalid Address' ? 'hard-bounce' : bounceKind(status)
    }
    case 'dropped': {
      const reason = optionalText(event.reason) ?? ''
      return DROPPED.find(([pattern]) => pattern.test(reason))?.[1]
    }
    case 'spamreport':
      return 'complaint'
    case 'unsubscribe':
    case 'group_unsubscribe':
      return 'unsubscribed'
    case 'delivered':
      return 'delivered'
    default:
      return undefined
  }
}
