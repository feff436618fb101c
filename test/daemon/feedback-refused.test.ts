import { expect, test } from 'vitest'
import type { FeedbackProviderName } from '../../src/core/env/settings.ts'
import { KEYS, NOW, type Signed, signAs, snsMessage } from '../core/mail/feedback/signing.ts'
import { accountPlatform } from '../support/accounts.ts'
import { asking, keptLog } from '../support/opened.ts'

const NAMES = Object.keys(KEYS) as FeedbackProviderName[]
/** Postmark signs nothing: wrong passwords are limited with all other wrong secrets. */
const SIGNING = NAMES.filter((name) => name !== 'postmark')
const HOUR = 3600_000

/** A platform that takes webhooks of a provider, under the provider's own secret or another one. */
async function receiver(provider: FeedbackProviderName, secret: 'ours' | 'other' = 'ours') {
  let elapsed = 0
  const { log, told } = keptLog()
  const now = () => NOW + elapsed
  const { platform } = await accountPlatform({
    env: { MAILER_FEEDBACK_PROVIDER: provider, MAILER_FEEDBACK_SECRET: KEYS[provider][secret] },
    clock: { now, monotonic: () => elapsed, sleep: () => Promise.reject(new Error('nothing waits')) },
    log,
  })
  const { ask, post } = asking(platform)
  const send = ({ headers, body }: Signed, from = '198.51.100.1') =>
    post(`/api/email/feedback/${provider}`, body, { ...headers }, from)
  return {
    now,
    pass(ms: number) {
      elapsed += ms
    },
    send,
    /** The statuses of this many webhooks from one address, each status once and in order. */
    async statuses(count: number, signed: () => Signed) {
      const all: number[] = []
      for (let n = 0; n < count; n += 1) all.push((await send(signed())).status)
      return all.filter((status, index) => status !== all[index - 1])
    },
    refusals: () => told('feedback_refused').filter(({ level }) => level === 'warn').length,
    async counted(result: string) {
      const text = await (await ask('/metrics', { from: '127.0.0.1' })).text()
      return Number(text.match(`platformctl_feedback_webhooks_total{result="${result}"} (\\d+)`)?.[1])
    },
  }
}

const UNSIGNED: Signed = { headers: {}, body: '{}' }
const EVENT = {
  type: 'delivered',
  timestamp: new Date(NOW).toISOString(),
  data: { address: 'a@example.com' },
}
/** Such a webhook with a signature that nobody needs a secret for. */
function forge(provider: FeedbackProviderName, at = NOW): Signed {
  if (provider === 'ses') return snsMessage({ Type: 'Notification', TopicArn: KEYS.ses.other }, at)
  const { headers, body } = signAs(provider, EVENT, at)
  const mar = (text: string) =>
    text.replace(/(v1,|signature":")(.)/, (_, before, first) => `${before}${first === '0' ? '1' : '0'}`)
  const password = `Basic ${Buffer.from('hook:guess').toString('base64')}`
  return {
    body: mar(body),
    headers: Object.fromEntries(
      Object.entries(headers).map(([name, value]) => {
        if (name === 'authorization') return [name, password]
        return [name, name === 'x-twilio-email-event-webhook-signature' ? 'AAAA' : mar(value)]
      }),
    ),
  }
}

test.each(NAMES)(
  '%s: a request without a signature raises no alert, is limited, and warns while no secret was right',
  async (name) => {
    const it = await receiver(name)
    expect(await it.statuses(30, () => UNSIGNED)).toEqual([400, 429])
    expect([await it.counted('refused'), await it.counted('forged'), it.refusals()]).toEqual([0, 30, 20])
  },
)

test.each(NAMES)('%s: a wrong secret raises the alert, and a log line for 20 webhooks', async (name) => {
  const it = await receiver(name, 'other')
  const wrong = name === 'postmark' ? 401 : 400
  expect(await it.statuses(30, () => signAs(name, EVENT))).toEqual([wrong, 429])
  // Wrong passwords beyond the limit are not looked at.
  expect([await it.counted('refused'), it.refusals()]).toEqual([name === 'postmark' ? 20 : 30, 20])
  const limited = await it.send(signAs(name, EVENT))
  expect(Number(limited.headers.get('retry-after'))).toBeGreaterThan(0)
  expect((await it.send(signAs(name, EVENT), '198.51.100.2')).status).toBe(wrong)
})

test.each(SIGNING.filter((name) => name !== 'ses'))(
  '%s: forged webhooks raise no alert within six hours of a genuine one, and shut out none',
  async (name) => {
    const it = await receiver(name)
    expect((await it.send(signAs(name, EVENT))).status).toBe(200)
    expect([await it.statuses(5, () => UNSIGNED), it.refusals()]).toEqual([[400], 0])
    expect(await it.statuses(30, () => forge(name))).toEqual([400, 429])
    expect([await it.counted('refused'), await it.counted('forged')]).toEqual([0, 35])
    expect((await it.send(signAs(name, EVENT))).status).toBe(200)
    it.pass(6 * HOUR)
    await it.send(forge(name, it.now()))
    expect(await it.counted('refused')).toBe(0)
    it.pass(1)
    await it.send(forge(name, it.now()))
    expect(await it.counted('refused')).toBe(1)
  },
)

test('postmark: wrong passwords raise no alert within six hours of a right one', async () => {
  const it = await receiver('postmark')
  expect((await it.send(signAs('postmark', {}))).status).toBe(200)
  expect(await it.statuses(5, () => forge('postmark'))).toEqual([401])
  expect([await it.counted('refused'), await it.counted('forged')]).toEqual([0, 5])
})

test('postmark: requests without a password do not hide guesses from their limit', async () => {
  const it = await receiver('postmark')
  await it.statuses(25, () => UNSIGNED)
  expect(await it.statuses(25, () => forge('postmark'))).toEqual([401, 429])
  expect((await it.send(signAs('postmark', {}))).status).toBe(429)
  it.pass(3000)
  expect((await it.send(signAs('postmark', {}))).status).toBe(200)
})

test.each(['standard', 'resend', 'sendgrid', 'mailgun'] as const)(
  '%s: a right signature at a wrong time raises the alert whatever else arrives; a wrong one does not',
  async (name) => {
    const it = await receiver(name)
    await it.send(signAs(name, EVENT))
    const early = NOW - 3600_000
    await it.statuses(5, () => forge(name, early))
    expect([await it.counted('refused'), await it.counted('forged')]).toEqual([0, 5])
    expect(await it.statuses(30, () => signAs(name, EVENT, early))).toEqual([400])
    expect([await it.counted('refused'), await it.counted('forged')]).toEqual([30, 5])
  },
)
