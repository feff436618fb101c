import { createHmac } from 'node:crypto'
import { expect, test } from 'vitest'
import { systemClock, systemRandom } from '../../../src/core/host.ts'
import { keyModeOf, type SmokeCheck, smoke } from '../../../src/core/payments/smoke.ts'
import { PAYMENT_EVENTS_KEPT_MS } from '../../../src/core/payments/webhook.ts'
import { secret } from '../../../src/core/secret.ts'
import { pairOf } from '../../support/accounts.ts'
import { serveBodies } from '../../support/servers.ts'

const NOW = Date.parse('2026-11-22T08:00:00.700Z')
const WEBHOOK_SECRET = 'whsec_of-thirty-two-bytes-at-least'

interface Asked {
  readonly at: string
  readonly headers: Readonly<Record<string, string | string[] | undefined>>
  readonly body: string
}
type Answer = readonly [status: number, body: unknown] | 'silence'
type Answers = (asked: Asked, before: number) => Answer | undefined

const MONTHLY = {
  active: true,
  type: 'recurring',
  recurring: { interval: 'month' },
  currency: 'eur',
  unit_amount: 1900,
  livemode: false,
}

/** The answers of a sound API and a sound service. */
const sound: Answers = ({ at }, before) => {
  if (at === 'GET /v1/prices/m') return [200, MONTHLY]
  if (at === 'GET /v1/prices/y')
    return [200, { ...MONTHLY, recurring: { interval: 'year' }, unit_amount: 19000 }]
  if (at === 'POST /v1/checkout/sessions') return [200, { id: 'cs/1', url: 'https://pay.example.com/1' }]
  if (at === 'POST /v1/checkout/sessions/cs%2F1/expire') return [200, { status: 'expired' }]
  if (before === 0) return [400, { code: 'signature_invalid' }]
  return [200, { received: true, duplicate: before === 2 }]
}

/** The checks of a run over servers that answer so, or else as sound ones, and what they were asked. */
async function run(
  answers: Answers = () => undefined,
  {
    web = true,
    key = 'sk_test_1',
    publishable,
    prices = { 'pro-monthly': 'm', 'pro-yearly': 'y' },
  }: { web?: boolean; key?: string; publishable?: string; prices?: Record<string, string> } = {},
) {
  const asked: Asked[] = []
  const url = await serveBodies((body, response, request) => {
    const one = { at: `${request.method} ${request.url}`, headers: request.headers, body }
    const before = asked.filter(({ at }) => at === one.at).length
    asked.push(one)
    const answer = answers(one, before) ?? sound(one, before)
    if (answer === undefined || answer === 'silence') response.destroy()
    else response.writeHead(answer[0], { 'Content-Type': 'application/json' }).end(JSON.stringify(answer[1]))
  })
  const payments = {
    apiUrl: url,
    secretKey: secret(key),
    publishableKey: publishable,
    webhookSecret: pairOf(WEBHOOK_SECRET),
    prices,
  }
  const checks: SmokeCheck[] = []
  for await (const check of smoke(
    { clock: { ...systemClock, now: () => NOW }, random: systemRandom },
    {
      payments,
      webUrl: web ? url : undefined,
      siteUrl: 'https://www.example.com',
      mode: keyModeOf(payments),
      signal: AbortSignal.timeout(10_000),
    },
  ))
    checks.push(check)
  return { asked, checks, of: (name: string) => checks.find((one) => one.name === name), url }
}

test('a sound configuration is asked for everything once, with the key, and no session stays open', async () => {
  const { asked, checks } = await run()
  expect(checks).toEqual([
    { name: 'keys', state: 'passed', finding: 'test mode' },
    { name: 'price pro-monthly', state: 'passed', finding: 'active, €19.00 a month' },
    { name: 'price pro-yearly', state: 'passed', finding: 'active, €190.00 a year' },
    { name: 'checkout', state: 'passed', finding: 'a session was opened and expired' },
    {
      name: 'webhook',
      state: 'passed',
      finding: 'a signed event was taken once, its repetition known, a forged one refused',
    },
  ])
  const api = asked.filter(({ at }) => at.includes('/v1/'))
  for (const one of api) expect(one.headers.authorization).toBe('Bearer sk_test_1')
  expect(api.map(({ headers }) => headers['content-type'])).toEqual([
    undefined,
    undefined,
    'application/x-www-form-urlencoded',
    'application/x-www-form-urlencoded',
  ])
  expect(Object.fromEntries(new URLSearchParams(api[2]?.body))).toEqual({
    mode: 'subscription',
    'line_items[0][price]': 'm',
    'line_items[0][quantity]': '1',
    client_reference_id: 'platformctl-billing-smoke',
    success_url: 'https://www.example.com/?checkout=done',
    cancel_url: 'https://www.example.com/?checkout=cancelled',
  })
})

test('a price may have any interval if its plan names none, and messages name its variable', async () => {
  const weekly = { ...MONTHLY, recurring: { interval: 'week' } }
  const { of } = await run(({ at }) => (at === 'GET /v1/prices/w' ? [200, weekly] : undefined), {
    prices: { 'pro-plus': 'w', 'pro-weekly': 'w', 'pro-plus-monthly': 'w' },
  })
  expect(of('price pro-plus')?.finding).toBe('active, €19.00 a week')
  expect(of('price pro-weekly')?.state).toBe('passed')
  expect(of('price pro-plus-monthly')?.finding).toMatch(/set PAYMENTS_PRICE_PRO_PLUS_MONTHLY to/)
})

test('an answer that is too large is none, and is not read to its end', async () => {
  const large = { pad: 'x'.repeat(256 * 1024) }
  const { of } = await run(({ at }) => (at === 'GET /v1/prices/m' ? [200, large] : undefined))
  expect(of('price pro-monthly')).toMatchObject({ state: 'unreached' })
  expect(of('price pro-yearly')).toMatchObject({ state: 'passed' })
})

test('the service gets one event three times: first with a signature that does not fit, then with its own', async () => {
  // Over several bodies, so that the last digit of a signature is each of the sixteen.
  const runs = await Promise.all(Array.from({ length: 40 }, () => run()))
  for (const { asked } of runs) {
    const [forged, first, second] = asked.filter(({ at }) => at === 'POST /api/payments/webhook')
    expect(JSON.parse(first?.body ?? '')).toEqual({
      id: expect.stringMatching(/^evt_smoke_[0-9a-f]{24}$/),
      object: 'event',
      type: 'platformctl.smoke',
      created: Math.floor(NOW / 1000),
      data: { object: {} },
    })
    const time = Math.floor(NOW / 1000)
    const v1 = createHmac('sha256', WEBHOOK_SECRET).update(`${time}.${first?.body}`).digest('hex')
    expect(first?.headers).toMatchObject({
      'stripe-signature': `t=${time},v1=${v1}`,
      'content-type': 'application/json',
    })
    expect([second?.body, second?.headers['stripe-signature']]).toEqual([first?.body, `t=${time},v1=${v1}`])
    expect(forged?.headers['stripe-signature']).not.toBe(`t=${time},v1=${v1}`)
    expect(forged?.headers['stripe-signature']).toHaveLength(`t=${time},v1=${v1}`.length)
  }
})

const price =
  (change: object): Answers =>
  ({ at }) =>
    at === 'GET /v1/prices/m' ? [200, { ...MONTHLY, ...change }] : undefined
const currency =
  (code: string): Answers =>
  ({ at }) =>
    at.startsWith('GET /v1/prices/')
      ? [200, { ...MONTHLY, currency: code, recurring: { interval: at.endsWith('m') ? 'month' : 'year' } }]
      : undefined
const to =
  (at: string, ...answers: Answer[]): Answers =>
  (asked, before) =>
    asked.at === at ? answers[before] : undefined
const WEBHOOK = 'POST /api/payments/webhook'
const EXPIRE = 'POST /v1/checkout/sessions/cs%2F1/expire'

test.each<[string, Answers, string, SmokeCheck['state'], RegExp]>([
  [
    'an archived price',
    price({ active: false }),
    'price pro-monthly',
    'failed',
    /archived.*PAYMENTS_PRICE_PRO_MONTHLY/,
  ],
  ['a price paid once', price({ type: 'one_time' }), 'price pro-monthly', 'failed', /paid once/],
  [
    'a price by the week',
    price({ recurring: { interval: 'week' } }),
    'price pro-monthly',
    'failed',
    /by the week, and this plan by the month/,
  ],
  [
    'a price of live mode',
    price({ livemode: true }),
    'price pro-monthly',
    'failed',
    /of live mode, and the key of test mode/,
  ],
  [
    'no such price',
    to('GET /v1/prices/m', [404, {}]),
    'price pro-monthly',
    'failed',
    /no such price in test mode/,
  ],
  [
    'a price that cannot be read',
    to('GET /v1/prices/m', [500, MONTHLY]),
    'price pro-monthly',
    'failed',
    /^the answer was 500/,
  ],
  [
    'a refused key',
    to('GET /v1/prices/m', [401, {}]),
    'price pro-monthly',
    'unreached',
    /refused PAYMENTS_SECRET_KEY/,
  ],
  [
    'a key without the right',
    to('GET /v1/prices/m', [403, {}]),
    'price pro-monthly',
    'unreached',
    /refused PAYMENTS_SECRET_KEY/,
  ],
  [
    'an API that is silent',
    to('GET /v1/prices/m', 'silence'),
    'price pro-monthly',
    'unreached',
    /check PAYMENTS_API_URL/,
  ],
  [
    'two currencies',
    price({ currency: 'usd' }),
    'price pro-yearly',
    'failed',
    /is in eur, that of pro-monthly in usd/,
  ],
  [
    'a currency without a fraction',
    currency('jpy'),
    'price pro-monthly',
    'passed',
    /^active, ¥1,900 a month$/,
  ],
  [
    'an amount in steps',
    price({ unit_amount: null }),
    'price pro-monthly',
    'passed',
    /^active, eur a month$/,
  ],
  [
    'no session',
    to('POST /v1/checkout/sessions', [200, { id: 'cs/1' }]),
    'checkout',
    'failed',
    /^the answer was 200/,
  ],
  [
    'a session without an id',
    to('POST /v1/checkout/sessions', [200, { url: 'https://a.example' }]),
    'checkout',
    'failed',
    /^the answer was 200/,
  ],
  [
    'a checkout that is refused',
    to('POST /v1/checkout/sessions', [400, { id: 'a', url: 'b' }]),
    'checkout',
    'failed',
    /^the answer was 400/,
  ],
  [
    'a checkout that is silent',
    to('POST /v1/checkout/sessions', 'silence'),
    'checkout',
    'unreached',
    /gave no answer/,
  ],
  [
    'a session that stays open',
    to(EXPIRE, [200, { status: 'open' }]),
    'checkout',
    'failed',
    /could not be expired \(200\): it ends by itself/,
  ],
  [
    'an expiry that is refused',
    to(EXPIRE, [400, { status: 'expired' }]),
    'checkout',
    'failed',
    /could not be expired \(400\)/,
  ],
  ['an expiry that is silent', to(EXPIRE, 'silence'), 'checkout', 'unreached', /gave no answer/],
  [
    'a service that is silent',
    to(WEBHOOK, 'silence'),
    'webhook',
    'unreached',
    /^http:\/\/127\.0\.0\.1:\d+ gave no answer/,
  ],
  ['a service without payments', to(WEBHOOK, [503, {}]), 'webhook', 'failed', /not configured/],
  [
    'a service that takes a forged event',
    to(WEBHOOK, [399, {}]),
    'webhook',
    'failed',
    /does not fit \(399\)/,
  ],
  [
    'a service with another secret',
    to(WEBHOOK, [400, { code: 'a' }], [400, { code: 'a' }]),
    'webhook',
    'failed',
    /another PAYMENTS_WEBHOOK_SECRET/,
  ],
  [
    'a service that fails on the event',
    to(WEBHOOK, [400, { code: 'a' }], [400, { code: 'b' }]),
    'webhook',
    'failed',
    /^the answer was 400/,
  ],
  [
    'a service that says nothing of it',
    to(WEBHOOK, [400, {}], [200, {}]),
    'webhook',
    'failed',
    /^the answer was 200/,
  ],
  [
    'a service that falls silent',
    to(WEBHOOK, [400, {}], 'silence'),
    'webhook',
    'unreached',
    /gave no answer/,
  ],
  [
    'a service that takes it twice',
    to(WEBHOOK, [400, {}], [200, { received: true }], [200, { received: true }]),
    'webhook',
    'failed',
    /repeated event/,
  ],
  [
    'a repetition that is refused',
    to(WEBHOOK, [400, {}], [200, { received: true }], [409, { duplicate: true }]),
    'webhook',
    'failed',
    /repeated event/,
  ],
  [
    'a repetition without an answer',
    to(WEBHOOK, [400, {}], [200, { received: true }], 'silence'),
    'webhook',
    'unreached',
    /gave no answer/,
  ],
])('%s is found, and only that', async (_, answers, name, state, finding) => {
  const { checks, of, url } = await run(answers)
  expect(of(name)).toMatchObject({ name, state, finding: expect.stringMatching(finding) })
  expect(checks.filter((one) => one.state !== 'passed')).toHaveLength(state === 'passed' ? 0 : 1)
  // A value of the environment is never shown.
  if (name !== 'webhook') expect(JSON.stringify(checks)).not.toContain(url)
})

test('keys of two modes, and a key of none, do not go together; without a service its webhook is left out', async () => {
  const keys = async (key: string, publishable?: string) => {
    const { of } = await run(undefined, { web: false, key, ...(publishable && { publishable }) })
    expect(of('webhook')).toEqual({ name: 'webhook', state: 'skipped', finding: 'left out' })
    return of('keys')?.finding
  }
  expect(await keys('sk_test_1', 'pk_test_1')).toBe('test mode')
  expect(await keys('rk_live_1', 'pk_live_1')).toBe('live mode')
  expect(await keys('sk_test_1', 'pk_live_1')).toMatch(/secret key is for test mode.*for live mode/)
  expect(await keys('sk_live_1', 'pk_test_1')).toMatch(/secret key is for live mode.*for test mode/)
  expect(await keys('whsec_test_sk_test_')).toMatch(/neither the prefix of a test key/)
})

test('events are known for 90 days', () => {
  expect(PAYMENT_EVENTS_KEPT_MS).toBe(90 * 24 * 60 * 60 * 1000)
})
