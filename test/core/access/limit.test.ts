import { createHash } from 'node:crypto'
import fc from 'fast-check'
import { expect, onTestFinished, test } from 'vitest'
import {
  interval,
  localLimiter,
  type Policy,
  rateLimitFields,
  takeOne,
} from '../../../src/core/access/limit/limiter.ts'
import { openLimiter, sharedCounter, withFallback } from '../../../src/core/access/limit/open.ts'
import { type Clock, silentLog } from '../../../src/core/host.ts'
import { secret } from '../../../src/core/secret.ts'
import { arrivalStore, REST_TOKEN, restStore } from '../../support/rest-store.ts'

/** The count of a shared store; it is closed with the test. */
function counterOn(url: string) {
  const counter = sharedCounter(url, secret(REST_TOKEN), 10_000)
  onTestFinished(() => counter.close())
  return counter
}

const TEN: Policy = { name: 'ten', quota: 10, windowSeconds: 60 }

test('no span of a window, wherever it begins, lets more than twice the quota through, and a minute after silence the quota', () => {
  fc.assert(
    fc.property(
      fc.record({
        quota: fc.integer({ min: 1, max: 500 }),
        windowSeconds: fc.integer({ min: 1, max: 3600 }),
      }),
      fc.array(fc.integer({ min: 0, max: 4_000_000 }), { minLength: 1, maxLength: 300 }),
      (limits, gaps) => {
        const policy = { name: 'any', ...limits }
        const window = policy.windowSeconds * 1_000_000
        const passed: number[] = []
        let [now, arrival] = [0, undefined as number | undefined]
        for (const gap of gaps) {
          now += gap
          const taken = takeOne(arrival, now, policy)
          arrival = taken.arrival
          if (taken.allowed) passed.push(now)
          else {
            expect(takeOne(arrival, now + taken.retry - 1, policy).allowed).toBe(false)
            expect(takeOne(arrival, now + taken.retry, policy).allowed).toBe(true)
          }
          expect(takeOne(arrival, now + taken.reset, policy).remaining).toBe(policy.quota - 1)
          expect(taken.remaining).toBeGreaterThanOrEqual(0)
          expect(taken.remaining).toBeLessThan(policy.quota)
        }
        for (const [index, start] of passed.entries()) {
          const within = passed.slice(index).filter((time) => time - start <= window).length
          expect(within).toBeLessThanOrEqual(policy.quota + Math.floor(window / interval(policy)) + 1)
        }
      },
    ),
  )
})

test('a client may use its quota in one burst, and it refills steadily', () => {
  let now = 0
  const limiter = localLimiter({ monotonic: () => now })
  const spend = () => {
    let passed = 0
    while (limiter.take(TEN, 'a').allowed) passed += 1
    return passed
  }
  expect(spend()).toBe(10)
  expect(limiter.take(TEN, 'a')).toMatchObject({ allowed: false, remaining: 0, retry: 6_000_000 })
  expect(limiter.take(TEN, 'b').allowed).toBe(true)
  now += 18_000
  expect(spend()).toBe(3)
  now += 60_000
  expect(spend()).toBe(10)
})

test('the fields say what is left, and when to come back', () => {
  const limiter = localLimiter({ monotonic: () => 0 })
  const first = limiter.take(TEN, 'a')
  expect(first).toEqual({ allowed: true, remaining: 9, reset: 6_000_000, retry: 0, policy: TEN })
  expect(rateLimitFields(first)).toEqual({
    RateLimit: '"ten";r=9;t=6',
    'RateLimit-Policy': '"ten";q=10;w=60',
  })
  for (let n = 0; n < 9; n += 1) limiter.take(TEN, 'a')
  expect(rateLimitFields(limiter.take(TEN, 'a'))).toEqual({
    RateLimit: '"ten";r=0;t=60',
    'RateLimit-Policy': '"ten";q=10;w=60',
    'Retry-After': '6',
  })
})

test('a new client clears away two of the oldest that have expired, and none that has not', () => {
  let now = 0
  const limiter = localLimiter({ monotonic: () => now })
  for (let n = 0; n < 5; n += 1) limiter.take(TEN, `early-${n}`)
  now += 6000
  limiter.take(TEN, 'on the dot')
  expect(limiter.size()).toBe(4)
  limiter.take(TEN, 'next')
  expect(limiter.size()).toBe(3)
  // Known already: nothing is cleared for it.
  limiter.take(TEN, 'next')
  expect(limiter.size()).toBe(3)
})

test('memory is bounded: expired clients go as others come, and a flood pushes the oldest out', () => {
  let now = 0
  const limiter = localLimiter({ monotonic: () => now }, 100)
  for (let n = 0; n < 1000; n += 1) limiter.take(TEN, `flood-${n}`)
  expect(limiter.size()).toBe(100)
  now += 61_000
  for (let n = 0; n < 100; n += 1) limiter.take(TEN, `later-${n}`)
  expect(limiter.size()).toBeLessThanOrEqual(100)
  now += 61_000
  for (let n = 0; n < 60; n += 1) limiter.take(TEN, `last-${n}`)
  expect(limiter.size()).toBe(60)
})

/** Time that only moves when told to; sleepers wake when it does. */
function steppedClock() {
  const sleepers: (() => void)[] = []
  const clock: Clock = {
    now: () => 0,
    monotonic: () => 0,
    sleep: (_, signal) =>
      new Promise((resolve, reject) => {
        sleepers.push(resolve)
        signal?.addEventListener('abort', () => reject(signal.reason), { once: true })
      }),
  }
  return {
    clock,
    sleeping: () => sleepers.length,
    wake: () => {
      for (const resolve of sleepers.splice(0)) resolve()
    },
  }
}

async function shared(timeoutMs = 10_000) {
  const store = await restStore(arrivalStore(() => 1_000_000))
  const events: string[] = []
  const stepped = steppedClock()
  const keep = (event: string) => void events.push(event)
  const log = { ...silentLog, info: keep, warn: keep }
  const open = (token = REST_TOKEN) => {
    const clock = { ...stepped.clock, monotonic: () => 0 }
    const limiter = withFallback({ clock, log }, sharedCounter(store.url, secret(token), timeoutMs))
    onTestFinished(() => limiter.close())
    return limiter
  }
  return { store, events, keep, open, ...stepped }
}

test('two machines on one shared store share one count', async () => {
  const { open, store } = await shared()
  const [one, two] = [open(), open()]
  for (let n = 0; n < 5; n += 1) {
    expect((await one.take(TEN, '192.0.2.1')).allowed).toBe(true)
    expect((await two.take(TEN, '192.0.2.1')).allowed).toBe(true)
  }
  const refused = await two.take(TEN, '192.0.2.1')
  expect(refused).toEqual({ allowed: false, remaining: 0, reset: 60_000_000, retry: 6_000_000, policy: TEN })
  expect((await two.take(TEN, '192.0.2.2')).allowed).toBe(true)
  expect(store.commands.filter((name) => name === 'EVAL')).toHaveLength(1)
  expect(one.counting()).toBe('shared')
})

test.each(['slow', 'broken', 'down'] as const)(
  'a shared store that is %s causes one warning and half the quota until it recovers, and again the next time',
  async (state) => {
    const it = await shared(state === 'slow' ? 500 : 10_000)
    const limiter = it.open()
    it.store.become(state)
    let passed = 0
    while ((await limiter.take(TEN, 'a')).allowed) passed += 1
    expect(passed).toBe(5)
    expect(it.events).toEqual(['limiter_fallback'])
    expect(limiter.counting()).toBe('fallback')
    // Only the first caller waited for it.
    expect(it.store.commands.length).toBe(1)

    // Still not well at the first look, well at the second.
    it.wake()
    await expect.poll(() => it.store.commands.length).toBe(2)
    await expect.poll(it.sleeping).toBe(1)
    expect(limiter.counting()).toBe('fallback')
    it.store.become('well')
    // On a slow machine it may take more than one look.
    const look = () => {
      it.wake()
      return limiter.counting()
    }
    await expect.poll(look).toBe('shared')
    expect(it.events).toEqual(['limiter_fallback', 'limiter_shared'])
    expect((await limiter.take(TEN, 'a')).policy.quota).toBe(10)
    it.store.become(state)
    expect((await limiter.take(TEN, 'a')).policy.quota).toBe(5)
    expect(it.events).toEqual(['limiter_fallback', 'limiter_shared', 'limiter_fallback'])
  },
)

test('a shared store that answers but does not count is one warning, and does not come back every two seconds', async () => {
  const it = await shared()
  const answers = async ([name = '']: readonly string[]) =>
    name === 'PING' ? { result: 'PONG' } : { error: 'NOPERM this token may only read' }
  const store = await restStore(answers)
  const clock = { ...it.clock, monotonic: () => 0 }
  const log = { ...silentLog, info: it.keep, warn: it.keep }
  const limiter = withFallback({ clock, log }, sharedCounter(store.url, secret(REST_TOKEN), 10_000))
  onTestFinished(() => limiter.close())
  await limiter.take(TEN, 'a')
  for (const asked of [1, 2]) {
    await expect.poll(it.sleeping).toBe(1)
    it.wake()
    await expect.poll(() => store.commands.length).toBe(1 + asked)
  }
  await expect.poll(it.sleeping).toBe(1)
  expect(limiter.counting()).toBe('fallback')
  expect(it.events).toEqual(['limiter_fallback'])
})

test('a wrong token is a fallback, not a refusal of everybody', async () => {
  const it = await shared()
  expect((await it.open('another-token').take(TEN, 'a')).allowed).toBe(true)
  expect(it.events).toEqual(['limiter_fallback'])
})

test.each([[[1, 9, 1]], [[1, 9, 1, 0.5]], ['1 9 1 0'], [null]])(
  'a count of the form %j is a fault, not a decision',
  async (result) => {
    const store = await restStore(async () => ({ result }))
    const counter = counterOn(store.url)
    await expect(counter.take(TEN, 'a')).rejects.toThrow('the shared store did not run the script')
  },
)

test('an answer of 4,096 characters is read, and a longer one is a fault', async () => {
  let length = 0
  // Around the padding: {"result":[1,9,1,0],"padding":""}
  const store = await restStore(async () => ({ result: [1, 9, 1, 0], padding: 'x'.repeat(length - 33) }))
  const counter = counterOn(store.url)
  length = 4096
  await counter.take(TEN, 'a')
  length = 4097
  await expect(counter.take(TEN, 'a')).rejects.toThrow('too_large')
})

test('the script is named by its hash, and sent whole to a store that does not know it', async () => {
  const asked: (readonly string[])[] = []
  const store = await restStore(async (words) => {
    asked.push(words)
    return words[0] === 'EVALSHA'
      ? { error: 'NOSCRIPT No matching script.' }
      : { result: [0, 0, 60_000_000, 7] }
  })
  const counter = counterOn(store.url)
  expect(await counter.take(TEN, '192.0.2.77')).toEqual({
    allowed: false,
    remaining: 0,
    reset: 60_000_000,
    retry: 7,
    policy: TEN,
  })
  const [[, hash, ...rest] = [], [, script = '', ...again] = []] = asked
  expect(asked.map(([name]) => name)).toEqual(['EVALSHA', 'EVAL'])
  expect(hash).toBe(createHash('sha1').update(script).digest('hex'))
  expect(script).toContain("redis.call('SET', KEYS[1]")
  expect(rest).toEqual([
    '1',
    expect.stringMatching(/^platformctl:limit:ten:[\w-]{22}$/),
    '6000000',
    '60000000',
  ])
  expect(again).toEqual(rest)
  expect(rest.join()).not.toContain('192.0.2.77')
  // Nor anything in which all addresses can be tried.
  expect(rest.join()).not.toContain(
    createHash('sha256').update('192.0.2.77').digest('base64url').slice(0, 22),
  )
})

test('while the shared store is down it is asked every two seconds, and no more once the limiter is closed', async () => {
  const waits: number[] = []
  const stepped = steppedClock()
  const store = await restStore(arrivalStore(() => 0))
  const limiter = openLimiter(
    {
      clock: {
        ...stepped.clock,
        sleep: (ms, signal) => {
          waits.push(ms)
          return stepped.clock.sleep(ms, signal)
        },
      },
      log: silentLog,
    },
    { url: store.url, token: secret('another-token') },
  )
  expect(limiter.counting()).toBe('shared')
  await limiter.take(TEN, 'a')
  expect([limiter.counting(), waits]).toEqual(['fallback', [2000]])
  await limiter.close()
  stepped.wake()
  expect(store.commands).toEqual(['EVALSHA'])
})

test('without a shared store nothing is asked of the network', () => {
  const limiter = openLimiter({ clock: steppedClock().clock, log: silentLog }, undefined)
  expect(limiter.take(TEN, 'a')).toMatchObject({ allowed: true })
  expect(limiter.counting()).toBe('local')
})
