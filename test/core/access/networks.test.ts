import { expect, test } from 'vitest'
import { isLoopback, isNearby } from '../../../src/core/access/client.ts'
import { originPolicy } from '../../../src/daemon/http/respond.ts'

test.each([
  ['10.0.0.0', '10.255.255.255', '9.255.255.255', '11.0.0.0'],
  ['100.64.0.0', '100.127.255.255', '100.63.255.255', '100.128.0.0'],
  ['127.0.0.0', '127.255.255.255', '126.255.255.255', '128.0.0.0'],
  ['172.16.0.0', '172.31.255.255', '172.15.255.255', '172.32.0.0'],
  ['192.168.0.0', '192.168.255.255', '192.167.255.255', '192.169.0.0'],
  ['fc00::', 'fdff:ffff::1', 'fbff:ffff::1', 'fe00::1'],
  ['fe80::', 'febf:ffff::1', 'fe7f:ffff::1', 'fec0::'],
  ['::1', '::1', '::', '::2'],
])('counts the addresses from %s to %s as nearby, and none outside', (first, last, before, after) => {
  expect([before, first, last, after].map(isNearby)).toEqual([false, true, true, false])
})

test('an address is read without its port, brackets and zone, and only when nothing else is around it', () => {
  for (const address of ['10.0.0.1:80', '[fe80::1]', '[fe80::1]:80', 'fe80::1%eth0', '::ffff:10.0.0.1'])
    expect(isNearby(address), address).toBe(true)
  for (const address of [
    '10.0.0.1:80x',
    '10.0.0.1:',
    '[fe80::1]x',
    '[fe80::1]:',
    'x::ffff:10.0.0.1',
    '::ffff:10.0.0.1:80',
    'nonsense',
    '',
  ])
    expect(isNearby(address), address).toBe(false)
})

test('a request comes from this machine over either loopback, in any dress, and from no other address', () => {
  for (const here of ['127.0.0.0', '127.255.255.255', '::1', '::ffff:127.0.0.1'])
    expect(isLoopback(here)).toBe(true)
  for (const elsewhere of [
    '126.255.255.255',
    '128.0.0.0',
    '::',
    '::2',
    '10.0.0.1',
    'localhost',
    '',
    undefined,
  ])
    expect(isLoopback(elsewhere)).toBe(false)
})

test('until origins are configured any port of this machine may call, and nothing that only looks like it', () => {
  const may = originPolicy(undefined)
  for (const origin of [
    'http://localhost',
    'https://localhost:65535',
    'http://127.0.0.1:1',
    'http://[::1]:3000',
  ])
    expect(may(origin)).toBe(true)
  for (const origin of [
    'http://localhost.evil.example',
    'http://evil.example/http://localhost',
    'xhttp://localhost',
    'http://localhost:',
    'http://localhost:123456',
    'http://127.0.0.1.evil.example',
    'ftp://localhost',
    'null',
  ])
    expect(may(origin)).toBe(false)
})

test('once origins are configured only they may call, as they are written, and none does for an empty list', () => {
  const may = originPolicy(['https://www.example.com'])
  expect(may('https://www.example.com')).toBe(true)
  for (const origin of [
    'http://www.example.com',
    'https://www.example.com:443',
    'https://www.example.com/',
    'https://www.example.com.evil.example',
    'http://localhost',
    '*',
  ])
    expect(may(origin)).toBe(false)
  expect(originPolicy([])('http://localhost')).toBe(false)
})
