import { createHmac } from 'node:crypto'
import type { WebhookFormatName } from '../env/settings.ts'
import type { Secret } from '../secret.ts'
import { shortened } from '../sentences.ts'
import { decodeWebhookKey } from '../webhook-key.ts'
import type { Alert } from './incident.ts'
import type { AlertText } from './text.ts'

interface WebhookRequest {
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
}

interface Posting extends Omit<Alert, 'at'> {
  readonly text: AlertText
  readonly address: URL
  readonly secret: Secret | undefined
  readonly now: number
}

const within = ({ hostname }: URL, ...domains: readonly string[]) =>
  domains.some((domain) => hostname === domain || hostname.endsWith(`.${domain}`))

const json = (body: unknown): WebhookRequest => ({
  headers: { 'content-type': 'application/json' },
  body: JSON.stringify(body),
})

/** For ntfy, which makes an attachment of what has more bytes. */
function cutBytes(text: string, most: number): string {
  let shown = text
  while (Buffer.byteLength(shown) > most) shown = shortened(shown, Math.floor(shown.length * 0.9))
  return shown
}

const plain = ({ title, lines }: AlertText, most: number) => shortened([title, ...lines].join('\n'), most)

/** A row for each format. What a message quotes can neither mention people nor format itself: `HARMLESS` in its test says of each. */
const FORMATS = {
  // Standard Webhooks, for programs and for every address that no other format recognizes.
  json: { isFor: () => false, request: standardWebhook },
  slack: {
    isFor: ({ hostname }) => hostname === 'hooks.slack.com' || hostname === 'hooks.slack-gov.com',
    // https://docs.slack.dev/messaging/formatting-message-text: these three are escaped, and nothing else.
    request: ({ text }) =>
      json({
        text: plain(text, 10_000).replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;'),
        mrkdwn: false,
        unfurl_links: false,
      }),
  },
  discord: {
    isFor: (url) => within(url, 'discord.com', 'discordapp.com') && url.pathname.startsWith('/api/webhooks/'),
    // https://docs.discord.com/developers/resources/webhook: 2,000 characters. 4 leaves out previews of links.
    request: ({ text }) =>
      json({
        content: shortened(
          plain(text, 2000).replace(/https?:\/\/[^\s<]+|[\\`*_~|<>#[\]]/g, (found) =>
            found.length === 1 ? `\\${found}` : found,
          ),
          2000,
        ),
        allowed_mentions: { parse: [] },
        flags: 4,
      }),
  },
  teams: {
    isFor: (url) => within(url, 'webhook.office.com', 'logic.azure.com', 'api.powerplatform.com'),
    // A TextRun, unlike a TextBlock, reads no Markdown: https://adaptivecards.io/explorer/TextRun.html
    request: ({ text }) =>
      json({
        type: 'message',
        attachments: [
          {
            contentType: 'application/vnd.microsoft.card.adaptive',
            contentUrl: null,
            content: {
              $schema: 'http://adaptivecards.io/schemas/adaptive-card.json',
              type: 'AdaptiveCard',
              version: '1.4',
              body: [text.title, ...text.lines].map((line, at) => ({
                type: 'RichTextBlock',
                inlines: [
                  { type: 'TextRun', text: shortened(line, 1000), weight: at === 0 ? 'Bolder' : 'Default' },
                ],
              })),
              ...(text.link !== undefined && {
                actions: [{ type: 'Action.OpenUrl', title: 'Status page', url: text.link }],
              }),
            },
          },
        ],
      }),
  },
  telegram: {
    isFor: ({ hostname }) => hostname === 'api.telegram.org',
    // https://core.telegram.org/bots/api#sendmessage: 4,096 characters; without parse_mode, text is text.
    request: ({ address, text }) =>
      json({
        chat_id: address.searchParams.get('chat_id'),
        text: plain(text, 4096),
        link_preview_options: { is_disabled: true },
      }),
  },
  ntfy: {
    isFor: ({ hostname }) => hostname === 'ntfy' || hostname.startsWith('ntfy.'),
    request: ({ kind, text }) => {
      const title = shortened(text.title, 250)
      return {
        headers: {
          'content-type': 'text/plain; charset=utf-8',
          // A header holds ASCII: other letters as RFC 2047 words, which ntfy decodes.
          title: /^[ -~]*$/.test(title) ? title : `=?UTF-8?B?${Buffer.from(title).toString('base64')}?=`,
          priority: kind === 'opened' ? 'high' : 'default',
          tags: kind === 'closed' ? 'white_check_mark' : kind === 'test' ? 'bell' : 'rotating_light',
          ...(text.link !== undefined && { click: text.link }),
        },
        body: cutBytes(text.lines.join('\n'), 4096),
      }
    },
  },
  pagerduty: {
    isFor: ({ hostname }) => /^events\.(?:eu\.)?pagerduty\.com$/.test(hostname),
    request: pagerdutyEvent,
  },
} as const satisfies Record<
  WebhookFormatName,
  { isFor(url: URL): boolean; request(posting: Posting): WebhookRequest }
>

const WEBHOOK_FORMATS = Object.keys(FORMATS) as readonly WebhookFormatName[]

/** The format of a webhook: the one that is set, or else the one that its address belongs to. */
export function webhookFormat(address: string, set?: string): WebhookFormatName {
  const url = new URL(address)
  return (
    WEBHOOK_FORMATS.find((name) => name === set) ??
    WEBHOOK_FORMATS.find((name) => FORMATS[name].isFor(url)) ??
    'json'
  )
}

export const webhookRequest = (to: WebhookFormatName, posting: Posting): WebhookRequest =>
  FORMATS[to].request(posting)

/**
 * https://developer.pagerduty.com/docs/events-api-v2/trigger-events: one alert there for each incident. The routing
 * key may be in the address, where the secret signs for another channel.
 */
function pagerdutyEvent({ address, kind, incident, text, secret }: Posting): WebhookRequest {
  const { id, cause, service, openedAt } = incident
  const ends = kind === 'closed' ? 'resolve' : kind === 'acknowledged' ? 'acknowledge' : undefined
  return json({
    routing_key: address.searchParams.get('routing_key') ?? secret?.reveal(),
    event_action: ends ?? 'trigger',
    dedup_key: id,
    ...(ends === undefined && {
      payload: {
        summary: shortened(text.title, 1024),
        source: service,
        severity: kind === 'test' ? 'info' : 'critical',
        timestamp: new Date(openedAt).toISOString(),
        component: cause,
        custom_details: { text: text.lines.join('\n') },
      },
      ...(text.link !== undefined && { links: [{ href: text.link, text: 'Status page' }] }),
    }),
  })
}

/** https://www.standardwebhooks.com: signed over id, time and body; unsigned where no secret is set. */
function standardWebhook({ id, kind, incident, text, secret, now }: Posting): WebhookRequest {
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
      resolvedBy: incident.resolvedBy ?? null,
      resolvedReason: incident.resolvedReason ?? null,
      title: text.title,
      text: text.lines.join('\n'),
    },
  })
  const timestamp = String(Math.floor(now / 1000))
  const signature = secret && signWebhook(id, timestamp, body, secret)
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

/** The value of `webhook-signature`; the timestamp is in seconds. */
export function signWebhook(id: string, timestamp: string, body: string, secret: Secret): string {
  const text = secret.reveal()
  // `whsec_` and base64, or the text itself.
  const key = text.startsWith('whsec_') ? decodeWebhookKey(text) : Buffer.from(text)
  if (key === undefined) throw new RangeError('The signing key of alerts is not base64 of at least 24 bytes.')
  const signed = createHmac('sha256', key).update(`${id}.${timestamp}.${body}`)
  return `v1,${signed.digest('base64')}`
}
