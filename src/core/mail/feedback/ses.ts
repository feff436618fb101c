import { verify, X509Certificate } from 'node:crypto'
import { isAcceptedSecret } from '../../accepted-secret.ts'
import { DAY_MS } from '../../durations.ts'
import { attempt } from '../../is-record.ts'
import { boundedBody, proxiedFetch } from '../../network/proxy.ts'
import { enhancedCode } from './event.ts'
import {
  FeedbackFormatError,
  type FeedbackProvider,
  type Fields,
  fields,
  type Item,
  isRecent,
  list,
  lookup,
  NOT_RECENT,
  NOTHING,
  optionalFields,
  optionalText,
  parseBody,
  refused,
  UNFIT,
  type VerifyOptions,
} from './provider.ts'

/** SNS publishes its certificates, and confirms subscriptions, on these hosts only. */
const SNS_ORIGIN = /^https:\/\/sns\.[a-z]{2}(?:-[a-z]+)+-\d\.amazonaws\.com(?:\.cn)?$/
const CERTIFICATE_PATH = /^\/SimpleNotificationService-[0-9a-f]{16,64}\.pem$/

const OF_SUBSCRIPTION = 'Message MessageId SubscribeURL Timestamp Token TopicArn Type'.split(' ')
/** Fields that SNS signs for each type of message, in this order. */
const SIGNED: Readonly<Record<string, readonly string[]>> = {
  Notification: 'Message MessageId Subject Timestamp TopicArn Type'.split(' '),
  SubscriptionConfirmation: OF_SUBSCRIPTION,
  UnsubscribeConfirmation: OF_SUBSCRIPTION,
}

/** Amazon SES reports through SNS. The secret is the topic's ARN: a topic of another account is refused. */
export const ses: FeedbackProvider = {
  async verify({ body }, options) {
    const value = parseBody(body)
    const message = optionalFields(value)
    const type = optionalText(message.Type) ?? ''
    const names = lookup(SIGNED, type)
    if (!names || !message.Signature) return refused('none', 'it is not a notification of SNS')
    if (!isAcceptedSecret(optionalText(message.TopicArn), options.secret))
      return refused('wrong', 'it comes from another topic')
    const signed = names
      .flatMap((name) => (typeof message[name] === 'string' ? [`${name}\n${message[name]}\n`] : []))
      .join('')
    if (!(await isSigned(message, signed, options))) return UNFIT
    // SNS dates the publication and not the attempt, and repeats what failed for hours. A replay has no effect.
    if (!isRecent(Date.parse(optionalText(message.Timestamp) ?? ''), options.now, DAY_MS)) return NOT_RECENT
    if (type === 'Notification') return { kind: 'genuine', value }
    if (type === 'UnsubscribeConfirmation')
      return refused('right', 'SNS ended the subscription of this endpoint; subscribe it to the topic again')
    const url = snsUrl(message.SubscribeURL)
    return url?.searchParams.get('Action') === 'ConfirmSubscription'
      ? { kind: 'confirm', url: url.href }
      : refused('right', 'the confirmation does not lead to SNS')
  },
  items(body) {
    const notification = fields(body, 'the body')
    const id = optionalText(notification.MessageId)
    if (id === undefined) throw new FeedbackFormatError('MessageId is not a text')
    const report = fields(parseBody(Buffer.from(String(notification.Message))), 'Message')
    const mail = optionalFields(report.mail)
    const messageId = optionalText(optionalFields(mail.commonHeaders).messageId) ?? mail.messageId
    return recipientsOf(report).map((item, index) => ({ ...item, id: `${id}/${index}`, messageId }))
  },
}

/** SNS's own host, over HTTPS, on its usual port. */
function snsUrl(value: unknown): URL | undefined {
  const url = URL.parse(optionalText(value) ?? '')
  const isOfSns = url !== null && SNS_ORIGIN.test(url.origin) && url.username === '' && url.password === ''
  return isOfSns ? url : undefined
}

async function isSigned(message: Fields, text: string, { fetchText, now }: VerifyOptions): Promise<boolean> {
  const algorithm =
    message.SignatureVersion === '2' ? 'sha256' : message.SignatureVersion === '1' ? 'sha1' : undefined
  const url = snsUrl(message.SigningCertURL)
  const signature = optionalText(message.Signature)
  if (algorithm === undefined || url === undefined || signature === undefined) return false
  if (!CERTIFICATE_PATH.test(url.pathname) || url.search !== '') return false
  const pem = await fetchText(url.href)
  const isValid = attempt(() => {
    const { validFrom, validTo, subject, publicKey } = new X509Certificate(pem)
    const isCurrent = Date.parse(validFrom) <= now && now <= Date.parse(validTo)
    const isOfSns = /^CN=sns(?:\.[a-z0-9-]+)?\.amazonaws\.com(?:\.cn)?$/m.test(subject)
    if (!isCurrent || !isOfSns) return false
    return verify(algorithm, Buffer.from(text), publicKey, Buffer.from(signature, 'base64'))
  })
  // Undefined: not a certificate, or not a signature.
  return isValid ?? false
}

/** `eventType` with event publishing, `notificationType` with feedback notifications: the rest is the same. */
function recipientsOf(report: Readonly<Record<string, unknown>>): readonly Item[] {
  const type = report.eventType ?? report.notificationType
  if (type === 'Bounce') {
    const bounce = fields(report.bounce, 'bounce')
    const kind = bounce.bounceType === 'Permanent' ? 'hard-bounce' : 'soft-bounce'
    return list(bounce.bouncedRecipients, 'bounce.bouncedRecipients').map((one) => {
      const { emailAddress: address, status, diagnosticCode } = optionalFields(one)
      return { kind, address, status: enhancedCode(status, diagnosticCode), at: bounce.timestamp }
    })
  }
  if (type === 'Complaint') {
    const { complaintFeedbackType, complainedRecipients, timestamp } = fields(report.complaint, 'complaint')
    // `not-spam`: the recipient moved the message out of the spam folder.
    if (complaintFeedbackType === 'not-spam') return NOTHING
    return list(complainedRecipients, 'complaint.complainedRecipients').map((one) => {
      return { kind: 'complaint', address: optionalFields(one).emailAddress, at: timestamp }
    })
  }
  if (type !== 'Delivery') return NOTHING
  const { recipients, timestamp: at } = fields(report.delivery, 'delivery')
  return list(recipients, 'delivery.recipients').map((address) => ({ kind: 'delivered', address, at }))
}

const PATIENCE_MS = 5000
const MOST_BYTES = 64 * 1024
const MOST_KEPT = 20

/**
 * Fetches small texts over HTTPS and keeps certificates, whose names change with their content. Never follows a
 * redirect, which could lead away from the host that was checked.
 */
export function createFetchText(get = proxiedFetch): (url: string) => Promise<string> {
  const kept = new Map<string, string>()
  return async (url) => {
    const known = kept.get(url)
    if (known !== undefined) return known
    const response = await get(url, { redirect: 'error', signal: AbortSignal.timeout(PATIENCE_MS) })
    const body = await boundedBody(response.body, MOST_BYTES)
    if (!response.ok) throw new RangeError(`the answer is ${response.status}`)
    const text = body.toString()
    if (new URL(url).pathname.endsWith('.pem')) {
      if (kept.size >= MOST_KEPT) kept.clear()
      kept.set(url, text)
    }
    return text
  }
}
