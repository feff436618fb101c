import { expect, test } from 'vitest'
import { alertText } from '../../../src/core/incidents/text.ts'
import { signWebhook, webhookKind, webhookRequest } from '../../../src/core/incidents/webhook.ts'
import { secret } from '../../../src/core/secret.ts'

const NOW = Date.UTC(2026, 10, 21, 9, 30)
const incident = {
  id: 'abc',
  cause: 'mail',
  service: 'web',
  reason: 'the provider <refused> the key',
  affected: ['agent'],
  openedAt: NOW - 60_000,
  seenAt: NOW,
  closedAt: undefined,
  acknowledgedAt: undefined,
  acknowledgedBy: undefined,
}
const text = alertText({
  incident,
  kind: 'opened',
  platform: 'Kiln School',
  isService: (name) => name === 'agent',
  advice: {
    label: 'Mail',
    means: 'no messages are sent',
    command: 'platformctl preflight --deep',
    runbook: 'runbooks/dispatch-stalled.md',
  },
})
const message = { id: 'alert.abc.opened', kind: 'opened', incident, text } as const

test.each([
  ['https://hooks.slack.com/services/T/B/x', 'slack'],
  ['https://discord.com/api/webhooks/1/x', 'discord'],
  ['https://discord.com/elsewhere', 'standard'],
  ['https://example.webhook.office.com/webhookb2/x', 'teams'],
  ['https://prod-1.westeurope.logic.azure.com/workflows/x', 'teams'],
  ['https://ntfy.sh/our-alerts', 'ntfy'],
  ['https://ntfy.example.com/our-alerts', 'ntfy'],
  ['https://hooks.slack.com.evil.example/x', 'standard'],
  ['https://ops.example.com/alerts', 'standard'],
])('%s takes %s', (address, kind) => {
  expect(webhookKind(address)).toBe(kind)
})

test('an alert names the cause, since when, what it means, the first command and the runbook', () => {
  expect([text.title, ...text.lines]).toEqual([
    'Kiln School: Mail (web, agent) is failing',
    'Cause: the provider <refused> the key.',
    'Since: 2026-11-21 09:29 UTC.',
    'Also failing for this cause: agent.',
    'What it means: no messages are sent.',
    'Start with: platformctl preflight --deep',
    'Runbook: runbooks/dispatch-stalled.md',
    'Acknowledge: platformctl alert ack abc',
  ])
})

test('the signature is that of the Standard Webhooks specification', () => {
  // The test vector of its reference implementations.
  expect(
    signWebhook({
      id: 'msg_p5jXN8AQM9LWM0D4loKWxJek',
      timestamp: '1614265330',
      body: '{"test": 2432232314}',
      secret: secret('whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw'),
    }),
  ).toBe('v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=')
})

test('any other address gets a signed event with every fact of the incident', () => {
  const { headers, body } = webhookRequest('standard', {
    message,
    secret: secret('whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw'),
    now: NOW,
  })
  expect(headers).toMatchObject({
    'content-type': 'application/json',
    'webhook-id': 'alert.abc.opened',
    'webhook-timestamp': String(NOW / 1000),
    'webhook-signature': expect.stringMatching(/^v1,[A-Za-z0-9+/]{43}=$/),
  })
  expect(JSON.parse(body)).toMatchObject({
    type: 'incident.opened',
    timestamp: '2026-11-21T09:30:00.000Z',
    data: { incident: 'abc', cause: 'mail', service: 'web', affected: ['agent'], closedAt: null },
  })
  expect(webhookRequest('standard', { message, secret: undefined, now: NOW }).headers).not.toHaveProperty(
    'webhook-signature',
  )
})

test('Slack, Discord, Teams and ntfy get the form that each documents', () => {
  const to = (kind: 'slack' | 'discord' | 'teams' | 'ntfy') =>
    webhookRequest(kind, { message, secret: undefined, now: NOW })
  expect(JSON.parse(to('slack').body).text).toContain('the provider &lt;refused&gt; the key')
  expect(JSON.parse(to('discord').body)).toEqual({
    content: [text.title, ...text.lines].join('\n'),
    allowed_mentions: { parse: [] },
  })
  expect(JSON.parse(to('teams').body)).toMatchObject({
    type: 'message',
    attachments: [
      {
        contentType: 'application/vnd.microsoft.card.adaptive',
        content: {
          type: 'AdaptiveCard',
          body: [{ type: 'TextBlock', text: text.title }, {}, {}, {}, {}, {}, {}, {}],
        },
      },
    ],
  })
  expect(to('ntfy').headers).toMatchObject({ title: text.title, priority: 'high' })
  expect(to('ntfy').body).toBe(text.lines.join('\n'))
})
