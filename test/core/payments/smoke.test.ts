import { createHmac } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { systemClock, systemRandom } from '../../../src/core/host.ts'
import { keyModeOf, type SmokeCheck, smoke } from '../../../src/core/payments/smoke.ts'
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

const MONTH = 'GET /v1/prices/m'
const SESSIONS = 'POST /v1/checkout/sessions'
const EXPIRE = 'POST /v1/checkout/sessions/cs%2F1/expire'
const WEBHOOK = 'POST /api/payments/webhook'

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
  const quarterly = { ...MONTHLY, recurring: { interval: 'month', interval_count: 3 } }
  const answers: Record<string, typeof weekly> = {
    w: weekly,
    q: quarterly,
    u: { ...weekly, currency: 'usd' },
  }
  const { of } = await run(
    ({ at }) => {
      const price = answers[at.replace('GET /v1/prices/', '')]
      return price && [200, price]
    },
    {
      prices: {
        ...{ 'pro-plus': 'w', 'pro-weekly': 'w', 'pro-plus-monthly': 'w', lite: 'q', 'lite-monthly': 'q' },
        ...{ 'lite-weekly': 'q', team: 'u' },
      },
    },
  )
  expect(of('price lite-weekly')?.finding).toMatch(/paid by the 3 months, and this plan by the week/)
  expect(of('price team')?.finding).toBe('the price is in usd, that of pro-plus in eur: use one currency.')
  expect(of('price lite')?.finding).toBe('active, €19.00 every 3 months')
  expect(of('price lite-monthly')?.finding).toMatch(/^the price is paid by the 3 months, and/)
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
  const runs = await Promise.all(Array.from({ length: 12 }, () => run()))
  for (const { asked } of runs) {
    const [forged, first, second] = asked.filter(({ at }) => at === WEBHOOK)
    expect(JSON.parse(first?.body ?? '')).toEqual({
      id: expect.stringMatching(/^evt_smoke_[0-9a-f]{24}$/),
      object: 'event',
      type: 'platformctl.smoke',
      created: Math.floor(NOW / 1000),
      data: { object: {} },
    })
    const time = Math.floor(NOW / 1000)
    const v1 = createHmac('sha256', WEBHOOK_SECRET).update(`${time}.${first?.body}`).digest('hex')
    const signature = `t=${time},v1=${v1}`
    const headers = { 'stripe-signature': signature, 'content-type': 'application/json' }
    expect(first?.headers).toMatchObject(headers)
    expect(second).toMatchObject({ body: first?.body, headers })
    expect(forged?.headers['stripe-signature']).not.toBe(signature)
    expect(forged?.headers['stripe-signature']).toHaveLength(signature.length)
  }
})

const price =
  (change: object): Answers =>
  ({ at }) =>
    at === MONTH ? [200, { ...MONTHLY, ...change }] : undefined
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
const REFUSED: Answer = [400, { code: 'a' }]
const TAKEN: Answer = [200, { received: true }]

describe.each<[check: string, cases: readonly (readonly [string, Answers, SmokeCheck['state'], RegExp])[]]>([
  [
    'price pro-monthly',
    [
      ['an archived price', price({ active: false }), 'failed', /archived.*PAYMENTS_PRICE_PRO_MONTHLY/],
      ['a price paid once', price({ type: 'one_time' }), 'failed', /paid once/],
      [
        'a price by the week',
        price({ recurring: { interval: 'week' } }),
        'failed',
        /week, and this plan by the month/,
      ],
      ['a price of live mode', price({ livemode: true }), 'failed', /of live mode, and the key of test mode/],
      ['no such price', to(MONTH, [404, {}]), 'failed', /no such price in test mode/],
      ['a price that cannot be read', to(MONTH, [500, MONTHLY]), 'failed', /^the answer was 500/],
      ['a refused key', to(MONTH, [401, {}]), 'unreached', /refused PAYMENTS_SECRET_KEY/],
      ['a key without the right', to(MONTH, [403, {}]), 'unreached', /refused PAYMENTS_SECRET_KEY/],
      ['an API that is silent', to(MONTH, 'silence'), 'unreached', /check PAYMENTS_API_URL/],
      ['a currency without a fraction', currency('jpy'), 'passed', /^active, ¥1,900 a month$/],
      ['an amount in steps', price({ unit_amount: null }), 'passed', /^active, eur a month$/],
    ],
  ],
  [
    'price pro-yearly',
    [['two currencies', price({ currency: 'usd' }), 'failed', /is in eur, that of pro-monthly in usd/]],
  ],
  [
    'checkout',
    [
      ['no session', to(SESSIONS, [200, { id: 'cs/1' }]), 'failed', /^the answer was 200/],
      [
        'a session without an id',
        to(SESSIONS, [200, { url: 'https://a.example' }]),
        'failed',
        /^the answer was 200/,
      ],
      ['a refused checkout', to(SESSIONS, [400, { id: 'a', url: 'b' }]), 'failed', /^the answer was 400/],
      ['a checkout that is silent', to(SESSIONS, 'silence'), 'unreached', /gave no answer/],
      [
        'a session that stays open',
        to(EXPIRE, [200, { status: 'open' }]),
        'failed',
        /expired \(200\): it ends by itself/,
      ],
      [
        'a refused expiry',
        to(EXPIRE, [400, { status: 'expired' }]),
        'failed',
        /could not be expired \(400\)/,
      ],
      ['an expiry that is silent', to(EXPIRE, 'silence'), 'unreached', /gave no answer/],
    ],
  ],
  [
    'webhook',
    [
      ['a silent service', to(WEBHOOK, 'silence'), 'unreached', /^http:\/\/127\.0\.0\.1:\d+ gave no answer/],
      ['a service without payments', to(WEBHOOK, [503, {}]), 'failed', /not configured/],
      ['a service that takes a forged event', to(WEBHOOK, [399, {}]), 'failed', /does not fit \(399\)/],
      [
        'a service with another secret',
        to(WEBHOOK, REFUSED, REFUSED),
        'failed',
        /another PAYMENTS_WEBHOOK_SECRET/,
      ],
      ['a failure on the event', to(WEBHOOK, REFUSED, [400, { code: 'b' }]), 'failed', /^the answer was 400/],
      ['an event of which nothing is said', to(WEBHOOK, REFUSED, [200, {}]), 'failed', /^the answer was 200/],
      ['a service that falls silent', to(WEBHOOK, REFUSED, 'silence'), 'unreached', /gave no answer/],
      ['an event taken twice', to(WEBHOOK, REFUSED, TAKEN, TAKEN), 'failed', /repeated event/],
      [
        'a refused repetition',
        to(WEBHOOK, REFUSED, TAKEN, [409, { duplicate: true }]),
        'failed',
        /repeated event/,
      ],
      [
        'a repetition without an answer',
        to(WEBHOOK, REFUSED, TAKEN, 'silence'),
        'unreached',
        /gave no answer/,
      ],
    ],
  ],
])('of the check %s', (name, cases) => {
  test.each(cases)('%s is found, and only that', async (_, answers, state, finding) => {
    const { checks, of, url } = await run(answers)
    expect(of(name)).toMatchObject({ name, state, finding: expect.stringMatching(finding) })
    expect(checks.filter((one) => one.state !== 'passed')).toHaveLength(state === 'passed' ? 0 : 1)
    // A value of the environment is never shown.
    if (name !== 'webhook') expect(JSON.stringify(checks)).not.toContain(url)
  })
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
