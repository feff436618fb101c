import { createHmac } from 'node:crypto'
import type { ServerResponse } from 'node:http'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { expect, onTestFinished, test, vi } from 'vitest'
import { HOUR_MS } from '../../src/core/durations.ts'
import type { PaymentEvent } from '../../src/daemon/index.ts'
import { accountPlatform, bodyOf, clock, NOW, token } from '../support/accounts.ts'
import { asking, keptLog, opened } from '../support/opened.ts'
import { serveBodies } from '../support/servers.ts'

const WEBHOOK_SECRET = 'whsec_of-thirty-two-bytes-at-least'
const PAYMENTS = {
  PAYMENTS_SECRET_KEY: 'sk_test_4eC39HqLyjWDarjtT1zdp7dc',
  PAYMENTS_WEBHOOK_SECRET: WEBHOOK_SECRET,
  PAYMENTS_PRICE_PRO_MONTHLY: 'price_pro_monthly',
  PAYMENTS_PRICE_TEAM_YEARLY: 'price_team_yearly',
}

interface Asked {
  readonly path: string | undefined
  readonly headers: NodeJS.Dict<string | string[]>
  readonly form: Record<string, string>
}

/** A payments API on loopback that keeps what it was asked. */
async function paymentsApi(answer: (response: ServerResponse) => void = (response) => session(response)) {
  const asked: Asked[] = []
  const url = await serveBodies((body, response, request) => {
    asked.push({
      path: `${request.method} ${request.url}`,
      headers: request.headers,
      form: Object.fromEntries(new URLSearchParams(body)),
    })
    answer(response)
  })
  return { asked, url }
}

const session = (response: ServerResponse, url = 'https://pay.example.com/c/cs_1') =>
  response
    .setHeader('Content-Type', 'application/json')
    .end(JSON.stringify({ id: 'cs_1', url, object: 'checkout.session' }))

/** A platform whose payments API gives this answer, and a function that asks it for a checkout. */
async function shop(answer?: (response: ServerResponse) => void, path = '') {
  const api = await paymentsApi(answer)
  const { log, lines } = keptLog()
  const it = await accountPlatform({ env: { ...PAYMENTS, PAYMENTS_API_URL: `${api.url}${path}` }, log })
  const checkout = async (body: unknown, claims: Record<string, unknown> = {}) =>
    it.post('/api/checkout', body, await token(claims))
  return { ...it, asked: api.asked, lines, checkout }
}

test('checkout and its webhook say that payments are not configured, to everybody, until they are; checkout refuses a bad body before', async () => {
  const { ask, post } = opened()
  const response = await ask('/api/checkout', { method: 'POST' })
  expect(response.status).toBe(503)
  expect(await bodyOf(response)).toMatchObject({ code: 'payments_not_configured' })
  for (const body of ['{', '[]', '{}', '{"price":5}', '\0'])
    expect((await post('/api/checkout', body)).status, body).toBe(400)
  for (const [target, body] of [
    ['/api/checkout', { price: 'pro-monthly' }],
    ['/api/payments/webhook', {}],
  ] as const)
    expect(await bodyOf(await post(target, body))).toMatchObject({ code: 'payments_not_configured' })
  const signature = { 'Stripe-Signature': sign(JSON.stringify(EVENT)).header }
  expect((await post('/api/payments/webhook', EVENT, signature)).status).toBe(503)
  // Anybody can ask for it, so it raises no alert.
  const metrics = await (await ask('/metrics', { from: '127.0.0.1' })).text()
  expect(metrics).toMatch(/route="\(forged\)",status="503"/)
  expect(metrics).not.toMatch(/route="\/api\/(?:checkout|payments\/webhook)",status="503"/)
  const half = await accountPlatform({ env: { PAYMENTS_SECRET_KEY: 'sk_test_x' } })
  expect((await half.post('/api/checkout', { price: 'pro-monthly' }, await token())).status).toBe(503)
})

test.each(['pro-monthly', 'price_pro_monthly'])(
  'a checkout of %s opens a session for the caller',
  async (price) => {
    const { checkout, asked } = await shop()
    const response = await checkout({ price })
    expect(response.status).toBe(200)
    expect(await bodyOf(response)).toEqual({ id: 'cs_1', url: 'https://pay.example.com/c/cs_1' })
    expect(asked).toEqual([
      {
        path: 'POST /v1/checkout/sessions',
        headers: expect.objectContaining({
          authorization: `Bearer ${PAYMENTS.PAYMENTS_SECRET_KEY}`,
          'content-type': 'application/x-www-form-urlencoded',
          'idempotency-key': expect.stringMatching(/^[\w-]{43}$/),
        }),
        form: {
          mode: 'subscription',
          'line_items[0][price]': 'price_pro_monthly',
          'line_items[0][quantity]': '1',
          client_reference_id: 'ada',
          customer_email: 'ada@example.com',
          success_url: 'https://www.example.com/?checkout=done',
          cancel_url: 'https://www.example.com/?checkout=cancelled',
        },
      },
    ])
  },
)

test('a payments API under a path of a gateway is asked there, under one key for two clicks of one person on one price', async () => {
  const { checkout, asked, platform } = await shop(undefined, '/pay')
  for (const [price, sub] of [
    ['pro-monthly', 'ada'],
    ['pro-monthly', 'ada'],
    ['team-yearly', 'ada'],
    ['pro-monthly', 'eve'],
  ])
    expect((await checkout({ price }, { sub })).status).toBe(200)
  expect(new Set(asked.map(({ path }) => path))).toEqual(new Set(['POST /pay/v1/checkout/sessions']))
  const keys = asked.map(({ headers }) => headers['idempotency-key'])
  expect(keys[0]).toBe(keys[1])
  expect(new Set(keys).size).toBe(3)
  await platform.close()
  expect((await checkout({ price: 'pro-monthly' })).status).toBe(503)
  expect(asked).toHaveLength(4)
})

test('a checkout of anything but a configured price, or of nobody, is refused, and the payments API is not asked', async () => {
  const { checkout, post, asked } = await shop()
  for (const body of [
    { price: 'pro-yearly' },
    { price: 'price_of_another_account' },
    { price: '__proto__' },
    { price: 'pro-monthly', amount: 1 },
    { price: 'pro-monthly', customer_email: 'eve@example.com' },
    {},
  ])
    expect((await checkout(body)).status).toBe(400)
  const body = { price: 'pro-monthly' }
  expect((await post('/api/checkout', body)).status).toBe(401)
  expect((await checkout(body, { role: 'service_role' })).status).toBe(401)
  expect(asked).toEqual([])
})

test.each([
  [
    'refuses the key',
    (response: ServerResponse) =>
      response.writeHead(401).end('{"error":{"message":"Invalid API Key: sk_test_4eC39"}}'),
  ],
  ['is out of order', (response: ServerResponse) => response.writeHead(500).end()],
  [
    'sends elsewhere',
    (response: ServerResponse) => response.writeHead(307, { Location: 'http://127.0.0.1:9/' }).end(),
  ],
  ['answers something else', (response: ServerResponse) => response.end('<html>')],
  ['answers without a session', (response: ServerResponse) => response.end('{}')],
  ['answers an address that is none', (response: ServerResponse) => session(response, 'javascript:alert(1)')],
  ['never ends its answer', (response: ServerResponse) => response.end('x'.repeat(300 * 1024))],
  ['drops the line', (response: ServerResponse) => response.destroy()],
])('answers 503 without details if the payments API %s', async (_, answer) => {
  const { checkout, lines } = await shop((response) => void answer(response))
  const response = await checkout({ price: 'pro-monthly' })
  const text = await response.text()
  expect(response.status).toBe(503)
  expect(JSON.parse(text)).toMatchObject({ code: 'unavailable' })
  expect(JSON.stringify(lines)).toContain('checkout_failed')
  expect(text + JSON.stringify(lines)).not.toMatch(/sk_test|Invalid API Key|ada@example/)
})

const EVENT = {
  id: 'evt_1',
  type: 'checkout.session.completed',
  created: NOW / 1000,
  livemode: false,
  data: { object: { client_reference_id: 'ada' } },
}

function sign(body: string, { at = NOW / 1000, secret = WEBHOOK_SECRET } = {}) {
  const v1 = createHmac('sha256', secret).update(`${at}.${body}`).digest('hex')
  return { at, v1, header: `t=${at},v1=${v1}` }
}

async function hooked(onPaymentEvent?: (event: PaymentEvent) => void | Promise<void>) {
  const { log, lines } = keptLog()
  const it = await accountPlatform({ env: PAYMENTS, log, ...(onPaymentEvent && { onPaymentEvent }) })
  return {
    ...it,
    lines,
    deliver: (body: string, header = sign(body).header) =>
      it.post('/api/payments/webhook', body, undefined, { 'Stripe-Signature': header }),
  }
}

test('an event reaches the host once, however often it is delivered', async () => {
  const events: PaymentEvent[] = []
  const it = await hooked((event) => void events.push(event))
  const body = JSON.stringify(EVENT)
  expect(await bodyOf(await it.deliver(body))).toEqual({ received: true, duplicate: false })
  expect(await bodyOf(await it.deliver(body))).toEqual({ received: true, duplicate: true })
  expect(events).toEqual([
    { id: 'evt_1', type: 'checkout.session.completed', createdAt: NOW, data: EVENT.data },
  ])
})

test('hands an event that the host failed to handle over again with the next delivery, and says nothing of its fault’s text', async () => {
  let calls = 0
  const it = await hooked(() => {
    calls += 1
    if (calls === 1) throw new Error('the host’s database is away')
  })
  const body = JSON.stringify(EVENT)
  expect((await it.deliver(body)).status).toBe(503)
  expect((await it.deliver(body)).status).toBe(200)
  expect((await it.deliver(body)).status).toBe(200)
  expect(calls).toBe(2)
  expect(it.lines).toContainEqual(expect.objectContaining({ event: 'payment_event_failed', fault: 'Error' }))
  expect(JSON.stringify(it.lines)).not.toContain('database')
})

test('while one delivery is being handled another is put off', async () => {
  let release = () => {}
  const it = await hooked(
    () =>
      new Promise((resolve) => {
        release = resolve
      }),
  )
  const body = JSON.stringify(EVENT)
  const first = it.deliver(body)
  const second = await it.deliver(body)
  expect(second.status).toBe(409)
  release()
  expect((await first).status).toBe(200)
})

test('closing waits for a handler under way, so that its event is settled and the provider hears so', async () => {
  const begun = Promise.withResolvers<void>()
  const { promise: handled, resolve: release } = Promise.withResolvers<void>()
  const it = await hooked(() => {
    begun.resolve()
    return handled
  })
  const delivered = it.deliver(JSON.stringify(EVENT))
  await begun.promise
  let isClosed = false
  const closing = it.platform.close().then(() => {
    isClosed = true
  })
  for (let turn = 0; turn < 50; turn += 1) await nextTurn()
  expect(isClosed).toBe(false)
  release()
  await closing
  expect((await delivered).status).toBe(200)
})

test('closing waits a minute for a handler that never ends, and no longer', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
  onTestFinished(() => void vi.useRealTimers())
  const begun = Promise.withResolvers<void>()
  const it = await hooked(() => {
    begun.resolve()
    return new Promise(() => {})
  })
  void it.deliver(JSON.stringify(EVENT))
  await begun.promise
  let isClosed = false
  const closing = it.platform.close().then(() => {
    isClosed = true
  })
  await vi.advanceTimersByTimeAsync(59_999)
  expect(isClosed).toBe(false)
  await vi.advanceTimersByTimeAsync(1)
  await closing
})

const BODY = JSON.stringify(EVENT)
const GOOD = sign(BODY)
test.each([
  ['none', ''],
  ['of another secret', sign(BODY, { secret: 'another' }).header],
  ['of another body', sign(`${BODY} `).header],
  ['301 s old', sign(BODY, { at: NOW / 1000 - 301 }).header],
  ['301 s in the future', sign(BODY, { at: NOW / 1000 + 301 }).header],
  ['with its time changed', `t=${GOOD.at - 1},v1=${GOOD.v1}`],
  ['with two times', `t=${GOOD.at},t=${GOOD.at - 1},v1=${GOOD.v1}`],
  ['without a time', `v1=${GOOD.v1}`],
  [
    'behind more signatures than are looked at',
    `t=${GOOD.at},${`v1=${'0'.repeat(64)},`.repeat(8)}v1=${GOOD.v1}`,
  ],
])('a signature %s is refused, and the host hears nothing', async (_, header) => {
  const events: PaymentEvent[] = []
  const it = await hooked((event) => void events.push(event))
  const response = await it.deliver(BODY, header)
  expect(response.status).toBe(400)
  expect(await bodyOf(response)).toMatchObject({ code: 'signature_invalid' })
  expect(events).toEqual([])
})

/** A platform that counts refused webhooks: by who may have sent them, and those of the provider alone raise the alert. */
async function refusing() {
  let elapsed = 0
  const now = () => NOW + elapsed
  const { platform } = await accountPlatform({ env: PAYMENTS, clock: { ...clock, now } })
  const { ask, post } = asking(platform)
  const deliver = async (header: string, body = BODY) =>
    (await post('/api/payments/webhook', body, header === '' ? {} : { 'Stripe-Signature': header })).status
  const counted = async (route: string) => {
    const text = await (await ask('/metrics', { from: '127.0.0.1' })).text()
    return Number(text.match(`http_requests_total\\{[^}]*route="${route}",status="4..[^ ]* (\\d+)`)?.[1] ?? 0)
  }
  return {
    deliver,
    signed: (how: Parameters<typeof sign>[1] = {}) =>
      sign(BODY, { at: Math.floor(now() / 1000), ...how }).header,
    pass(ms: number) {
      elapsed += ms
    },
    refused: async () => ({
      ofProvider: await counted('/api/payments/webhook'),
      ofAnybody: await counted('\\(forged\\)'),
    }),
  }
}

test.each([
  ['no signature', ''],
  ['a text', 'signed'],
  ['a time alone', `t=${GOOD.at}`],
  ['no time', `v1=${GOOD.v1}`],
  ['two times', `t=${GOOD.at},t=${GOOD.at},v1=${GOOD.v1}`],
  ['a signature that is too short', `t=${GOOD.at},v1=${GOOD.v1.slice(1)}`],
])(
  'a webhook with %s, which no provider sends, is refused and raises no alert, however large',
  async (_, header) => {
    const it = await refusing()
    expect(await it.deliver(header)).toBe(400)
    expect(await it.refused()).toEqual({ ofProvider: 0, ofAnybody: 1 })
    expect(await it.deliver(header, 'x'.repeat(300_000))).toBe(413)
    expect(await it.refused()).toMatchObject({ ofProvider: 0 })
  },
)

test('webhooks of a provider with another secret or clock count towards the alert, also after those of anybody', async () => {
  const it = await refusing()
  await it.deliver('')
  for (let n = 0; n < 3; n += 1) expect(await it.deliver(it.signed({ secret: 'another' }))).toBe(400)
  expect(await it.refused()).toEqual({ ofProvider: 3, ofAnybody: 1 })
  expect(await it.deliver(it.signed({ at: NOW / 1000 - 301 }))).toBe(400)
  expect(await it.refused()).toEqual({ ofProvider: 4, ofAnybody: 1 })
})

test('wrong signatures raise no alert within six hours of a right one, but right ones of another time do', async () => {
  const it = await refusing()
  expect(await it.deliver(it.signed())).toBe(200)
  const forged = () => it.deliver(it.signed({ secret: 'another' }))
  expect([await forged(), await forged(), await forged()]).toEqual([400, 400, 400])
  expect(await it.refused()).toEqual({ ofProvider: 0, ofAnybody: 3 })
  expect(await it.deliver(it.signed({ at: NOW / 1000 + 301 }))).toBe(400)
  it.pass(6 * HOUR_MS)
  await forged()
  expect(await it.refused()).toEqual({ ofProvider: 1, ofAnybody: 4 })
  it.pass(1)
  await forged()
  expect(await it.refused()).toEqual({ ofProvider: 2, ofAnybody: 4 })
})

test('one good signature among others is enough, while a secret is rolled, also without a host’s part', async () => {
  const it = await hooked()
  const header = `t=${GOOD.at},v1=${sign(BODY, { secret: 'the one before' }).v1}, v1=${GOOD.v1}`
  expect((await it.deliver(BODY, header)).status).toBe(200)
  expect(await bodyOf(await it.deliver(BODY))).toMatchObject({ duplicate: true })
})

test('a signed body that is no event is refused, and so is one with a byte order mark, which is a change of it', async () => {
  const events: PaymentEvent[] = []
  const it = await hooked((event) => void events.push(event))
  for (const body of ['{', '{}', JSON.stringify({ ...EVENT, id: 'a b' })])
    expect((await it.deliver(body)).status).toBe(400)
  expect((await it.deliver(`\uFEFF${BODY}`, GOOD.header)).status).toBe(400)
  expect(events).toEqual([])
})
