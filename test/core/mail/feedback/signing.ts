import { createHmac, createSign, generateKeyPairSync, type KeyObject, sign } from 'node:crypto'
import selfsigned from 'selfsigned'
import { Webhook } from 'standardwebhooks'
import type { FeedbackProviderName } from '../../../../src/core/env/settings.ts'
import type { FeedbackRequest, VerifyOptions } from '../../../../src/core/mail/feedback/provider.ts'
import { rotatingSecret } from '../../../../src/core/secret.ts'

export const NOW = Date.parse('2026-11-22T02:00:30Z')
export const TOPIC = 'arn:aws:sns:eu-central-1:123456789012:ses-feedback'
const CERT_URL =
  'https://sns.eu-central-1.amazonaws.com/SimpleNotificationService-9c6465fa7f48f5cacd23014631ec1136.pem'

const ec = generateKeyPairSync('ec', { namedCurve: 'prime256v1' })
const otherEc = generateKeyPairSync('ec', { namedCurve: 'prime256v1' })
const spki = (key: KeyObject) => key.export({ format: 'der', type: 'spki' }).toString('base64')
const snsPems = async (commonName = 'sns.amazonaws.com') =>
  selfsigned.generate([{ name: 'commonName', value: commonName }], {
    keySize: 2048,
    notBeforeDate: new Date(NOW - 86_400_000),
    notAfterDate: new Date(NOW + 86_400_000),
  })
const sns = await snsPems()
export const otherSns = await snsPems()
export const wrongNameSns = await snsPems('evil.example.com')

const WHSEC = `whsec_${Buffer.from('a standard webhooks test key').toString('base64')}`
const OTHER_WHSEC = `whsec_${Buffer.from('another key of another account').toString('base64')}`

/** A provider's key as we configure it, and one of another account. */
export const KEYS: Readonly<Record<FeedbackProviderName, { readonly ours: string; readonly other: string }>> =
  {
    ses: { ours: TOPIC, other: 'arn:aws:sns:eu-central-1:999999999999:ses-feedback' },
    postmark: { ours: 'postmark:hook:password', other: 'another-password' },
    sendgrid: { ours: spki(ec.publicKey), other: spki(otherEc.publicKey) },
    mailgun: { ours: 'key-mailgun-signing', other: 'key-of-another-account' },
    resend: { ours: WHSEC, other: OTHER_WHSEC },
    standard: { ours: WHSEC, other: OTHER_WHSEC },
  }

export function optionsFor(key: string, { now = NOW, pem = sns.cert } = {}): VerifyOptions {
  const secret = rotatingSecret(key)
  if (secret === undefined) throw new RangeError('a key is needed')
  return {
    secret,
    now,
    fetchText: async (url) => (url === CERT_URL ? pem : 'nothing is published here'),
  }
}

export interface Signed {
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
}

export const requestOf = ({ headers, body }: Signed): FeedbackRequest => ({
  header: (name) => headers[name.toLowerCase()],
  body: Buffer.from(body),
})

let deliveries = 0

/** The webhook as the provider itself would send it at `at`. */
export function signAs(
  provider: FeedbackProviderName,
  value: unknown,
  at = NOW,
  token = `token-${deliveries + 1}`,
): Signed {
  deliveries += 1
  const seconds = String(Math.floor(at / 1000))
  switch (provider) {
    case 'standard':
    case 'resend': {
      const body = JSON.stringify(value)
      const id = `msg_${deliveries}`
      const signature = new Webhook(WHSEC).sign(id, new Date(at), body)
      const prefix = provider === 'resend' ? 'svix' : 'webhook'
      return {
        body,
        headers: {
          [`${prefix}-id`]: id,
          [`${prefix}-timestamp`]: seconds,
          [`${prefix}-signature`]: signature,
        },
      }
    }
    case 'postmark':
      return {
        body: JSON.stringify(value),
        headers: {
          authorization: `Basic ${Buffer.from(`postmark:${KEYS.postmark.ours}`).toString('base64')}`,
        },
      }
    case 'sendgrid': {
      const body = JSON.stringify(value)
      const signature = sign('sha256', Buffer.from(seconds + body), ec.privateKey).toString('base64')
      const prefix = 'x-twilio-email-event-webhook'
      return { body, headers: { [`${prefix}-timestamp`]: seconds, [`${prefix}-signature`]: signature } }
    }
    case 'mailgun': {
      const signature = createHmac('sha256', KEYS.mailgun.ours)
        .update(seconds + token)
        .digest('hex')
      return {
        headers: {},
        body: JSON.stringify({ signature: { timestamp: seconds, token, signature }, ...(value as object) }),
      }
    }
    case 'ses':
      return snsMessage({ Type: 'Notification', Message: JSON.stringify(value) }, at)
  }
}

/** An SNS message of any type, signed over the fields that its type names. */
export function snsMessage(fields: Readonly<Record<string, string>>, at = NOW, key = sns.private): Signed {
  const message: Record<string, string> = {
    MessageId: `22b80b92-fdea-4c2c-8f9d-${deliveries}`,
    TopicArn: TOPIC,
    Timestamp: new Date(at).toISOString(),
    SignatureVersion: '2',
    SigningCertURL: CERT_URL,
    ...fields,
  }
  const names =
    message.Type === 'Notification'
      ? ['Message', 'MessageId', 'Subject', 'Timestamp', 'TopicArn', 'Type']
      : ['Message', 'MessageId', 'SubscribeURL', 'Timestamp', 'Token', 'TopicArn', 'Type']
  const text = names.flatMap((name) => (name in message ? [`${name}\n${message[name]}\n`] : [])).join('')
  const signer = createSign(message.SignatureVersion === '2' ? 'RSA-SHA256' : 'RSA-SHA1').update(text)
  return {
    headers: {},
    body: JSON.stringify({ ...message, Signature: fields.Signature ?? signer.sign(key, 'base64') }),
  }
}
