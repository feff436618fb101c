import { createHmac } from 'node:crypto'
import type { Secret } from '../secret.ts'
import { decodeWebhookKey } from '../webhook-key.ts'
import type { MessageKind, StoredIncident } from './incident.ts'
import type { AlertText } from './text.ts'

export type WebhookKind = 'standard' | 'slack' | 'discord' | 'teams' | 'ntfy'

/**
 * The service that an address belongs to, which decides the form of messages. Any other address takes
 * Standard Webhooks.
 */
export function webhookKind(address: string): WebhookKind {
  const { hostname, pathname } = new URL(address)
  const within = (domain: string) => hostname === domain || hostname.endsWith(`.${domain}`)
  if (hostname === 'hooks.slack.com' || hostname === 'hooks.slack-gov.com') return 'slack'
  if ((within('discord.com') || within('discordapp.com')) && pathname.startsWith('/api/webhooks/'))
    return 'discord'
  if (within('webhook.office.com') || within('logic.azure.com') || within('api.powerplatform.com'))
    return 'teams'
  return hostname === 'ntfy' || hostname.startsWith('ntfy.') ? 'ntfy' : 'standard'
}

export interface WebhookRequest {
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
}

export interface WebhookMessage {
  /** The same for every attempt. */
  readonly id: string
  readonly kind: MessageKind
  readonly incident: StoredIncident
  readonly text: AlertText
}

/** The request in the form that the receiver documents. */
export function webhookRequest(
  to: WebhookKind,
  {
    message,
    secret,
    now,
  }: { readonly message: WebhookMessage; readonly secret: Secret | undefined; readonly now: number },
): WebhookRequest {
  const { title, lines } = message.text
  const plain = [title, ...lines].join('\n')
  const json = (body: unknown): WebhookRequest => ({
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  })
  switch (to) {
    case 'slack':
      // https://docs.slack.dev/messaging/formatting-message-text: these three are escaped, and nothing else.
      return json({ text: plain.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;') })
    case 'discord':
      // Discord refuses a message that ends in half a character.
      return json({ content: plain.slice(0, 2000).toWellFormed(), allowed_mentions: { parse: [] } })
    case 'teams':
      return json({
        type: 'message',
        attachments: [
          {
            contentType: 'application/vnd.microsoft.card.adaptive',
            contentUrl: null,
            content: {
              $schema: 'http://adaptivecards.io/schemas/adaptive-card.json',
              type: 'AdaptiveCard',
              version: '1.4',
              body: [
                { type: 'TextBlock', text: title, weight: 'Bolder', wrap: true },
                ...lines.map((text) => ({ type: 'TextBlock', text, wrap: true })),
              ],
            },
          },
        ],
      })
    case 'ntfy':
      return {
        headers: {
          'content-type': 'text/plain; charset=utf-8',
          // A header holds ASCII: other letters as RFC 2047 words, which ntfy decodes.
          title: /^[ -~]*$/.test(title) ? title : `=?UTF-8?B?${Buffer.from(title).toString('base64')}?=`,
          priority: message.kind === 'opened' ? 'high' : 'default',
          tags:
            message.kind === 'closed'
              ? 'white_check_mark'
              : message.kind === 'test'
                ? 'bell'
                : 'rotating_light',
        },
        body: lines.join('\n'),
      }
    case 'standard':
      return standardWebhook({ message, secret, now })
  }
}

/** https://www.standardwebhooks.com: signed over id, time and body; unsigned where no secret is set. */
function standardWebhook({
  message: { id, kind, incident, text },
  secret,
  now,
}: {
  readonly message: WebhookMessage
  readonly secret: Secret | undefined
  readonly now: number
}): WebhookRequest {
  const { reason, affected, openedAt, closedAt, acknowledgedAt, acknowledgedBy } = incident
  const iso = (ms: number | undefined) => (ms === undefined ? null : new Date(ms).toISOString())
  const body = JSON.stringify({
    type: kind === 'test' ? 'alert.test' : `incident.${kind.replace(/-\d+$/, '')}`,
    timestamp: iso(now),
    data: {
      incident: incident.id,
      cause: incident.cause,
      service: incident.service,
      affected,
      reason: reason ?? null,
      openedAt: iso(openedAt),
      closedAt: iso(closedAt),
      acknowledgedAt: iso(acknowledgedAt),
      acknowledgedBy: acknowledgedBy ?? null,
      title: text.title,
      text: text.lines.join('\n'),
    },
  })
  const timestamp = String(Math.floor(now / 1000))
  const signature = secret && signWebhook({ id, timestamp, body, secret })
  return {
    headers: {
      'content-type': 'application/json',
      'webhook-id': id,
      'webhook-timestamp': timestamp,
      ...(signature && { 'webhook-signature': signature }),
    },
    body,
  }
}

/** The value of `webhook-signature`. */
export function signWebhook({
  id,
  timestamp,
  body,
  secret,
}: {
  readonly id: string
  /** Seconds. */
  readonly timestamp: string
  readonly body: string
  readonly secret: Secret
}): string {
  const signed = createHmac('sha256', keyOf(secret.reveal())).update(`${id}.${timestamp}.${body}`)
  return `v1,${signed.digest('base64')}`
}

/** `whsec_` and base64, or the text itself. */
function keyOf(text: string): Buffer {
  const key = text.startsWith('whsec_') ? decodeWebhookKey(text) : Buffer.from(text)
  if (key === undefined) throw new RangeError('The signing key of alerts is not base64 of at least 24 bytes.')
  return key
}
