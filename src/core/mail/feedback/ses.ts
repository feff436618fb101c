import { verify, X509Certificate } from 'node:crypto'
import { isAcceptedSecret } from '../../accepted-secret.ts'
import type { FeedbackEvent, FeedbackKind } from './event.ts'
import {
  type FeedbackProvider,
  fields,
  list,
  messageId,
  optionalFields,
  optionalText,
  parseBody,
  refused,
  TOLERANCE_MS,
  text,
  timeOf,
  type Verification,
  type VerifyOptions,
} from './provider.ts'
import { reasonFor } from './standard.ts'
import { enhancedCode } from './status.ts'

/** SNS publishes its certificates, and confirms subscriptions, on these hosts only. */
const SNS_HOST = /^sns\.[a-z]{2}(?:-[a-z]+)+-\d\.amazonaws\.com(?:\.cn)?$/
const CERTIFICATE_PATH = /^\/SimpleNotificationService-[0-9a-f]{16,64}\.pem$/

/** Fields that SNS signs for each type of message, in this order. */
const SIGNED: Readonly<Record<string, readonly string[]>> = {
  Notification: ['Message', 'MessageId', 'Subject', 'Timestamp', 'TopicArn', 'Type'],
  SubscriptionConfirmation: [
    'Message',
    'MessageId',
    'SubscribeURL',
    'Timestamp',
    'Token',
    'TopicArn',
    'Type',
  ],
}

/** Amazon SES reports through SNS. The secret is the topic's ARN: a topic of another account is refused. */
export const ses: FeedbackProvider = {
  async verify({ body }, options) {
    const value = parseBody(body)
    const message = optionalFields(value)
    const type = optionalText(message.Type) ?? ''
    const names = Object.hasOwn(SIGNED, type) ? SIGNED[type] : undefined
    if (names === undefined) return refused('it is not a notification of SNS')
    if (!isAcceptedSecret(optionalText(message.TopicArn), options.secret))
      return refused('it comes from another topic')
    if (!isRecent(message.Timestamp, options.now)) return refused('the signature is too old')
    const signed = names
      .flatMap((name) => (typeof message[name] === 'string' ? [`${name}\n${message[name]}\n`] : []))
      .join('')
    if (!(await isSigned(message, signed, options))) return refused('the signature does not fit')
    return type === 'SubscriptionConfirmation'
      ? confirmation(message.SubscribeURL)
      : { kind: 'genuine', value }
  },
  read(value, { now }) {
    const notification = fields(value, 'the body')
    const id = text(notification.MessageId, 'MessageId')
    const report = fields(parseBody(Buffer.from(String(notification.Message))), 'Message')
    const mail = optionalFields(report.mail)
    const common = optionalFields(mail.commonHeaders)
    const events = recipientsOf(report).map(
      ({ address, kind, status, at }, index): FeedbackEvent => ({
        id: `${id}/${index}`,
        kind,
        address,
        messageId: messageId(common.messageId) ?? messageId(mail.messageId),
        at: timeOf(at, now),
        reason: reasonFor(kind, status),
      }),
    )
    return { events, ignored: events.length === 0 ? 1 : 0 }
  },
}

function isRecent(timestamp: unknown, now: number): boolean {
  const at = Date.parse(optionalText(timestamp) ?? '')
  return Math.abs(now - at) <= TOLERANCE_MS
}

/** SNS's own host, over HTTPS, on its usual port. */
function snsUrl(value: unknown): URL | undefined {
  const url = URL.parse(optionalText(value) ?? '')
  return url !== null &&
    url.protocol === 'https:' &&
    url.port === '' &&
    url.username === '' &&
    url.password === '' &&
    SNS_HOST.test(url.hostname)
    ? url
    : undefined
}

function confirmation(subscribeUrl: unknown): Verification {
  const url = snsUrl(subscribeUrl)
  return url?.searchParams.get('Action') === 'ConfirmSubscription'
    ? { kind: 'confirm', url: url.href }
    : refused('the confirmation does not lead to SNS')
}

async function isSigned(
  message: Readonly<Record<string, unknown>>,
  signed: string,
  { fetchText, now }: VerifyOptions,
): Promise<boolean> {
  const algorithm =
    message.SignatureVersion === '2' ? 'sha256' : message.SignatureVersion === '1' ? 'sha1' : undefined
  const url = snsUrl(message.SigningCertURL)
  const signature = optionalText(message.Signature)
  if (algorithm === undefined || url === undefined || signature === undefined) return false
  if (!CERTIFICATE_PATH.test(url.pathname) || url.search !== '') return false
  const certificate = parseCertificate(await fetchText(url.href))
  if (certificate === undefined) return false
  const [from, to] = [Date.parse(certificate.validFrom), Date.parse(certificate.validTo)]
  if (
    !(from <= now && now <= to) ||
    !/^CN=sns(?:\.[a-z0-9-]+)?\.amazonaws\.com(?:\.cn)?$/m.test(certificate.subject)
  )
    return false
  try {
    return verify(algorithm, Buffer.from(signed), certificate.publicKey, Buffer.from(signature, 'base64'))
  } catch {
    return false
  }
}

function parseCertificate(pem: string): X509Certificate | undefined {
  try {
    return new X509Certificate(pem)
  } catch {
    return undefined
  }
}

interface Recipient {
  readonly address: string
  readonly kind: FeedbackKind
  readonly status: string | undefined
  readonly at: unknown
}

/** `eventType` with event publishing, `notificationType` with feedback notifications: the rest is the same. */
function recipientsOf(report: Readonly<Record<string, unknown>>): readonly Recipient[] {
  switch (report.eventType ?? report.notificationType) {
    case 'Bounce': {
      const bounce = fields(report.bounce, 'bounce')
      const kind = bounce.bounceType === 'Permanent' ? 'hard-bounce' : 'soft-bounce'
      return list(bounce.bouncedRecipients, 'bounce.bouncedRecipients').map((one) => {
        const recipient = fields(one, 'bounce.bouncedRecipients[]')
        return {
          address: text(recipient.emailAddress, 'emailAddress'),
          kind,
          status: enhancedCode(
            optionalText(recipient.status) ?? optionalText(recipient.diagnosticCode) ?? '',
          ),
          at: bounce.timestamp,
        }
      })
    }
    case 'Complaint': {
      const complaint = fields(report.complaint, 'complaint')
      // `not-spam`: the recipient moved the message out of the spam folder.
      if (complaint.complaintFeedbackType === 'not-spam') return []
      return list(complaint.complainedRecipients, 'complaint.complainedRecipients').map((one) => ({
        address: text(fields(one, 'complaint.complainedRecipients[]').emailAddress, 'emailAddress'),
        kind: 'complaint',
        status: undefined,
        at: complaint.timestamp,
      }))
    }
    case 'Delivery': {
      const delivery = fields(report.delivery, 'delivery')
      return list(delivery.recipients, 'delivery.recipients').map((address) => ({
        address: text(address, 'delivery.recipients[]'),
        kind: 'delivered',
        status: undefined,
        at: delivery.timestamp,
      }))
    }
    default:
      return []
  }
}
