import { expect, test } from 'vitest'
import { engineVariables } from '../../../src/core/env/groups.ts'
import { readSettings, type WebhookFormatName } from '../../../src/core/env/settings.ts'
import { openChannels } from '../../../src/core/incidents/channels.ts'
import type { MessageKind, StoredIncident } from '../../../src/core/incidents/incident.ts'
import { type AlertText, alertText } from '../../../src/core/incidents/text.ts'
import { signWebhook, webhookFormat, webhookRequest } from '../../../src/core/incidents/webhook.ts'
import { type Secret, secret } from '../../../src/core/secret.ts'
import { learning } from '../../../src/presets/learning/platform.ts'

const NOW = Date.UTC(2026, 10, 21, 9, 30)
const incident = {
  id: 'abc',
  cause: 'mail',
  service: 'web',
  reason: 'the provider <refused> the key & left',
  affected: ['agent'],
  openedAt: NOW - 60_000,
  seenAt: NOW,
  closedAt: undefined,
  acknowledgedAt: undefined,
  acknowledgedBy: undefined,
}
const textOf = (reason: string, id = 'abc') =>
  alertText({
    incident: { ...incident, id, reason },
    kind: 'opened',
    platform: 'Kiln School',
    isService: (name) => name === 'agent',
    link: 'https://kiln.example/',
    advice: {
      label: 'Mail',
      means: 'no messages are sent',
      command: 'platformctl preflight --deep',
      runbook: 'dispatch-stalled',
    },
  })
const text = textOf(incident.reason)
const ADDRESS = new URL('https://example.com/?chat_id=-100')
const message = { id: 'alert.abc.opened', kind: 'opened', incident, text } as const
const request = (
  to: WebhookFormatName,
  {
    address = ADDRESS.href,
    ...parts
  }: {
    kind?: MessageKind
    text?: AlertText
    address?: string | undefined
    incident?: StoredIncident
    now?: number
  } = {},
) =>
  webhookRequest(to, {
    address: new URL(address),
    now: NOW,
    ...message,
    ...parts,
    secret: to === 'pagerduty' ? secret('k'.repeat(32)) : undefined,
  })

test.each([
  ['https://hooks.slack.com/services/T/B/x', 'slack'],
  ['https://hooks.slack-gov.com/services/x', 'slack'],
  ['https://discord.com/api/webhooks/1/x', 'discord'],
  ['https://discordapp.com/api/webhooks/1/x', 'discord'],
  ['https://canary.discord.com/api/webhooks/1/x', 'discord'],
  ['https://discord.com/elsewhere', 'json'],
  ['https://notdiscord.com/api/webhooks/1/x', 'json'],
  ['https://example.webhook.office.com/webhookb2/x', 'teams'],
  ['https://x.api.powerplatform.com/x', 'teams'],
  ['https://evilwebhook.office.com/x', 'json'],
  ['https://prod-1.westeurope.logic.azure.com/workflows/x', 'teams'],
  ['https://api.telegram.org/bot1:x/sendMessage?chat_id=-100', 'telegram'],
  ['https://ntfy.sh/our-alerts', 'ntfy'],
  ['https://ntfy.example.com/our-alerts', 'ntfy'],
  ['http://ntfy/x', 'ntfy'],
  ['http://ntfy:8080/x', 'ntfy'],
  ['http://ntfyx.example.com/x', 'json'],
  ['https://events.pagerduty.com/v2/enqueue', 'pagerduty'],
  ['https://events.eu.pagerduty.com/v2/enqueue', 'pagerduty'],
  ['https://hooks.slack.com.evil.example/x', 'json'],
  ['https://ops.example.com/alerts', 'json'],
])('%s takes %s, and any other format that is set', (address, format) => {
  expect(webhookFormat(address)).toBe(format)
  for (const set of engineVariables.ALERT_WEBHOOK_FORMAT.of) expect(webhookFormat(address, set)).toBe(set)
})

test('an alert names the cause, since when, what it means, the first command and the runbook', () => {
  expect([text.title, ...text.lines]).toEqual([
    'Kiln School: Mail (web, agent) is failing',
    'Cause: the provider <refused> the key & left.',
    'Since: 2026-11-21 09:29 UTC.',
    'Also failing for this cause: agent.',
    'What it means: no messages are sent.',
    'Start with: platformctl preflight --deep',
    'Runbook: platformctl runbook dispatch-stalled',
    'Acknowledge: platformctl alert ack abc',
    'Status page: https://kiln.example/',
  ])
})

test('an alert that was opened while the store could not be written names no command that has to write there', () => {
  expect(textOf('r', 'mail-2939712').lines.join()).not.toContain('alert ack')
})

test('the signature is that of the Standard Webhooks specification', () => {
  // The test vector of its reference implementations.
  expect(
    signWebhook(
      'msg_p5jXN8AQM9LWM0D4loKWxJek',
      '1614265330',
      '{"test": 2432232314}',
      secret('whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw'),
    ),
  ).toBe('v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=')
})

test('any other address gets a signed event with every fact of the incident', () => {
  const { headers, body } = webhookRequest('json', {
    ...message,
    address: ADDRESS,
    secret: secret('whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw'),
    now: NOW,
  })
  expect(headers).toMatchObject({
    'content-type': 'application/json',
    'webhook-id': 'alert.abc.opened',
    'webhook-timestamp': String(NOW / 1000),
    'webhook-signature': expect.stringMatching(/^v1,[A-Za-z0-9+/]{43}=$/),
  })
  const facts = {
    incident: 'abc',
    cause: 'mail',
    service: 'web',
    affected: ['agent'],
    reason: incident.reason,
    openedAt: '2026-11-21T09:29:00.000Z',
    closedAt: null,
    acknowledgedAt: null,
    acknowledgedBy: null,
    resolvedBy: null,
    resolvedReason: null,
    title: text.title,
    text: text.lines.join('\n'),
  }
  const timestamp = new Date(NOW).toISOString()
  expect(JSON.parse(body)).toEqual({ type: 'incident.opened', timestamp, data: facts })
  expect(request('json').headers).not.toHaveProperty('webhook-signature')
  expect(request('json', { now: NOW + 999 }).headers['webhook-timestamp']).toBe(String(NOW / 1000))
  const json = (kind: MessageKind, about: StoredIncident = incident) =>
    JSON.parse(request('json', { kind, incident: about }).body)
  expect([json('test').type, json('reminder-12').type]).toEqual(['alert.test', 'incident.reminder'])
  const resolved = { resolvedBy: 'bob', resolvedReason: 'the probe was removed' }
  const ended = { closedAt: NOW, acknowledgedAt: NOW, acknowledgedBy: 'ada', ...resolved }
  expect(json('closed', { ...incident, ...ended, reason: undefined }).data).toEqual({
    ...facts,
    ...resolved,
    reason: null,
    closedAt: timestamp,
    acknowledgedAt: timestamp,
    acknowledgedBy: 'ada',
  })
})

test('each service gets the form that it documents', () => {
  const body = (to: WebhookFormatName) => JSON.parse(request(to).body)
  const all = [text.title, ...text.lines].join('\n')
  const escaped = all.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;')
  expect(request('slack').headers).toEqual({ 'content-type': 'application/json' })
  expect(body('slack')).toEqual({ text: escaped, mrkdwn: false, unfurl_links: false })
  const { content, ...rules } = body('discord')
  expect(content.replaceAll('\\', '')).toBe(all)
  expect(rules).toEqual({ allowed_mentions: { parse: [] }, flags: 4 })
  expect(body('telegram')).toEqual({
    chat_id: '-100',
    text: all,
    link_preview_options: { is_disabled: true },
  })
  const line = (said: string, n: number) => ({
    type: 'RichTextBlock',
    inlines: [{ type: 'TextRun', text: said, weight: n === 0 ? 'Bolder' : 'Default' }],
  })
  expect(body('teams')).toEqual({
    type: 'message',
    attachments: [
      {
        contentType: 'application/vnd.microsoft.card.adaptive',
        contentUrl: null,
        content: {
          $schema: 'http://adaptivecards.io/schemas/adaptive-card.json',
          type: 'AdaptiveCard',
          version: '1.4',
          body: [text.title, ...text.lines].map(line),
          actions: [expect.objectContaining({ type: 'Action.OpenUrl', url: 'https://kiln.example/' })],
        },
      },
    ],
  })
  const unlinked = request('teams', { text: { title: 'A', lines: [] } }).body
  expect(JSON.parse(unlinked).attachments[0].content).not.toHaveProperty('actions')
  expect(request('ntfy')).toEqual({
    headers: {
      'content-type': 'text/plain; charset=utf-8',
      title: text.title,
      priority: 'high',
      tags: 'rotating_light',
      click: 'https://kiln.example/',
    },
    body: text.lines.join('\n'),
  })
  const ntfy = (kind: MessageKind, title = 'A') =>
    request('ntfy', { kind, text: { title, lines: [] } }).headers
  expect(ntfy('closed')).toMatchObject({ priority: 'default', tags: 'white_check_mark' })
  expect(ntfy('test')).toMatchObject({ priority: 'default', tags: 'bell' })
  // An incident that somebody acknowledged goes on, and has no check mark.
  for (const kind of ['reminder-1', 'acknowledged'] as const)
    expect(ntfy(kind)).toMatchObject({ priority: 'default', tags: 'rotating_light' })
  for (const title of ['Töpfe', 'a\nb', 'a\x7f'])
    expect(ntfy('opened', title).title).toBe(`=?UTF-8?B?${Buffer.from(title).toString('base64')}?=`)
})

test('PagerDuty gets one alert for an incident: triggered, acknowledged, resolved', () => {
  const event = (kind: MessageKind, address?: string) =>
    JSON.parse(request('pagerduty', { kind, address }).body)
  expect(event('opened')).toMatchObject({
    routing_key: 'k'.repeat(32),
    event_action: 'trigger',
    dedup_key: 'abc',
    payload: {
      summary: text.title,
      source: 'web',
      severity: 'critical',
      component: 'mail',
      timestamp: '2026-11-21T09:29:00.000Z',
    },
    links: [{ href: 'https://kiln.example/', text: 'Status page' }],
  })
  const again = { event_action: 'trigger', dedup_key: 'abc', payload: { severity: 'critical' } }
  expect(event('reminder-1')).toMatchObject(again)
  expect(event('test').payload.severity).toBe('info')
  for (const [kind, action] of [
    ['acknowledged', 'acknowledge'],
    ['closed', 'resolve'],
  ] as const)
    expect(event(kind)).toEqual({ routing_key: 'k'.repeat(32), event_action: action, dedup_key: 'abc' })
  expect(event('opened', 'https://events.pagerduty.com/v2/enqueue?routing_key=r').routing_key).toBe('r')
})

/** What a body is like whose quotes mention nobody and format nothing; anything where texts are shown as they are. */
const HARMLESS: Readonly<Record<(typeof engineVariables.ALERT_WEBHOOK_FORMAT.of)[number], RegExp>> = {
  slack: /^[^<]*$/,
  // Backslashes are doubled in JSON.
  discord: /\\\\\*\\\\\*bold\\\\\*\\\\\* \\\\\[here\\\\\]/,
  teams: /^/,
  telegram: /^/,
  ntfy: /^/,
  pagerduty: /^/,
  json: /^/,
}

test.each(engineVariables.ALERT_WEBHOOK_FORMAT.of)(
  'a hostile reason of any length harms nothing in %s',
  (to) => {
    const hostile =
      '@everyone <!channel> <@1> "},{ **bold** [here](https://evil.example)\u202a\u202e\u2066\u2069'
    const lines = ['\n', '\r', '\r\n', '\v', '\f', '\u0085', '\u2028', '\u2029'].map(
      (end) => `${end}Start with: rm`,
    )
    const said = textOf(`${hostile}${lines.join('')}${'🏺'.repeat(5000)}`)
    const { body, headers } = request(to, { text: said })
    const shown = to === 'ntfy' ? body : stringsOf(JSON.parse(body)).join('\n')
    // No line begins with what a reason holds, and its end and the direction of letters do not hide the rest.
    expect(shown).not.toMatch(
      /(?:^|[\v\f\u0085])Start with: rm|[\u202a\u202e\u2066\u2069]|[\ud800-\udfff](?![\udc00-\udfff])$/m,
    )
    expect(shown.replaceAll('\\', '')).toContain('platformctl alert ack abc')
    expect(Buffer.byteLength(body)).toBeLessThan(4096)
    for (const value of Object.values(headers)) expect(value).toMatch(/^[ -~]*$/)
    expect(body).toMatch(HARMLESS[to])
  },
)

/** What each service takes at most; the receiver of `json` is a program. */
const MOST = {
  slack: 10_000,
  discord: 2000,
  teams: 1000,
  telegram: 4096,
  ntfy: 4096,
  pagerduty: 1024,
} satisfies Record<Exclude<WebhookFormatName, 'json'>, number>

test.each(
  engineVariables.ALERT_WEBHOOK_FORMAT.of
    .filter((one) => one !== 'json')
    .map((one) => [one, MOST[one]] as const),
)('%s gets no text of more than it takes, %i, and no half of a character', (to, most) => {
  for (const filler of ['🏺', 'a🏺', 'ä']) {
    const long = filler.repeat(6000)
    const { body, headers } = request(to, { text: { title: long, lines: [long] } })
    if (to === 'ntfy') {
      const [, title = ''] = /^=\?UTF-8\?B\?(.*)\?=$/.exec(headers.title ?? '') ?? []
      expect(Buffer.from(title, 'base64').toString()).toMatch(new RegExp(`^(?:${filler})+a?…$`))
      expect(Buffer.byteLength(body)).toBeLessThanOrEqual(most)
      expect(body.isWellFormed()).toBe(true)
      continue
    }
    const { routing_key: _, ...said } = JSON.parse(body)
    // PagerDuty's limit is that of the summary; the details may be long.
    const texts = to === 'pagerduty' ? [said.payload.summary] : stringsOf(said)
    for (const one of texts) expect([one.length <= most, one.isWellFormed()]).toEqual([true, true])
  }
})

test('a text in Discord takes all the room that it has, no half of a character, and links as they are', () => {
  const content = (title: string) =>
    JSON.parse(request('discord', { text: { title, lines: [] } }).body).content
  for (const filler of ['x', '*']) expect(content(filler.repeat(3000))).toHaveLength(2000)
  // A link is opened as it is; what formats is escaped around it.
  expect(content('*now* https://kiln.example/a_b*c')).toBe('\\*now\\* https://kiln.example/a_b*c')
  expect(content(`${'x'.repeat(1999)}🏺`)).toBe(`${'x'.repeat(1999)}…`)
})

test('the format that is set is that of the first webhook; the address of the escalation decides its own', () => {
  const { webhook, escalation } = readSettings(learning, {
    ALERT_WEBHOOK_URL: 'https://chat.example.com/hook',
    ALERT_WEBHOOK_FORMAT: 'slack',
    ALERT_ESCALATION_URL: 'https://events.pagerduty.com/v2/enqueue?routing_key=r',
  }).alerts
  const both: readonly ({ url: Secret; format?: string | undefined } | undefined)[] = [webhook, escalation]
  const formats = both.map((one) => webhookFormat(one?.url.reveal() ?? '', one?.format))
  expect(formats).toEqual(['slack', 'pagerduty'])
})

test('an escalation waits 15 minutes, or as long as it is told to, for somebody to acknowledge; the others wait for nobody', () => {
  const channels = (more = {}) =>
    openChannels(
      { now: () => NOW },
      readSettings(learning, {
        ALERT_WEBHOOK_URL: 'https://ops.example.com/alerts',
        ALERT_ESCALATION_URL: 'https://ops.example.com/pager',
        ...more,
      }),
      () => text,
    ).map(({ name, afterMs }) => [name, afterMs])
  expect(channels()).toEqual([
    ['webhook', undefined],
    ['escalation', 15 * 60_000],
  ])
  expect(channels({ ALERT_ESCALATION_AFTER: '2h' })[1]).toEqual(['escalation', 2 * 3_600_000])
  const byMail = {
    ALERT_WEBHOOK_URL: '',
    ALERT_EMAIL_TO: 'ops@example.com',
    MAILER_API_URL: 'https://mail.example/',
    MAILER_API_KEY: 'key',
    MAILER_FROM: 'a@example.com',
  }
  expect(channels(byMail)[0]).toEqual(['escalation', 15 * 60_000])
})

/** Every string in a document. */
function stringsOf(value: unknown): string[] {
  if (typeof value === 'string') return [value]
  return typeof value === 'object' && value !== null ? Object.values(value).flatMap(stringsOf) : []
}
