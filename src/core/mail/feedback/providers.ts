import { createHmac, createPublicKey, timingSafeEqual, verify } from 'node:crypto'
import { isAcceptedSecret } from '../../accepted-secret.ts'
import type { FeedbackProviderName } from '../../env/settings.ts'
import { attempt } from '../../is-record.ts'
import { decodeWebhookKey } from '../../webhook-key.ts'
import { bounceKind, enhancedCode, FEEDBACK_KINDS, type FeedbackKind } from './event.ts'
import {
  FeedbackFormatError,
  type FeedbackProvider,
  type FeedbackRequest,
  type Fields,
  fields,
  isRecent,
  list,
  lookup,
  NOT_RECENT,
  NOTHING,
  optionalFields,
  optionalText,
  parseBody,
  readItems,
  refused,
  UNFIT,
  unixTime,
  type Verification,
  type VerifyOptions,
} from './provider.ts'
import { ses } from './ses.ts'

/** A password can be guessed, so the caller counts wrong ones. */
export const WRONG_PASSWORD = refused('wrong', 'the password is wrong')

function genuine(body: Uint8Array, deliveryId?: string): Verification {
  const value = parseBody(body)
  if (value === undefined) return refused('right', 'the body is not JSON')
  return { kind: 'genuine', value, ...(deliveryId !== undefined && { deliveryId }) }
}

type Kinds = Readonly<Record<string, FeedbackKind>>

const MOST_SIGNATURES = 8

/** A Standard Webhooks signature: `v1,BASE64` over `id.timestamp.body`, in headers of this name. */
function verifySigned(
  name: 'webhook' | 'svix',
  { header, body }: FeedbackRequest,
  { secret, now }: VerifyOptions,
): Verification {
  const [id, time, signatures] = ['id', 'timestamp', 'signature'].map((one) => header(`${name}-${one}`))
  if (!id || !time || !signatures) return refused('none', 'the signature headers are missing')
  if (id.length > 255) return refused('none', 'the message id is longer than 255 characters')
  const expected = secret.accepted.flatMap((one) => {
    const key = decodeWebhookKey(one.reveal())
    return key === undefined ? [] : [createHmac('sha256', key).update(`${id}.${time}.`).update(body).digest()]
  })
  const fits = signatures.split(' ', MOST_SIGNATURES).some((one) => {
    const given = one.startsWith('v1,') ? Buffer.from(one.slice(3), 'base64') : Buffer.alloc(0)
    return expected.some((mac) => given.length === mac.length && timingSafeEqual(given, mac))
  })
  if (!fits) return UNFIT
  return isRecent(unixTime(time), now) ? genuine(body, id) : NOT_RECENT
}

/** A provider or relay of your own, by Standard Webhooks: `{ type, timestamp, data: { address, messageId?, status? } }`. */
const standard: FeedbackProvider = {
  verify: (request, options) => verifySigned('webhook', request, options),
  items(body, deliveryId) {
    const { type, timestamp, data: given } = fields(body, 'the body')
    if (optionalText(type) === undefined) throw new FeedbackFormatError('type is not a text')
    const { address, messageId, status } = fields(given, 'data')
    const kind = FEEDBACK_KINDS.find((one) => one === type)
    return [{ kind, id: deliveryId, address, messageId, at: timestamp, status: enhancedCode(status) }]
  },
}

const RESEND: Kinds = {
  'email.suppressed': 'hard-bounce',
  'email.complained': 'complaint',
  'email.delivered': 'delivered',
}

/** Resend signs as Standard Webhooks does, with headers of Svix. */
const resend: FeedbackProvider = {
  verify: (request, options) => verifySigned('svix', request, options),
  items(body) {
    const event = fields(body, 'the body')
    if (optionalText(event.type) === undefined) throw new FeedbackFormatError('type is not a text')
    const data = fields(event.data, 'data')
    const bounce = optionalFields(data.bounce)
    const status = enhancedCode(bounce.message)
    // Resend reports only final bounces; `Transient` and `Undetermined` are those that may pass.
    const bounced = bounce.type === 'Permanent' ? 'hard-bounce' : bounceKind(status)
    const kind = event.type === 'email.bounced' ? bounced : lookup(RESEND, event.type)
    if (kind === undefined) return NOTHING
    const recipients = Array.isArray(data.to) ? data.to : [data.to]
    if (recipients.length === 0 || recipients.length > 50)
      throw new FeedbackFormatError('data.to does not hold 1 to 50 recipients')
    const common = { kind, messageId: data.message_id, at: event.created_at, status }
    return recipients.map((address) => ({ ...common, address }))
  },
}

const MAILGUN: Kinds = { complained: 'complaint', unsubscribed: 'unsubscribed', delivered: 'delivered' }
const MAILGUN_FAILURES: Kinds = {
  'suppress-complaint': 'complaint',
  'suppress-unsubscribe': 'unsubscribed',
  'suppress-bounce': 'hard-bounce',
}

/**
 * Mailgun signs a timestamp and a token, not the body: the token takes effect once, even where its event is ignored,
 * so a captured signature is worth nothing with another body.
 */
const mailgun: FeedbackProvider = {
  verify({ body }, { secret, now }) {
    const value = parseBody(body)
    const signature = optionalFields(optionalFields(value).signature)
    const [time, token, given] = [signature.timestamp, signature.token, signature.signature].map((one) =>
      typeof one === 'number' ? String(one) : optionalText(one),
    )
    if (!time || !token || !given) return refused('none', 'the signature is missing')
    if (!/^[0-9a-f]{64}$/i.test(given) || token.length > 100) return UNFIT
    const bytes = Buffer.from(given, 'hex')
    const macOf = (key: string) => createHmac('sha256', key).update(time + token)
    const fits = secret.accepted.some((one) => timingSafeEqual(bytes, macOf(one.reveal()).digest()))
    if (!fits) return UNFIT
    return isRecent(unixTime(time), now) ? { kind: 'genuine', value, deliveryId: token, token } : NOT_RECENT
  },
  items(body, deliveryId) {
    const event = fields(fields(body, 'the body')['event-data'], 'event-data')
    const failure = optionalFields(event['delivery-status'])
    const status = enhancedCode(failure['enhanced-code'], failure.message)
    const bounced = failure['bounce-type'] === 'hard' ? 'hard-bounce' : bounceKind(status)
    const failed = lookup(MAILGUN_FAILURES, event.reason) ?? bounced
    // Temporary failures are tried again by Mailgun, and end in one that is permanent or in a delivery.
    const isFinal = event.event === 'failed' && event.severity === 'permanent'
    return [
      {
        kind: isFinal ? failed : lookup(MAILGUN, event.event),
        id: deliveryId,
        address: event.recipient,
        messageId: optionalFields(optionalFields(event.message).headers)['message-id'],
        at: event.timestamp,
        status,
      },
    ]
  },
}

const SOFT = 'Transient DnsError SoftBounce SpamNotification VirusNotification Blocked Unknown'.split(' ')
/** By record type; a table is by bounce type or by reason. Types that are not listed say nothing about the mailbox. */
const POSTMARK: Readonly<Record<string, FeedbackKind | Kinds>> = {
  Bounce: {
    HardBounce: 'hard-bounce',
    BadEmailAddress: 'hard-bounce',
    SpamComplaint: 'complaint',
    Unsubscribe: 'unsubscribed',
    ...Object.fromEntries(SOFT.map((type) => [type, 'soft-bounce'])),
  },
  SubscriptionChange: {
    HardBounce: 'hard-bounce',
    SpamComplaint: 'complaint',
    ManualSuppression: 'unsubscribed',
  },
  SpamComplaint: 'complaint',
  Delivery: 'delivered',
}

/** Postmark signs nothing: the webhook's URL carries a user name and a password, and the password is the secret. */
const postmark: FeedbackProvider = {
  verify({ header, body }, { secret }) {
    const basic = /^Basic ([A-Za-z0-9+/=]{1,1000})$/i.exec(header('authorization') ?? '')?.[1]
    if (basic === undefined) return refused('none', 'the password is missing')
    const credentials = Buffer.from(basic, 'base64').toString()
    const password = credentials.slice(credentials.indexOf(':') + 1)
    return isAcceptedSecret(password, secret) ? genuine(body) : WRONG_PASSWORD
  },
  items(body) {
    const event = fields(body, 'the body')
    const type = optionalText(event.RecordType) ?? 'Bounce'
    const known = lookup(POSTMARK, type)
    const isChange = type === 'SubscriptionChange'
    const detailed =
      typeof known === 'object' ? lookup(known, isChange ? event.SuppressionReason : event.Type) : known
    const address = type === 'Bounce' || type === 'SpamComplaint' ? event.Email : event.Recipient
    return [
      {
        kind: isChange && event.SuppressSending !== true ? undefined : detailed,
        // Only bounces have an id of their own; of the others there is one for each message, recipient and time.
        id:
          optionalText(event.MessageID) &&
          [type, event.ID ?? event.MessageID, event.ChangedAt ?? '', address].join('/').slice(0, 500),
        address,
        messageId: event.MessageID,
        at: event.BouncedAt ?? event.DeliveredAt ?? event.ChangedAt,
        status: enhancedCode(event.Details),
      },
    ]
  },
}

const SENDGRID: Kinds = {
  spamreport: 'complaint',
  unsubscribe: 'unsubscribed',
  group_unsubscribe: 'unsubscribed',
  delivered: 'delivered',
}
const SENDGRID_DROPS: readonly (readonly [RegExp, FeedbackKind])[] = [
  [/^(?:bounced address|invalid(?! smtpapi))/i, 'hard-bounce'],
  [/^spam reporting address/i, 'complaint'],
  [/^unsubscribed address/i, 'unsubscribed'],
]

/** SendGrid signs `timestamp + body` by ECDSA; the secret is the account's public key, as its settings page shows it. */
const sendgrid: FeedbackProvider = {
  verify({ header, body }, { secret, now }) {
    const [time, signature] = ['timestamp', 'signature'].map((one) =>
      header(`x-twilio-email-event-webhook-${one}`),
    )
    if (!time || !signature) return refused('none', 'the signature headers are missing')
    const signed = Buffer.concat([Buffer.from(time), body])
    if (!secret.accepted.some((key) => isSignedBy(key.reveal(), signed, signature))) return UNFIT
    return isRecent(unixTime(time), now) ? genuine(body) : NOT_RECENT
  },
  items: (body) =>
    list(body, 'the body').map((one) => {
      const event = optionalFields(one)
      const status = enhancedCode(event.status, event.reason)
      const { sg_event_id: id, email: address, 'smtp-id': messageId, timestamp: at } = event
      return { kind: sendgridKind(event, status), id, address, messageId, at, status }
    }),
}

function sendgridKind(event: Fields, status: string | undefined): FeedbackKind | undefined {
  if (event.event === 'bounce') {
    if (event.type === 'blocked') return 'soft-bounce'
    return event.bounce_classification === 'Invalid Address' ? 'hard-bounce' : bounceKind(status)
  }
  const reason = optionalText(event.reason) ?? ''
  if (event.event === 'dropped') return SENDGRID_DROPS.find(([pattern]) => pattern.test(reason))?.[1]
  return lookup(SENDGRID, event.event)
}

function isSignedBy(key: string, signed: Buffer, signature: string): boolean {
  const isSigned = attempt(() => {
    const publicKey = createPublicKey({ key: Buffer.from(key, 'base64'), format: 'der', type: 'spki' })
    const isElliptic = publicKey.asymmetricKeyType === 'ec'
    return isElliptic && verify('sha256', signed, publicKey, Buffer.from(signature, 'base64'))
  })
  // Undefined: not a key, or not a signature in DER.
  return isSigned ?? false
}

export const FEEDBACK_PROVIDERS: Readonly<Record<FeedbackProviderName, FeedbackProvider>> = {
  ses,
  postmark,
  sendgrid,
  mailgun,
  resend,
  standard,
}

/** Verifies a provider's webhook and reads its events; a refused one is not read. */
export async function readWebhook(
  name: FeedbackProviderName,
  request: FeedbackRequest,
  options: VerifyOptions,
) {
  const provider = FEEDBACK_PROVIDERS[name]
  const verified = await provider.verify(request, options)
  if (verified.kind === 'refused') return verified
  if (verified.kind === 'confirm') {
    await options.fetchText(verified.url)
    return { kind: 'confirmed' } as const
  }
  const { value, deliveryId, token } = verified
  try {
    const read = readItems(provider.items(value, deliveryId), { now: options.now, deliveryId })
    return { kind: 'feedback', feedback: { ...read, token } } as const
  } catch (error) {
    if (!(error instanceof FeedbackFormatError)) throw error
    // Signed, but of another form than the provider's documentation says.
    const feedback = { events: [], ignored: 1, token }
    return { kind: 'not-understood', reason: error.message, feedback } as const
  }
}
