import { expect, test } from 'vitest'
import type { HealthReport } from '../../src/core/health/probe.ts'
import type { RouteContext } from '../../src/daemon/http/context.ts'
import type { Site } from '../../src/daemon/http/route.ts'
import { route } from '../../src/daemon/routes/health.ts'
import { learning } from '../../src/presets/learning/platform.ts'
import { accountPlatform, token } from '../support/accounts.ts'
import { opened } from '../support/opened.ts'
import { arrivalStore, REST_TOKEN, restStore } from '../support/rest-store.ts'
import { serve } from '../support/servers.ts'
import { subscribe } from '../support/subscribers.ts'

const SECRET = 'a-dispatch-secret-of-thirty-two-b'
const TOKEN = 'a-health-token-of-thirty-two-bytes'

function open(env: Record<string, string> = {}) {
  const it = opened({ env: { EMAIL_DISPATCH_SECRET: SECRET, HEALTH_DEEP_TOKEN: TOKEN, ...env } })
  const ask = (
    target: string,
    from: string,
    headers: Record<string, string> = {},
    method = 'GET',
    service: 'web' | 'api' | 'agent' = 'web',
  ) => it.ask(target, { from, headers, method, service })
  const guess = async (secret: string, from: string, headers: Record<string, string> = {}) =>
    (await ask('/api/email/dispatch', from, { Authorization: `Bearer ${secret}`, ...headers }, 'POST')).status
  return { platform: it.platform, told: it.told, ask, guess }
}

const PERSONAL =
  /^(?:# HELP )?platformctl_(?:subscriptions|lessons|deliver|dispatch|messages|feedback|mail_today|store_size)|route="\/api\/email/m

const PROXIED = { 'X-Forwarded-For': '198.51.100.1' }
const NONE = { HEALTH_DEEP_TOKEN: '' }

test.each<[who: string, from: string, headers: Record<string, string>, whole: boolean, env?: typeof NONE]>([
  ['the health token', '198.51.100.1', { Authorization: `Bearer ${TOKEN}` }, true],
  ['the machine itself, or a proxy on it that adds no header', '127.0.0.1', {}, false],
  ['a proxy on the machine', '127.0.0.1', PROXIED, false],
  ['a proxy that says so by another field', '127.0.0.1', { Via: '1.1 edge' }, false],
  ['somebody who claims to be the machine', '198.51.100.1', { 'X-Forwarded-For': '127.0.0.1' }, false],
  ['everybody else', '198.51.100.1', {}, false],
  ['the machine itself without a health token', '127.0.0.1', {}, true, NONE],
  ['the machine itself over IPv6 without a health token', '::1', {}, true, NONE],
  ['a proxy on the machine without a health token', '127.0.0.1', PROXIED, false, NONE],
  ['everybody else without a health token', '198.51.100.1', {}, false, NONE],
])('the metrics of any service for %s', async (_, from, headers, whole, env) => {
  const { platform, ask } = open(env)
  await platform.store()
  await ask('/api/email/confirm?token=x', '198.51.100.7')
  await ask('/', '198.51.100.7')
  for (const service of ['web', 'api', 'agent'] as const) {
    const response = await ask('/metrics', from, headers, 'GET', service)
    expect(response.status).toBe(200)
    expect(response.headers.get('content-type')).toBe('text/plain; version=0.0.4; charset=utf-8')
    const text = await response.text()
    expect(PERSONAL.test(text), service).toBe(whole)
    expect(text).toMatch(/^platformctl_build_info/m)
    expect(text).toContain('route="/"')
  }
})

test('no metric that is shown to everybody changes when somebody subscribes, confirms or gets a lesson', async () => {
  const { platform, ask } = open()
  const seen = async () => {
    const text = await (await ask('/metrics', '198.51.100.9')).text()
    return text
      .split('\n')
      .filter((line) => line.startsWith('platformctl_') && !/event_loop|route="\/metrics"/.test(line))
      .join('\n')
  }
  const store = await platform.store()
  await seen()
  const before = await seen()
  await subscribe(store, 'ada', Date.now())
  await ask('/api/email/confirm?token=x', '198.51.100.7')
  // Each of these is a mail to somebody.
  await ask('/api/email', '198.51.100.7', {}, 'POST')
  expect(await seen()).toBe(before)
})

test('a wrong token at the metrics is refused and counted', async () => {
  const { ask } = open()
  for (let n = 0; n < 20; n += 1)
    expect((await ask('/metrics', '198.51.100.1', { Authorization: `Bearer wrong-${n}` })).status).toBe(401)
  expect((await ask('/metrics', '127.0.0.1', { Authorization: 'Bearer wrong' })).status).toBe(401)
  expect((await ask('/metrics', '198.51.100.1', { Authorization: `Bearer ${TOKEN}` })).status).toBe(429)
  expect((await ask('/metrics', '198.51.100.1')).status).toBe(200)
})

/** A platform whose shared store is slow to answer. */
async function openSlow(perMinute: string) {
  const store = await restStore(arrivalStore(() => 1_000_000))
  const shared = { SHAREDSTORE_REST_URL: store.url, SHAREDSTORE_REST_TOKEN: REST_TOKEN }
  return { store, ...open({ ...shared, RATE_LIMIT_PER_MINUTE: perMinute }) }
}

test('checks no more than 20 guesses of a burst, however slow the shared store is', async () => {
  const { guess } = await openSlow('1000')
  const burst = await Promise.all(Array.from({ length: 200 }, (_, n) => guess(`wrong-${n}`, '198.51.100.1')))
  expect(burst.filter((status) => status === 401)).toHaveLength(20)
  expect(burst.filter((status) => status === 429)).toHaveLength(180)
  expect(await guess(SECRET, '198.51.100.1')).toBe(429)
})

test('a burst of requests beyond the quota does not outrun a slow shared store either', async () => {
  const { ask, store } = await openSlow('10')
  const burst = await Promise.all(Array.from({ length: 100 }, () => ask('/', '198.51.100.1')))
  expect(burst.filter(({ status }) => status === 200).length).toBeLessThanOrEqual(10)
  expect(store.commands.length).toBeLessThanOrEqual(25)
})

test('a hundred right secrets at once all pass', async () => {
  const { guess } = open()
  const burst = await Promise.all(Array.from({ length: 100 }, () => guess(SECRET, '198.51.100.1')))
  // The store in memory is refused, which is said after the secret was looked at.
  expect(new Set(burst)).toEqual(new Set([503]))
})

test('behind a proxy that is not named, a guesser locks out neither other visitors nor the dispatch, and health shows it', async () => {
  const { platform, guess, told } = open({ RATE_LIMIT_PER_MINUTE: '1000' })
  const proxy = '10.0.0.7'
  for (let n = 0; n < 21; n += 1) await guess(`wrong-${n}`, proxy, { 'X-Forwarded-For': '198.51.100.1' })
  expect(await guess(SECRET, proxy, { 'X-Forwarded-For': '198.51.100.1' })).toBe(429)
  expect(await guess(SECRET, proxy, { 'X-Forwarded-For': '198.51.100.2' })).toBe(503)
  expect(told('proxy_not_trusted')).not.toEqual([])
  expect((await platform.health('web')).probes.sharedstore).toMatchObject({
    state: 'degraded',
    reason: expect.stringContaining('TRUST_PROXY'),
  })
})

test('in a program that passes no socket on, a guesser locks out nobody whom the program’s proxy tells apart', async () => {
  const { guess } = open({ RATE_LIMIT_PER_MINUTE: '1000' })
  for (let n = 0; n < 21; n += 1) await guess(`wrong-${n}`, '', { 'X-Forwarded-For': '198.51.100.1' })
  expect(await guess(SECRET, '', { 'X-Forwarded-For': '198.51.100.1' })).toBe(429)
  expect(await guess(SECRET, '', { 'X-Forwarded-For': '198.51.100.2' })).toBe(503)
})

test('refuses a client that forges X-Forwarded-For without a proxy after 200 guesses', async () => {
  const { platform, guess } = open({ RATE_LIMIT_PER_MINUTE: '1000' })
  const statuses: number[] = []
  for (let n = 0; n < 300; n += 1)
    statuses.push(await guess('wrong', '203.0.113.5', { 'X-Forwarded-For': `198.51.100.${n % 256}` }))
  // A few come back while this runs: 200 a minute.
  expect(statuses.indexOf(429)).toBeGreaterThanOrEqual(200)
  expect(statuses.filter((status) => status === 429).length).toBeGreaterThan(20)
  // A public address is never our own proxy, so a forwarding header from there does not count as a sign of a missing
  // setting.
  expect((await platform.health('web')).probes.sharedstore?.state).not.toBe('degraded')
})

test('deep checks that no token gates run at most once a second, and none answers from before its question', async () => {
  const began: number[] = []
  const late: Promise<void>[] = []
  let time = 0
  const timer = {
    monotonic: () => time,
    sleep: async (ms: number) => {
      time += ms
    },
  }
  const health = {
    check: async () => {
      began.push(time)
      // Asked while this check runs, so that only the next can answer.
      if (began.length <= 2) late.push(fresh())
      await new Promise((resolve) => setImmediate(resolve))
      // A test's report: the route reads its state and time only.
      return { service: 'web', state: 'ok', time: String(began.length) } as unknown as HealthReport
    },
  }
  const site = { health, settings: { health: {} }, timer } as unknown as Site
  const handler = route(learning, { name: 'web', health: '/api/health' }).open(site)
  const ask = async () => {
    const request = new Request('http://web.example/api/health?deep=1')
    const answer = await handler({ request, query: () => '1' } as unknown as RouteContext)
    return Number(((await answer.json()) as { time: string }).time)
  }
  const fresh = async () => {
    const before = began.length
    expect(await ask()).toBeGreaterThan(before)
  }
  await Promise.all(Array.from({ length: 48 }, fresh))
  await Promise.all(late)
  expect(late).toHaveLength(2)
  for (let n = 0; n < 5; n += 1) await ask()
  expect(began.length).toBeLessThanOrEqual(7)
  for (const [at, start] of began.entries()) expect(start).toBeGreaterThanOrEqual(at * 1000)
})

test('a deep check without the right token asks no other server, and one whose work takes long holds up no other request', async () => {
  let asked = 0
  const { promise: silent, resolve: release } = Promise.withResolvers<void>()
  const url = await serve(async (_, response) => {
    asked += 1
    await silent
    response.end()
  })
  const { ask } = open({ API_URL: url })
  const [from, bearer] = ['198.51.100.1', { Authorization: `Bearer ${TOKEN}` }]
  for (const headers of [{}, { Authorization: 'Bearer wrong' }])
    expect((await ask('/api/health?deep=1', '198.51.100.2', headers)).status).toBe(401)
  // Checks of one turn would share a run.
  await new Promise((resolve) => setImmediate(resolve))
  let answered = 0
  const deep = Array.from({ length: 20 }, async () => {
    await ask('/api/health?deep=1', from, bearer)
    answered += 1
  })
  expect((await ask('/metrics', from, bearer)).status).toBe(200)
  expect(answered).toBe(0)
  await expect.poll(() => asked).toBeGreaterThan(0)
  release()
  await Promise.all(deep)
  expect(asked).toBe(1)
})

test('a malformed health token opens nothing', async () => {
  const { ask } = open({ HEALTH_DEEP_TOKEN: 'one-of-three,two of three,three-of-three' })
  for (const headers of [{}, { Authorization: 'Bearer one-of-three' }])
    expect((await ask('/api/health?deep=1', '198.51.100.1', headers as Record<string, string>)).status).toBe(
      401,
    )
  expect((await ask('/api/health', '198.51.100.1')).status).toBe(200)
})

const AUDIENCE = { DATASTORE_JWT_AUDIENCE: 'school', DATASTORE_JWT_ISSUER: 'https://auth.example.com' }
const GOOD = { aud: 'school', iss: 'https://auth.example.com' }

test.each([
  ['the right audience and issuer', { ...GOOD }, 200],
  ['one of several audiences', { ...GOOD, aud: ['other', 'school'] }, 200],
  ['another audience', { ...GOOD, aud: 'shop' }, 401],
  ['no audience', { ...GOOD, aud: undefined }, 401],
  ['another issuer', { ...GOOD, iss: 'https://evil.example' }, 401],
  ['no issuer', { ...GOOD, iss: undefined }, 401],
  ['an audience that is no text', { ...GOOD, aud: 5 }, 401],
  ['the service role for another audience', { aud: 'shop', role: 'service_role' }, 401],
  ['the role anon', { ...GOOD, role: 'anon' }, 401],
  ['an address that is verified', { ...GOOD, email_verified: true }, 200],
  ['an address that is verified as "false"', { ...GOOD, email_verified: 'false' }, 401],
  ['an address that is verified as "true"', { ...GOOD, email_verified: 'true' }, 401],
  ['an address that is verified as 0', { ...GOOD, email_verified: 0 }, 401],
  ['an address that is verified as null', { ...GOOD, email_verified: null }, 401],
])('a token with %s', async (_, claims, status) => {
  const { post } = await accountPlatform({ env: AUDIENCE })
  const bearer = await token(claims)
  expect((await post('/api/email', { template: 'welcome', inputs: {} }, bearer)).status).toBe(status)
})
