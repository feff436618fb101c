import { expect, test } from 'vitest'
import { PlatformError } from '../../src/core/errors.ts'
import { openStore } from '../../src/core/store/open.ts'
import { KEYS, NOW, signAs } from '../core/mail/feedback/signing.ts'
import { accountPlatform, bodyOf, token } from '../support/accounts.ts'
import { asking } from '../support/opened.ts'
import { openTestStore } from '../support/stores.ts'
import { testTransport } from '../support/test-transport.ts'

const EXP = { exp: NOW / 1000 + 600 }
/** Counts messages as other processes of the store do. */
async function countSent(file: string, count: number) {
  const store = await openStore({ kind: 'sqlite', file })
  await store.sending.count([{ at: NOW, kind: 'sent', source: 'api', domain: 'other', count }])
  await store.close()
}

const clock = { now: () => NOW, monotonic: () => 0, sleep: () => Promise.reject(new Error('nothing waits')) }
const welcome = (name: string, about = name) => ({
  template: 'welcome',
  to: `${name}@example.com`,
  slots: { startUrl: 'https://www.example.com/' },
  about,
})

function platformWith(provider: keyof typeof KEYS, sql = '') {
  return accountPlatform({
    env: { MAILER_FEEDBACK_PROVIDER: provider, MAILER_FEEDBACK_SECRET: KEYS[provider].ours },
    clock,
    sql,
  })
}

const event = (type: string, address = 'ada@example.com') => ({
  type,
  timestamp: new Date(NOW).toISOString(),
  data: { address, status: '5.1.1' },
})

/** A webhook as the provider sends it. */
async function deliver(
  { platform }: Awaited<ReturnType<typeof platformWith>>,
  provider: keyof typeof KEYS,
  value: unknown,
  change: (body: string) => string = (body) => body,
  { headers, body } = signAs(provider, value),
) {
  return asking(platform).post(`/api/email/feedback/${provider}`, change(body), { ...headers })
}

test('a signed hard bounce stops every mail to its address, sign-in mail too', async () => {
  const it = await platformWith('standard')
  const answer = await deliver(it, 'standard', event('hard-bounce'))
  expect(answer.status).toBe(200)
  expect(await bodyOf(answer)).toEqual({ events: 1, repeated: 0, ignored: 0 })
  expect(await it.platform.sendEmail(welcome('Ada'))).toEqual({
    sent: false,
    reason: 'the address is suppressed: mail to it bounced',
  })
  expect(await bodyOf(await it.post('/api/email', { template: 'welcome' }, await token(EXP)))).toMatchObject({
    sent: false,
  })
  expect(it.messages).toEqual([])
})

test('after a complaint only sign-in mail is sent', async () => {
  const it = await platformWith(
    'standard',
    `INSERT INTO login_request VALUES ('login', 'ada@example.com', '/login?t=1', ${NOW + 60_000})`,
  )
  await deliver(it, 'standard', event('complaint'))
  expect(await bodyOf(await it.post('/api/email', { template: 'welcome' }, await token(EXP)))).toEqual({
    sent: false,
    reason: 'the address is suppressed: its owner reported mail as spam',
  })
  const signIn = { template: 'magic-link', inputs: { loginRequestId: 'login' } }
  const service = await token({ role: 'service_role', email: undefined, ...EXP })
  expect(await bodyOf(await it.post('/api/email', signIn, service))).toMatchObject({ sent: true })
  await it.post('/api/email/subscribe', { email: 'ada@example.com' })
  await it.platform.close()
  expect(it.messages.map(({ to }) => to.address)).toEqual(['ada@example.com'])
})

test('stops mailing an address that a mail server permanently refuses', async () => {
  let asked = 0
  const it = await accountPlatform({
    mailer: testTransport(async () => {
      asked += 1
      return { kind: 'permanent', hardBounce: true, reason: 'the address does not exist (5.1.1)' }
    }),
  })
  for (const about of ['a', 'b']) await it.platform.sendEmail(welcome('ada', about))
  expect(asked).toBe(1)
})

test('a mail server to which nobody exists pauses the courses, although it took no message', async () => {
  const dead = { kind: 'permanent', hardBounce: true, reason: 'the address does not exist (5.1.1)' } as const
  const { platform } = await accountPlatform({ mailer: testTransport(async () => dead) })
  const enrol = (name: string) => platform.courses.enrol({ email: `${name}@example.com` })
  for (let n = 0; n < 50; n += 1) await enrol(`p${n}`)
  expect(await platform.dispatch()).toMatchObject({ processed: 50, failed: 50 })
  await enrol('ada')
  expect(await platform.dispatch()).toMatchObject({ processed: 0, remaining: 1, reason: 'paused' })
  const paused = expect.stringMatching(/^courses are paused/)
  expect((await platform.health('web')).probes.mail).toMatchObject({ state: 'degraded', reason: paused })
})

test('feedback that is forged, of another provider or not configured changes nothing', async () => {
  const it = await platformWith('standard')
  const forged = await deliver(it, 'standard', event('hard-bounce', 'bob@example.com'), (body) =>
    body.replace('bob', 'ada'),
  )
  expect(forged.status).toBe(400)
  expect(await bodyOf(forged)).toMatchObject({ code: 'signature_invalid' })
  expect((await deliver(it, 'mailgun', {})).status).toBe(404)
  const without = await accountPlatform({})
  expect((await deliver(without, 'standard', event('hard-bounce'))).status).toBe(404)
})

test.each([
  ['a wrong password is a 401, so that guessing it is limited', 'guess', '{}', 401, /password is wrong/],
  ['a body that is not JSON is no wrong password', KEYS.postmark.ours, '', 400, /body is not JSON/],
])('Postmark: %s', async (_, password, body, status, message) => {
  const it = await platformWith('postmark')
  const answer = await it.platform.web.fetch(
    new Request('http://web.example/api/email/feedback/postmark', {
      method: 'POST',
      headers: { Authorization: `Basic ${Buffer.from(`hook:${password}`).toString('base64')}` },
      body,
    }),
  )
  expect(answer.status).toBe(status)
  expect(await bodyOf(answer)).toMatchObject({ message: expect.stringMatching(message) })
})

test.each([
  ['an event that is ignored', { 'event-data': { event: 'opened', recipient: 'ada@example.com' } }],
  [
    'an event of another form',
    { 'event-data': { event: 'failed', severity: 'permanent', reason: 'bounce' } },
  ],
  ['an event without a usable address', { 'event-data': { event: 'complained', recipient: 'nobody' } }],
])('a signature that Mailgun gave %s is worth nothing with another body', async (_, genuine) => {
  const it = await platformWith('mailgun')
  const signed = signAs('mailgun', genuine)
  expect((await deliver(it, 'mailgun', genuine, undefined, signed)).status).toBe(200)
  const complaint = { event: 'complained', recipient: 'ada@example.com' }
  const forge = (body: string) => JSON.stringify({ ...JSON.parse(body), 'event-data': complaint })
  const forged = await deliver(it, 'mailgun', genuine, forge, signed)
  expect(await bodyOf(forged)).toEqual({ events: 1, repeated: 1, ignored: 0 })
  expect(await it.platform.sendEmail(welcome('ada'))).toMatchObject({ sent: true })
})

test('a signed event in an undocumented form is logged and ignored, and not requested again', async () => {
  const it = await platformWith('standard')
  const answer = await deliver(it, 'standard', { type: 'hard-bounce', data: 'ada@example.com' })
  expect(answer.status).toBe(200)
  expect(await bodyOf(answer)).toEqual({ events: 0, repeated: 0, ignored: 1 })
  expect((await deliver(it, 'standard', 'ada@example.com')).status).toBe(400)
})

test('feedback that the store cannot record is answered with 503, and counts when the provider repeats it', async () => {
  const store = await openTestStore(undefined)
  let isAway = true
  const apply: typeof store.feedback.apply = async (...changes) => {
    if (isAway) throw new PlatformError('store_unavailable', 'The store is away.')
    return store.feedback.apply(...changes)
  }
  const it = await accountPlatform({
    env: { MAILER_FEEDBACK_PROVIDER: 'standard', MAILER_FEEDBACK_SECRET: KEYS.standard.ours },
    clock,
    store: { ...store, feedback: { ...store.feedback, apply } },
  })
  const signed = signAs('standard', event('hard-bounce'))
  expect((await deliver(it, 'standard', {}, undefined, signed)).status).toBe(503)
  isAway = false
  const answer = await deliver(it, 'standard', {}, undefined, signed)
  expect(await bodyOf(answer)).toEqual({ events: 1, repeated: 0, ignored: 0 })
})

test('courses are paused by the share of all that was sent, also of what the same process sent a moment ago', async () => {
  const it = await platformWith('standard')
  await countSent(it.file, 1600)
  for (let n = 0; n < 100; n += 1) await it.platform.sendEmail(welcome(`reader-${n}`))
  const complaint = (n: number) => deliver(it, 'standard', event('complaint', `reader-${n}@example.com`))
  // 0.294 %, and without the hundred 0.3125 %.
  for (let n = 0; n < 5; n += 1) await complaint(n)
  expect(await it.platform.dispatch()).not.toHaveProperty('reason')
  await complaint(5)
  expect(await it.platform.dispatch()).toMatchObject({ reason: 'paused' })
})

test('metrics count feedback by provider and kind, each event once, and say what was sent and whether courses are paused', async () => {
  const it = await platformWith('standard')
  const read = async () => {
    const text = await (await asking(it.platform).ask('/metrics', { from: '127.0.0.1' })).text()
    return (series: string) => text.split('\n').find((line) => line.startsWith(`${series} `))
  }
  const of = (kind: string) => `platformctl_feedback_total{provider="standard",kind="${kind}"}`
  // A rate needs a value before the first event.
  expect((await read())(of('complaint'))).toMatch(/ 0$/)
  await it.platform.sendEmail({ ...welcome('grace'), to: 'grace@gmail.com' })
  const bounce = event('hard-bounce')
  const again = signAs('standard', bounce)
  for (let times = 0; times < 3; times += 1) await deliver(it, 'standard', bounce, undefined, again)
  await deliver(it, 'standard', event('soft-bounce', 'grace@gmail.com'))
  await deliver(it, 'standard', event('delivered', 'grace@gmail.com'))
  await deliver(it, 'standard', bounce, (body) => body.replace('ada', 'bob'))
  // It changes nothing any more, and was heard.
  await deliver(it, 'standard', event('complaint'))
  await countSent(it.file, 60)
  const before = await read()
  expect(before('platformctl_courses_paused')).toMatch(/ 0$/)
  for (let n = 0; n < 4; n += 1)
    await deliver(it, 'standard', event('hard-bounce', `bounced-${n}@example.com`))
  const value = await read()
  expect(value(of('hard-bounce'))).toMatch(/ 5$/)
  for (const kind of ['soft-bounce', 'complaint']) expect(value(of(kind))).toMatch(/ 1$/)
  expect(value('platformctl_feedback_webhooks_total{result="recorded"}')).toMatch(/ 10$/)
  expect(value('platformctl_feedback_webhooks_total{result="forged"}')).toMatch(/ 1$/)
  expect(value('platformctl_mail_today{source="api",kind="sent"}')).toMatch(/ 60$/)
  expect(value('platformctl_mail_today{source="standard",kind="hard-bounce"}')).toMatch(/ 5$/)
  expect(value('platformctl_mail_today{source="standard",kind="delivered"}')).toMatch(/ 1$/)
  expect(value('platformctl_courses_paused')).toMatch(/ 1$/)
})
