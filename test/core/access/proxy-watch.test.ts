import { expect, test } from 'vitest'
import { createProxyWatch, untrustedClient } from '../../../src/core/access/client.ts'
import { silentLog, systemClock } from '../../../src/core/host.ts'

const HOUR = 60 * 60 * 1000

function watch(trustProxy: readonly string[] = []) {
  let now = 0
  const warned: string[] = []
  const proxies = createProxyWatch(
    {
      clock: { ...systemClock, monotonic: () => now },
      log: { ...silentLog, warn: (event) => void warned.push(event) },
    },
    trustProxy,
  )
  const note = (socket: string | undefined, forwarded: string | null) => proxies.note({ socket, forwarded })
  const pass = (ms: number) => {
    now += ms
  }
  return { note, seen: proxies.seen, warned, pass }
}

test('detects a nearby machine that forwards for two clients as a proxy, for an hour, and logs it once', () => {
  const it = watch()
  it.note('10.0.0.1', '203.0.113.1')
  it.note('10.0.0.1', '203.0.113.1')
  expect(it.seen()).toBe(false)
  it.note('10.0.0.1', '203.0.113.2')
  it.note('10.0.0.1', '203.0.113.3')
  expect([it.seen(), it.warned]).toEqual([true, ['proxy_not_trusted']])
  it.pass(HOUR - 1)
  expect(it.seen()).toBe(true)
  it.pass(1)
  expect(it.seen()).toBe(false)
  it.note('10.0.0.1', '203.0.113.2')
  expect([it.seen(), it.warned]).toEqual([true, ['proxy_not_trusted', 'proxy_not_trusted']])
  // While it goes on forwarding it stays seen, and nothing new is logged.
  for (let hour = 0; hour < 5; hour += 1) {
    it.pass(HOUR - 1)
    it.note('10.0.0.1', '203.0.113.2')
    expect([it.seen(), it.warned.length]).toEqual([true, 2])
  }
})

test('a proxy beside those that TRUST_PROXY names is detected as one while it names none', () => {
  const it = watch(['10.0.0.1'])
  for (const client of ['203.0.113.1', '203.0.113.2', '203.0.113.3']) it.note('10.0.0.2', client)
  expect([it.seen(), it.warned]).toEqual([true, ['proxy_not_trusted']])
})

test.each<[why: string, socket: string | undefined, forwarded: string | null, trust?: readonly string[]]>([
  ['a stranger on the network', '198.51.100.1', '203.0.113.2'],
  ['a request without the header', '10.0.0.1', null],
  ['a header that holds no address', '10.0.0.1', 'unknown'],
  ['a host that passes no socket on', undefined, '203.0.113.2'],
  ['a proxy, when proxies are configured', '10.0.0.1', '203.0.113.2', ['10.0.0.1']],
])('%s is not taken for a proxy', (_, socket, forwarded, trust) => {
  const it = watch(trust)
  for (const client of ['203.0.113.1', forwarded]) it.note(socket, forwarded === null ? null : client)
  it.note(socket, forwarded)
  expect([it.seen(), it.warned]).toEqual([false, []])
})

test('the client that an unknown proxy names is the last address, by prefix', () => {
  const clientOf = untrustedClient([])
  expect(clientOf({ socket: '10.0.0.1', forwarded: '1.1.1.1, 203.0.113.9' })).toBe('203.0.113.9')
  expect(clientOf({ socket: '10.0.0.1', forwarded: '203.0.113.9' })).toBe('203.0.113.9')
  expect(clientOf({ socket: '10.0.0.1', forwarded: '[2001:db8:1:2aa::1]:80' })).toBe('2001:db8:1:200::/56')
  expect(clientOf({ socket: '10.0.0.1', forwarded: '203.0.113.9, x' })).toBeUndefined()
})
