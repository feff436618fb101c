import { expect, onTestFinished, test } from 'vitest'
import { startLearningDaemon } from '../support/daemon.ts'
import { emptyFolder } from '../support/folder.ts'
import { run } from '../support/run.ts'
import { serveBodies } from '../support/servers.ts'

const KEY = 'sk_test_4eC39HqLyjWDarjtT1zdp7dc'
const ENV = {
  PAYMENTS_SECRET_KEY: KEY,
  PAYMENTS_WEBHOOK_SECRET: 'whsec_of-thirty-two-bytes-at-least',
  PAYMENTS_PRICE_PRO_MONTHLY: 'price_pro_monthly',
  PAYMENTS_PRICE_PRO_YEARLY: 'price_pro_yearly',
}
const MONTHLY = {
  object: 'price',
  active: true,
  type: 'recurring',
  recurring: { interval: 'month' },
  currency: 'eur',
  unit_amount: 1900,
  livemode: false,
}
const PRICES: Record<string, object> = {
  price_pro_monthly: MONTHLY,
  price_pro_yearly: { ...MONTHLY, recurring: { interval: 'year' }, unit_amount: 19000 },
}

/** A payments API on loopback that answers as the public one documents, and keeps what it was asked. */
async function paymentsApi(prices: Record<string, object> = PRICES, key = KEY, heard = (_: string) => {}) {
  const asked: string[] = []
  const url = await serveBodies((body, response, request) => {
    asked.push(`${request.method} ${request.url}${body === '' ? '' : ` ${body}`}`)
    heard(request.url ?? '')
    const json = (status: number, answer: object) =>
      response.writeHead(status, { 'Content-Type': 'application/json' }).end(JSON.stringify(answer))
    if (request.headers.authorization !== `Bearer ${key}`)
      return json(401, {
        error: { type: 'invalid_request_error', message: `Invalid API Key provided: ${key}` },
      })
    const price = /^\/v1\/prices\/(\w+)$/.exec(request.url ?? '')?.[1]
    if (request.method === 'GET' && price !== undefined) {
      const found = prices[price]
      return found ? json(200, { id: price, ...found }) : json(404, { error: { code: 'resource_missing' } })
    }
    if (request.method === 'POST' && request.url === '/v1/checkout/sessions')
      return json(200, {
        id: 'cs_test_1',
        object: 'checkout.session',
        status: 'open',
        url: 'https://pay.example.com/c/1',
      })
    if (request.method === 'POST' && request.url === '/v1/checkout/sessions/cs_test_1/expire')
      return json(200, { id: 'cs_test_1', object: 'checkout.session', status: 'expired' })
    return json(404, { error: { type: 'invalid_request_error' } })
  })
  return { asked, url }
}

async function smoke(env: Record<string, string>, ...args: string[]) {
  const told = await run(['billing', 'smoke', ...args], { env })
  if (told.stdout !== '' && !args.includes('--format')) {
    const json = await run(['billing', 'smoke', ...args, '--format', 'json'], { env })
    const ends = [json.code, JSON.parse(json.stdout).ok]
    expect(ends, 'the document says what the exit code says').toEqual([told.code, told.code === 0])
  }
  for (const name of ['PAYMENTS_SECRET_KEY', 'PAYMENTS_WEBHOOK_SECRET'])
    expect(told.stdout + told.stderr).not.toContain(env[name] ?? '?')
  return told
}

/** The address of the web service of a daemon with this environment. */
async function daemon(env: Record<string, string>) {
  const it = await startLearningDaemon({ env, dataFolder: await emptyFolder() })
  onTestFinished(() => it.close())
  return it.urls.web ?? ''
}

test('a sound configuration passes, against the API and a running daemon', async () => {
  const api = await paymentsApi()
  const env = { ...ENV, PAYMENTS_API_URL: api.url }
  const url = await daemon(env)
  const first = await smoke(env, '--url', url)
  const again = await smoke(env, '--url', url, '--format', 'json')
  expect(first.stdout).toBe(`✔ keys                test mode
✔ price pro-monthly   active, €19.00 a month
✔ price pro-yearly    active, €190.00 a year
✔ checkout            a session was opened and expired
✔ webhook             a signed event was taken once, its repetition known, a forged one refused
`)
  expect(first.code).toBe(0)
  expect(JSON.parse(again.stdout)).toMatchObject({ version: 1, ok: true, mode: 'test' })
  // The daemon asks too, for its health.
  expect(api.asked.filter((asked) => asked.includes('/v1/')).slice(0, 4)).toEqual([
    'GET /v1/prices/price_pro_monthly',
    'GET /v1/prices/price_pro_yearly',
    expect.stringMatching(
      /^POST \/v1\/checkout\/sessions mode=subscription&line_items%5B0%5D%5Bprice%5D=price_pro_monthly&/,
    ),
    'POST /v1/checkout/sessions/cs_test_1/expire',
  ])
})

test('billing smoke reports a daemon with another webhook secret, or without payments', async () => {
  const env = { ...ENV, PAYMENTS_API_URL: (await paymentsApi()).url }
  for (const [there, says] of [
    [
      { ...env, PAYMENTS_WEBHOOK_SECRET: 'whsec_another-of-thirty-two-bytes' },
      'another PAYMENTS_WEBHOOK_SECRET',
    ],
    [{}, 'payments are not configured'],
  ] as const)
    expect(await smoke(env, '--url', await daemon(there))).toMatchObject({
      code: 1,
      stdout: expect.stringContaining(says),
    })
})

test('a live key is refused without --live, and nothing is asked', async () => {
  const api = await paymentsApi()
  const env = { ...ENV, PAYMENTS_SECRET_KEY: 'sk_live_4eC39HqLyjWDarjtT1zdp7dc', PAYMENTS_API_URL: api.url }
  expect(await smoke(env)).toMatchObject({
    code: 2,
    stdout: '',
    stderr: expect.stringMatching(/is a live key, so nothing was tried: use a test key, or add --live/),
  })
  expect(api.asked).toEqual([])
  const prices = Object.entries(PRICES).map(([name, price]) => [name, { ...price, livemode: true }])
  const live = await paymentsApi(Object.fromEntries(prices), env.PAYMENTS_SECRET_KEY)
  expect(await smoke({ ...env, PAYMENTS_API_URL: live.url }, '--live', '--no-webhook')).toMatchObject({
    code: 0,
    stdout: expect.stringMatching(/^✔ keys +live mode/),
  })
})

test.each([
  [
    { price_pro_yearly: undefined },
    /✖ price pro-yearly +no such price in test mode: set PAYMENTS_PRICE_PRO_YEARLY/,
  ],
  [{ price_pro_monthly: { ...MONTHLY, active: false } }, /✖ price pro-monthly +the price is archived/],
  [
    { price_pro_monthly: { ...MONTHLY, type: 'one_time', recurring: null } },
    /✖ price pro-monthly +the price is paid once/,
  ],
  [
    { price_pro_yearly: MONTHLY },
    /✖ price pro-yearly +the price is paid by the month, and this plan by the year/,
  ],
  [
    { price_pro_yearly: { ...MONTHLY, recurring: { interval: 'year' }, currency: 'usd' } },
    /✖ price pro-yearly +the price is in usd, that of pro-monthly in eur/,
  ],
  [
    { price_pro_monthly: { ...MONTHLY, livemode: true } },
    /✖ price pro-monthly +the price is of live mode, and the key of test mode/,
  ],
])('prices with %j fail, each with its reason', async (change, reason) => {
  const prices = Object.fromEntries(
    Object.entries({ ...PRICES, ...change }).filter(([, price]) => price !== undefined),
  ) as Record<string, object>
  const api = await paymentsApi(prices)
  expect(await smoke({ ...ENV, PAYMENTS_API_URL: api.url }, '--no-webhook')).toMatchObject({
    code: 1,
    stdout: expect.stringMatching(reason),
  })
})

test('without payments it is wrong usage, and keys of two modes do not go together', async () => {
  expect(await smoke({})).toMatchObject({
    code: 2,
    stderr: expect.stringMatching(/payments are not configured/),
  })
  const live = { ...ENV, NEXT_PUBLIC_PAYMENTS_PUBLISHABLE_KEY: 'pk_live_x' }
  expect(await smoke({ ...live, PAYMENTS_API_URL: (await paymentsApi()).url }, '--no-webhook')).toMatchObject(
    {
      code: 1,
      stdout: expect.stringMatching(/✖ keys +the secret key is for test mode/),
    },
  )
})

test('a refused key and an unreachable API exit with code 3', async () => {
  const api = await paymentsApi(PRICES, 'sk_test_another')
  expect(await smoke({ ...ENV, PAYMENTS_API_URL: api.url }, '--no-webhook')).toMatchObject({
    code: 3,
    stdout: expect.stringMatching(/✖ checkout +the payments API refused PAYMENTS_SECRET_KEY/),
  })
  expect(await smoke({ ...ENV, PAYMENTS_API_URL: 'http://127.0.0.1:1' }, '--no-webhook')).toMatchObject({
    code: 3,
    stdout: expect.stringContaining('the payments API gave no answer: check PAYMENTS_API_URL'),
  })
  // What is wrong here comes before what was not reached.
  const mixed = { NEXT_PUBLIC_PAYMENTS_PUBLISHABLE_KEY: 'pk_live_x', PAYMENTS_API_URL: 'http://127.0.0.1:1' }
  expect((await smoke({ ...ENV, ...mixed }, '--no-webhook')).code).toBe(1)
})

test.each([
  ['/v1/prices/price_pro_monthly', []],
  ['/v1/checkout/sessions', ['/v1/checkout/sessions', '/v1/checkout/sessions/cs_test_1/expire']],
])('interrupted at %s it says so, asks for nothing new, and leaves no session open', async (at, wanted) => {
  const interrupt = new AbortController()
  const api = await paymentsApi(PRICES, KEY, (path) => {
    if (path === at) interrupt.abort()
  })
  const env = { ...ENV, PAYMENTS_API_URL: api.url }
  const { signal } = interrupt
  expect(await run(['billing', 'smoke', '--url', 'http://127.0.0.1:1'], { env, signal })).toEqual({
    code: 1,
    stdout: '',
    stderr: 'platformctl: interrupted before everything was tried.\n',
  })
  expect(api.asked.flatMap((one) => /^POST (\S+)/.exec(one)?.[1] ?? [])).toEqual(wanted)
})
