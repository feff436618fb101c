import { expect, test } from 'vitest'
import { watchClock } from '../../src/daemon/clock-watch.ts'
import { hostAt } from '../support/incidents.ts'
import { opened } from '../support/opened.ts'
import { behindProxy } from '../support/proxy.ts'
import { serve } from '../support/servers.ts'

const NOW = Date.UTC(2026, 10, 22)

/** How far ahead the watch finds this machine, given by how many seconds each server's clock is behind it. */
function heard(behind: Readonly<Record<string, number>>, laterMs = 0) {
  let monotonic = 0
  const host = hostAt(() => NOW)
  const watch = watchClock(
    { ...host, timer: { ...host.timer, monotonic: () => monotonic } },
    new Set(['own.example']),
  )
  // A Date has no part of a second.
  for (const [name, seconds] of Object.entries(behind)) watch.note(name, NOW - seconds * 1000 - 500)
  monotonic += laterMs
  return watch.aheadMs()
}

test('the clock is as far ahead as it is of the server in the middle, so that one that lies changes nothing', () => {
  expect(heard({ a: 60, b: 61, c: 62 })).toBe(61_000)
  expect(heard({ a: 0, b: 1, liar: 86_400 })).toBe(1000)
  expect(heard({ a: 60, b: 61, liar: -86_400 })).toBe(60_000)
  // Two in the middle, or two alone: as far as they agree.
  expect(heard({ a: 0, b: 0, c: 60, d: 60 })).toBe(0)
  expect(heard({ a: -60, b: -60, c: 0, d: 0 })).toBe(0)
  expect(heard({ a: 60, b: 61 })).toBe(60_000)
  expect(heard({ a: -61, b: -60 })).toBe(-60_000)
  expect(heard({ a: 60, b: -60 })).toBe(0)
  expect(heard({ a: 1, liar: 60 })).toBe(1000)
})

test('a single server, or what they said ten minutes ago, say nothing', () => {
  expect(heard({ a: 60 })).toBeUndefined()
  expect(heard({ a: 60, b: 60, c: 60 }, 600_000)).toBe(60_000)
  expect(heard({ a: 60, b: 60, c: 60 }, 600_001)).toBeUndefined()
})

test('services of this machine have its own clock, and an answer without a Date has none', () => {
  expect(heard({ 'own.example': 60, '127.0.0.1': 60, '::1': 60, a: 60 })).toBeUndefined()
  expect(heard({ a: 60, b: Number.NaN })).toBeUndefined()
})

test('a deep check compares the clock with those of the servers that it asks', async () => {
  const hourAgo = new Date(Date.now() - 3_600_000).toUTCString()
  const { env } = await behindProxy(await serve((_, response) => response.setHeader('Date', hourAgo).end()))
  const { platform } = opened({
    env: {
      ...env,
      NEXT_PUBLIC_DATASTORE_URL: 'http://data.example',
      NEXT_PUBLIC_DATASTORE_ANON_KEY: 'anon-key-of-the-data-store',
      PAYMENTS_SECRET_KEY: 'sk_test_0123456789abcdef',
      PAYMENTS_WEBHOOK_SECRET: 'whsec_0123456789abcdef',
      PAYMENTS_PRICE_PRO_MONTHLY: 'price_0123456789',
      PAYMENTS_API_URL: 'http://pay.example',
    },
  })
  await platform.health('web', { deep: true })
  expect(platform.clockWatch.aheadMs()).toBeCloseTo(3_600_000, -4)
})
