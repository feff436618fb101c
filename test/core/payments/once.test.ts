import { createHmac } from 'node:crypto'
import fc from 'fast-check'
import { expect, onTestFinished, test, vi } from 'vitest'
import { silentLog, systemClock } from '../../../src/core/host.ts'
import { openCheckout } from '../../../src/core/payments/checkout.ts'
import { handlePaymentEvent, type OnPaymentEvent, readSignature } from '../../../src/core/payments/webhook.ts'
import { secret } from '../../../src/core/secret.ts'
import { pairOf } from '../../support/accounts.ts'
import { anyText } from '../../support/any-text.ts'
import { serve } from '../../support/servers.ts'
import { standingClock } from '../../support/standing-clock.ts'
import { openTestStore } from '../../support/stores.ts'

const NOW = Date.parse('2026-11-21T08:00:00Z')
const SECONDS = NOW / 1000
const KEY = 'whsec_of-thirty-two-bytes-at-least'
const hex = (body: string, key = KEY, time: number | string = SECONDS) =>
  createHmac('sha256', key).update(`${time}.${body}`).digest('hex')
const sign = (body: string, time: number | string = SECONDS, key = KEY) =>
  `t=${time},v1=${hex(body, key, time)}`
const check = (body: string, header: string, key = KEY) => {
  const signature = readSignature(header)
  return (signature?.fits(body, pairOf(key)) && signature.isRecent(NOW)) ?? false
}
const TWO = 'new-secret-value,old-secret-value'

test('a signature fits its own body at any time within five minutes, and no later', () => {
  fc.assert(
    fc.property(anyText(), fc.integer({ min: -1000, max: 1000 }), (body, offset) => {
      const seconds = SECONDS + offset
      expect(check(body, sign(body, seconds))).toBe(Math.abs(offset) <= 300)
    }),
  )
})

test('a signature fits no other body, key or header', () => {
  fc.assert(
    fc.property(
      fc.string(),
      fc.string(),
      fc.nat(),
      fc.string({ minLength: 1, maxLength: 1 }),
      (body, other, at, char) => {
        const header = sign(body, SECONDS)
        if (other !== body) expect(check(other, header)).toBe(false)
        expect(check(body, sign(body, SECONDS, `${KEY}${char}`))).toBe(false)
        const place = at % header.length
        const changed = header.slice(0, place) + char + header.slice(place + 1)
        // Hex may be written in either case; any other change is another signature.
        if (changed.toLowerCase() !== header.toLowerCase()) expect(check(body, changed)).toBe(false)
      },
    ),
  )
})

test('a header of any form is looked at without a fault', () => {
  fc.assert(
    fc.property(fc.string(), fc.string(), (body, header) => {
      expect(check(body, header)).toBe(false)
    }),
  )
})

test('the eighth signature of a header is looked at, and the ninth is not', () => {
  const bad = `v1=${'0'.repeat(64)},`
  expect(check('b', `t=${SECONDS},${bad.repeat(7)}v1=${hex('b')}`)).toBe(true)
  expect(check('b', `t=${SECONDS},${bad.repeat(8)}v1=${hex('b')}`)).toBe(false)
})

test('a signature of either of two secrets is good, written in either case, and of a third is not', () => {
  expect(check('b', `t=${SECONDS},v1=${hex('b', 'old-secret-value')}`, TWO)).toBe(true)
  expect(check('b', `t=${SECONDS},v1=${hex('b', 'new-secret-value').toUpperCase()}`, TWO)).toBe(true)
  expect(check('b', `t=${SECONDS},v1=${hex('b', 'third-secret')}`, TWO)).toBe(false)
})

test.each(['-1', '1e9', `${SECONDS}.0`, '', ' ', '9'.repeat(13), `0x${SECONDS.toString(16)}`])(
  'the time %j is none, signed or not',
  (time) => {
    expect(check('b', sign('b', time))).toBe(false)
  },
)

async function events() {
  const store = await openTestStore(undefined)
  const time = { now: NOW }
  const steps = standingClock(0)
  const warned: string[] = []
  const handle = (onEvent: OnPaymentEvent | undefined, id = 'evt_1') =>
    handlePaymentEvent(
      {
        clock: { ...systemClock, now: () => time.now },
        timer: steps.clock,
        log: { ...silentLog, error: (event) => void warned.push(event) },
      },
      { id, type: 't', createdAt: NOW, data: {} },
      store.paymentEvents,
      onEvent,
    )
  /** Lets time pass in steps that are shorter than a claim. */
  async function pass(ms: number) {
    for (let left = ms; left > 0; left -= 10_000) {
      time.now += 10_000
      steps.pass(10_000)
      for (let turns = 0; turns < 20; turns += 1) await new Promise((resolve) => setImmediate(resolve))
    }
  }
  return { handle, time, warned, store, pass }
}

test('hands out an event again a minute after a crash, and not before', async () => {
  const it = await events()
  await it.store.paymentEvents.claim({ id: 'evt_1', type: 't', now: NOW, leaseMs: 60_000 })
  it.time.now = NOW + 59_999
  expect(await it.handle(undefined)).toBe('busy')
  it.time.now = NOW + 60_000
  expect(await it.handle(undefined)).toBe('handled')
  expect(await it.handle(undefined)).toBe('known')
})

test('an event is not handed out again while it is being handled, unless that takes a quarter of an hour', async () => {
  const it = await events()
  const begun: PromiseWithResolvers<void>[] = []
  const slow = () => {
    begun.push(Promise.withResolvers<void>())
    return begun.at(-1)?.promise
  }
  const first = it.handle(slow)
  await it.pass(14 * 60_000)
  expect(await it.handle(slow)).toBe('busy')
  await it.pass(3 * 60_000)
  const second = it.handle(slow)
  await it.pass(2 * 60_000)
  expect(begun).toHaveLength(2)
  for (const one of begun) one.resolve()
  expect([await first, await second]).toEqual(['handled', 'handled'])
  expect(await it.handle(slow)).toBe('known')
})

test('an event whose handler failed after minutes is handed out again at once', async () => {
  const it = await events()
  const slow = Promise.withResolvers<void>()
  const first = it.handle(() => slow.promise)
  await it.pass(2 * 60_000)
  slow.reject(new Error('no'))
  await expect(first).rejects.toMatchObject({ code: 'unavailable' })
  await it.pass(10_000)
  expect(await it.handle(undefined)).toBe('handled')
})

/** A checkout over an API that answers what it is told to, and remembers the keys it was asked under. */
async function checkout(answer?: { status: number; body: string }, heard = () => {}) {
  const keys: unknown[] = []
  const apiUrl = await serve((request, response) => {
    keys.push(request.headers['idempotency-key'])
    request.resume().on('end', () => {
      if (answer) response.writeHead(answer.status).end(answer.body)
      else heard()
    })
  })
  const time = { now: NOW }
  const opened = openCheckout(
    { clock: { ...systemClock, now: () => time.now }, log: silentLog },
    {
      secretKey: secret('sk_test_x'),
      publishableKey: undefined,
      webhookSecret: pairOf(KEY),
      apiUrl,
      prices: { 'pro-monthly': 'price_a' },
    },
    'https://www.example.com',
  )
  onTestFinished(() => opened.close())
  const open = (price = 'pro-monthly') =>
    opened.open({ kind: 'person', subject: 'ada', email: 'ada@example.com' }, price)
  return { open, keys, time }
}

const SESSION = { status: 200, body: JSON.stringify({ id: 'cs_1', url: 'https://pay.example.com/1' }) }

test('two clicks within ten minutes are one session, by its name or its id, and a later one is another', async () => {
  const it = await checkout(SESSION)
  const start = NOW - (NOW % 600_000)
  for (const at of [start, start + 599_999, start + 600_000]) {
    it.time.now = at
    await it.open()
  }
  it.time.now = start
  await it.open('price_a')
  expect(it.keys[1]).toBe(it.keys[0])
  expect(it.keys[2]).not.toBe(it.keys[0])
  expect(it.keys[3]).toBe(it.keys[0])
})

test.each(['pro', 'PRO-MONTHLY', 'price_b', '', '__proto__', 'constructor'])(
  'refuses the price %j without calling the provider',
  async (price) => {
    const it = await checkout(SESSION)
    expect(await it.open(price)).toBeUndefined()
    expect(it.keys).toEqual([])
  },
)

test('a payments API that is silent for ten seconds opens nothing', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
  onTestFinished(() => void vi.useRealTimers())
  const asked = Promise.withResolvers<void>()
  const it = await checkout(undefined, asked.resolve)
  let fault: unknown
  const opening = it.open().catch((error: unknown) => {
    fault = error
  })
  await asked.promise
  await vi.advanceTimersByTimeAsync(9_000)
  expect(fault).toBeUndefined()
  await vi.advanceTimersByTimeAsync(1_000)
  await opening
  expect(fault).toMatchObject({ code: 'unavailable' })
})

test.each([
  ['another success', 201, SESSION.body],
  ['no content', 204, ''],
  ['a redirect', 302, SESSION.body],
  ['a refusal', 402, SESSION.body],
  ['an id that is no text', 200, JSON.stringify({ id: 7, url: 'https://pay.example.com' })],
  ['no address', 200, JSON.stringify({ id: 'cs_1' })],
  ['an address of another kind', 200, JSON.stringify({ id: 'cs_1', url: 'data:text/html,x' })],
  ['null', 200, 'null'],
])('an answer with %s opens nothing and says nothing of it', async (_, status, body) => {
  const it = await checkout({ status, body })
  await expect(it.open()).rejects.toMatchObject({
    code: 'unavailable',
    message: expect.stringContaining('nothing was charged'),
  })
})
