import { expect, test } from 'vitest'
import { systemClock } from '../../src/core/host.ts'
import { ROUTES } from '../../src/daemon/routes.ts'
import { opened } from '../support/opened.ts'
import { arrivalStore, REST_TOKEN, restStore } from '../support/rest-store.ts'

const SECRET = 'a-dispatch-secret-of-thirty-two-b'

const HERE = '198.51.100.1'

function open(env: Record<string, string>) {
  const it = opened({ env: { EMAIL_DISPATCH_SECRET: SECRET, ...env } })
  const dispatch = (secret: string, from = HERE) =>
    it.post('/api/email/dispatch', {}, { Authorization: `Bearer ${secret}` }, from)
  return { ...it, dispatch }
}

async function shared() {
  const store = await restStore(arrivalStore(() => 1_000_000))
  return {
    store,
    env: { SHAREDSTORE_REST_URL: store.url, SHAREDSTORE_REST_TOKEN: REST_TOKEN, RATE_LIMIT_PER_MINUTE: '10' },
  }
}

test('locks out a client after 20 wrong dispatch secrets, even with the right one, but no other client', async () => {
  const { dispatch } = open({})
  for (let n = 0; n < 20; n += 1) expect((await dispatch(`wrong-${n}`)).status).toBe(401)
  const refused = await dispatch(SECRET)
  expect(refused.status).toBe(429)
  expect(refused.headers.get('ratelimit-policy')).toBe('"auth-failure";q=20;w=60')
  expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0)
  expect((await dispatch(SECRET, '198.51.100.2')).status).toBe(503)
})

test('wrong secrets of one client count together, whatever they open, on whichever service', async () => {
  const { ask, dispatch } = open({ HEALTH_DEEP_TOKEN: 'a-health-token-of-thirty-two-bytes' })
  const [bearer, basic] = ['Bearer wrong', `Basic ${btoa('operator:wrong')}`]
  for (let n = 0; n < 5; n += 1) {
    expect((await dispatch('wrong')).status).toBe(401)
    for (const [service, target, Authorization] of [
      ['web', '/metrics', bearer],
      ['web', '/?details', basic],
      ['api', '/metrics', bearer],
    ] as const)
      expect((await ask(target, { service, from: HERE, headers: { Authorization } })).status).toBe(401)
  }
  expect((await dispatch(SECRET)).status).toBe(429)
})

test('every route counts requests, but those that must answer while all others are refused', () => {
  const others = Object.entries(ROUTES).filter(([, { limits }]) => limits.join() !== 'default')
  expect(others.map(([name, { limits }]) => [name, ...limits].join(' '))).toEqual([
    'metrics',
    'subscribe subscribe confirmations',
    'unsubscribe unsubscribe',
    'feedback feedback',
    'health',
  ])
})

test('wrong secrets are counted here even when a shared store counts the rest', async () => {
  const { store, env } = await shared()
  const { dispatch } = open({ ...env, RATE_LIMIT_PER_MINUTE: '1000' })
  for (let n = 0; n < 20; n += 1) await dispatch('wrong')
  const asked = store.commands.length
  expect((await dispatch(SECRET)).status).toBe(429)
  expect(store.commands.length).toBe(asked)
})

test('the agent, which does not read the address of the shared store, counts for itself', async () => {
  const { store, env } = await shared()
  const { ask } = open(env)
  const isAsked = async (service: 'api' | 'agent') => {
    await ask('/api/configuration', { service, from: HERE })
    return store.commands.length > 0
  }
  expect([await isAsked('agent'), await isAsked('api')]).toEqual([false, true])
})

test('health never asks the shared store, and tells when it does not answer', async () => {
  const { store, env } = await shared()
  const { platform, ask } = open(env)
  const probes = async () => ({
    web: (await platform.health('web')).probes.sharedstore,
    api: (await platform.health('api')).probes.limiter,
  })
  expect(await probes()).toMatchObject({ web: { state: 'ok' }, api: { state: 'ok' } })
  await platform.health('web', { deep: true })
  await ask('/api/health', { from: HERE })
  expect(store.commands).toEqual([])

  store.become('slow')
  const began = performance.now()
  const page = await ask('/lessons/1', { from: HERE })
  expect(page.status).toBe(200)
  // It waits a quarter of a second for the store.
  expect(performance.now() - began).toBeLessThan(5000)
  expect(page.headers.get('ratelimit-policy')).toBe('"default";q=5;w=60')
  const told = { state: 'degraded', checked: true, reason: expect.stringContaining('half the quota') }
  expect(await probes()).toMatchObject({ web: told, api: told })
})

test('a platform that is closed while the shared store is down asks it no more', async () => {
  const { store, env } = await shared()
  const waiting: (AbortSignal | undefined)[] = []
  const sleep = (_: number, signal?: AbortSignal) => {
    waiting.push(signal)
    return new Promise<void>(() => {})
  }
  const { platform, ask } = opened({ env, clock: { ...systemClock, sleep } })
  store.become('down')
  await ask('/lessons/1', { from: HERE })
  await platform.close()
  expect(waiting.map((signal) => signal?.aborted)).toEqual([true])
})

test('RATE_LIMIT_PER_MINUTE is the threshold of routes that have no lower one, and errors carry its fields', async () => {
  for (const [perMinute, most, least] of [
    ['7', 7, 7],
    ['1000', 1000, 30],
  ] as const) {
    const { ask, post } = open({ RATE_LIMIT_PER_MINUTE: perMinute })
    const page = await ask('/lessons/1', { from: HERE })
    expect(page.headers.get('ratelimit-policy')).toBe(`"default";q=${most};w=60`)
    const wrong = await post('/api/email/subscribe', '{', {}, HERE)
    expect([wrong.status, wrong.headers.get('ratelimit-policy')]).toEqual([
      400,
      `"subscribe";q=${least};w=60`,
    ])
    expect(wrong.headers.get('ratelimit')).toMatch(new RegExp(`^"subscribe";r=${least - 1};t=\\d+$`))
  }
})

test('one client may ask for a tenth of EMAIL_CONFIRMATIONS_PER_DAY, from 10 on, and is then refused for the day', async () => {
  const { post } = open({ EMAIL_CONFIRMATIONS_PER_DAY: '110' })
  const subscribe = (n: number) => post('/api/email/subscribe', { email: `a${n}@example.com` }, {}, HERE)
  for (let n = 0; n < 11; n += 1) expect((await subscribe(n)).status).toBe(202)
  const refused = await subscribe(11)
  expect([refused.status, refused.headers.get('ratelimit-policy')]).toEqual([
    429,
    '"confirmations";q=11;w=86400',
  ])
})

test('a client without any request left can still unsubscribe and report bounces', async () => {
  const { ask, post } = open({ RATE_LIMIT_PER_MINUTE: '1' })
  await ask('/lessons/1', { from: HERE })
  expect((await ask('/lessons/1', { from: HERE })).status).toBe(429)
  const left = await ask('/api/email/unsubscribe?s=a&t=b', { method: 'POST', from: HERE })
  expect(left.status).toBe(200)
  expect(left.headers.get('ratelimit-policy')).toBe('"unsubscribe";q=6000;w=60')
  const feedback = await post('/api/email/feedback/standard', {}, {}, HERE)
  expect(feedback.headers.get('ratelimit-policy')).toBe('"feedback";q=6000;w=60')
})

test('clients behind a trusted proxy are counted one by one, and a /56 of IPv6 as one', async () => {
  const { ask } = open({ TRUST_PROXY: '10.0.0.0/8', RATE_LIMIT_PER_MINUTE: '2' })
  const statuses = async (forwarded: string[]) => {
    const all: number[] = []
    for (const address of forwarded)
      all.push(
        (await ask('/lessons/1', { from: '10.0.0.1', headers: { 'X-Forwarded-For': address } })).status,
      )
    return all
  }
  expect(await statuses(['203.0.113.1', '203.0.113.1', '203.0.113.1', '203.0.113.2'])).toEqual([
    200, 200, 429, 200,
  ])
  expect(
    await statuses(['2001:db8:0:1::1', '2001:db8:0:2::1', '2001:db8:0:ff::1', '2001:db8:0:100::1']),
  ).toEqual([200, 200, 429, 200])
})
