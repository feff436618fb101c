import { expect, test } from 'vitest'
import { isLoopback, isNearby, untrustedClient } from '../../../src/core/access/client.ts'
import { createProxyWatch } from '../../../src/core/access/proxy-watch.ts'
import { silentLog } from '../../../src/core/log.ts'

const HOUR = 60 * 60 * 1000

function watch(trustProxy: readonly string[] = []) {
  let now = 0
  const warned: string[] = []
  const proxies = createProxyWatch({
    trustProxy,
    clock: { monotonic: () => now },
    log: { ...silentLog, warn: (event) => void warned.push(event) },
  })
  const note = (socket: string | undefined, forwarded: string | null) => proxies.note({ socket, forwarded })
  const pass = (ms: number) => {
    now += ms
  }
  return { note, seen: proxies.seen, warned, pass }
}

test('a machine nearby that forwards for two clients is a proxy, noticed for an hour and said once', () => {
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

test.each([
  ['127.0.0.1', true, true],
  ['127.255.255.255', true, true],
  ['128.0.0.1', false, false],
  ['126.255.255.255', false, false],
  ['::1', true, true],
  ['::ffff:127.0.0.1', true, true],
  ['::2', false, false],
  ['10.255.255.255', false, true],
  ['11.0.0.0', false, false],
  ['172.15.255.255', false, false],
  ['172.16.0.0', false, true],
  ['172.31.255.255', false, true],
  ['172.32.0.0', false, false],
  ['192.168.255.255', false, true],
  ['192.169.0.0', false, false],
  ['100.63.255.255', false, false],
  ['100.64.0.0', false, true],
  ['100.127.255.255', false, true],
  ['100.128.0.0', false, false],
  ['fc00::1', false, true],
  ['fdff::1', false, true],
  ['fe00::1', false, false],
  ['fe80::1%eth0', false, true],
  ['febf::1', false, true],
  ['fec0::1', false, false],
  ['nonsense', false, false],
  ['', false, false],
])('%s is this machine: %s, and nearby: %s', (address, loopback, nearby) => {
  expect([isLoopback(address), isNearby(address)]).toEqual([loopback, nearby])
})

test('without a socket nobody is this machine', () => {
  expect(isLoopback(undefined)).toBe(false)
})
