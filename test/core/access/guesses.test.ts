import { expect, test } from 'vitest'
import {
  createGuesses,
  localLimiter,
  type Policy,
  policiesOf,
  rateLimitFields,
} from '../../../src/core/access/limit/limiter.ts'
import { sharedCounter, withFallback } from '../../../src/core/access/limit/open.ts'
import { type Clock, silentLog, systemClock } from '../../../src/core/host.ts'
import { secret } from '../../../src/core/secret.ts'
import { REST_TOKEN, restStore } from '../../support/rest-store.ts'

const THREE: Policy = { name: 'three', quota: 3, windowSeconds: 60 }

function guesses() {
  let now = 0
  const it = createGuesses(localLimiter({ monotonic: () => now }), THREE)
  const begin = async (client = 'a') => {
    const attempt = await it.admit(client)
    if (!('settle' in attempt)) throw new Error('refused')
    return attempt
  }
  const pass = (ms: number) => {
    now += ms
  }
  return { ...it, begin, pass }
}

/** Whether a promise has settled once everything that was ready has run. */
async function isDone(promise: Promise<unknown>): Promise<boolean> {
  let done = false
  void promise.then(() => {
    done = true
  })
  for (let n = 0; n < 10; n += 1) await Promise.resolve()
  return done
}

test('as many are looked at as may be wrong, the next waits, and a right one lets it in', async () => {
  const it = guesses()
  const first = await it.begin()
  await it.begin()
  await it.begin()
  const fourth = it.admit('a')
  expect(await isDone(fourth)).toBe(false)
  expect(await isDone(it.begin('b'))).toBe(true)
  first.settle(false)
  expect(await isDone(fourth)).toBe(true)
  expect(await fourth).toMatchObject({ allowed: true })
})

test('a wrong guess uses up its slot: waiting guesses are refused once no slot is left', async () => {
  const it = guesses()
  const attempts = [await it.begin(), await it.begin(), await it.begin()]
  const waiting = [it.admit('a'), it.admit('a')]
  for (const attempt of attempts) attempt.settle(true)
  for (const verdict of await Promise.all(waiting))
    expect(verdict).toMatchObject({ allowed: false, retry: 20_000_000, policy: THREE })
  it.pass(19_999)
  expect(it.look('a').allowed).toBe(false)
  it.pass(1)
  expect(it.look('a').allowed).toBe(true)
})

test('one wrong guess that uses up the quota refuses all that wait for it', async () => {
  const it = guesses()
  for (let n = 0; n < 2; n += 1) (await it.begin()).settle(true)
  const last = await it.begin()
  const waiting = Array.from({ length: 5 }, () => it.admit('a'))
  last.settle(true)
  expect(await isDone(Promise.all(waiting))).toBe(true)
  expect((await Promise.all(waiting)).map(({ allowed }) => allowed)).toEqual(Array(5).fill(false))
})

test('only the first verdict on an attempt counts', async () => {
  const it = guesses()
  const wrong = await it.begin()
  wrong.settle(true)
  wrong.settle(true)
  wrong.settle(false)
  const right = await it.begin()
  right.settle(false)
  right.settle(true)
  expect(it.look('a')).toMatchObject({ allowed: true, remaining: 1 })
})

test('every place comes back: a thousand right ones after each other wait for nothing', async () => {
  const it = guesses()
  for (let n = 0; n < 1000; n += 1) (await it.begin()).settle(false)
  expect(it.look('a')).toMatchObject({ allowed: true, remaining: 2 })
  const two = [await it.begin(), await it.begin('b')]
  expect(it.size()).toBe(2)
  for (const attempt of two) attempt.settle(false)
  expect(it.size()).toBe(0)
})

test('a look counts nothing, however often', () => {
  const it = guesses()
  for (let n = 0; n < 10; n += 1) expect(it.look('a')).toMatchObject({ allowed: true, remaining: 2 })
})

test('every policy has a name, a window, and a quota that the configured threshold may change; none raises that of wrong secrets', () => {
  const policies = [undefined, 19, 29, 31, 1000].map((perMinute) => Object.values(policiesOf(perMinute)))
  const rows = Object.values(policiesOf()).map(({ name, windowSeconds }, index) => {
    const same = policies.map((all) => all[index]).filter((one) => one?.name === name)
    return [name, windowSeconds, ...same.map((one) => one?.quota)]
  })
  expect(rows).toEqual([
    ['default', 60, 300, 19, 29, 31, 1000],
    ['subscribe', 60, 30, 19, 29, 30, 30],
    ['confirmations', 86_400, 1000, 1000, 1000, 1000, 1000],
    ['unsubscribe', 60, 6000, 6000, 6000, 6000, 6000],
    ['feedback', 60, 6000, 6000, 6000, 6000, 6000],
    ['auth-failure', 60, 20, 19, 20, 20, 20],
    ['auth-failure-proxy', 60, 200, 19, 29, 31, 200],
  ])
})

test('a returned token can be spent again, and returning one for an unknown client changes nothing', () => {
  const limiter = localLimiter({ monotonic: () => 0 })
  for (let n = 0; n < 3; n += 1) limiter.take(THREE, 'a')
  expect(limiter.take(THREE, 'a').allowed).toBe(false)
  limiter.giveBack(THREE, 'a')
  expect(limiter.take(THREE, 'a').allowed).toBe(true)
  expect(limiter.take(THREE, 'a').allowed).toBe(false)
  limiter.giveBack(THREE, 'b')
  expect(limiter.size()).toBe(1)
  expect(limiter.take(THREE, 'b')).toMatchObject({ allowed: true, remaining: 2 })
})

test('policies of two names are counted apart', () => {
  const limiter = localLimiter({ monotonic: () => 0 })
  for (let n = 0; n < 3; n += 1) limiter.take(THREE, 'a')
  expect(limiter.take({ ...THREE, name: 'other' }, 'a').allowed).toBe(true)
})

test('the fields round up, so that no client retries too early', () => {
  const fields = (retry: number, reset: number) =>
    rateLimitFields({ allowed: false, remaining: 0, reset, retry, policy: THREE })
  expect(fields(1, 1_000_001)).toEqual({
    RateLimit: '"three";r=0;t=2',
    'RateLimit-Policy': '"three";q=3;w=60',
    'Retry-After': '1',
  })
  expect(fields(1_000_000, 1_000_000)['Retry-After']).toBe('1')
  expect(fields(1_000_001, 0)['Retry-After']).toBe('2')
  expect(
    rateLimitFields({ allowed: true, remaining: 2, reset: 0, retry: 0, policy: THREE }),
  ).not.toHaveProperty('Retry-After')
})

test.each([
  [1, 1],
  [3, 1],
  [11, 5],
])(
  'with the shared store down a quota of %i counts as %i here, and one warning says so',
  async (quota, half) => {
    const warned: string[] = []
    const slept: boolean[] = []
    const clock: Clock = {
      ...systemClock,
      monotonic: () => 0,
      sleep: (_, signal) =>
        new Promise((_resolve, reject) =>
          signal?.addEventListener('abort', () => {
            slept.push(signal.aborted)
            reject(signal.reason)
          }),
        ),
    }
    const log = { ...silentLog, warn: (event: string) => void warned.push(event) }
    const limiter = withFallback(
      { clock, log },
      {
        take: () => Promise.reject(new Error('down')),
        close: async () => {},
      },
    )
    let passed = 0
    while ((await limiter.take({ ...THREE, quota }, 'a')).allowed) passed += 1
    expect([passed, limiter.counting(), warned]).toEqual([half, 'fallback', ['limiter_fallback']])
    await limiter.close()
    // Closed, it leaves no timer behind.
    expect(slept).toEqual([true])
  },
)

test('a refusal by the shared store uses up nothing of the local count in front of it', async () => {
  let allowed = false
  const limiter = withFallback(
    { clock: { ...systemClock, monotonic: () => 0 }, log: silentLog },
    {
      take: async (policy) => ({ allowed, remaining: 0, reset: 0, retry: 1, policy }),
      close: async () => {},
    },
  )
  for (let n = 0; n < 10; n += 1)
    expect(await limiter.take(THREE, 'a')).toMatchObject({ allowed: false, retry: 1 })
  allowed = true
  const taken = [1, 2, 3, 4].map(async () => (await limiter.take(THREE, 'a')).allowed)
  expect(await Promise.all(taken)).toEqual([true, true, true, false])
  await limiter.close()
})

test('an answer of the shared store leaves no timer behind', async () => {
  const store = await restStore(async () => ({ result: [1, 9, 1, 0] }))
  const counter = sharedCounter(store.url, secret(REST_TOKEN), 60_000)
  const timers = () => process.getActiveResourcesInfo().filter((name) => name === 'Timeout').length
  await counter.take(THREE, 'a')
  const before = timers()
  for (let n = 0; n < 20; n += 1) await counter.take(THREE, 'a')
  expect(timers()).toBeLessThan(before + 10)
  await counter.close()
})
