import { expect, test } from 'vitest'
import { de } from '../../../src/core/messages/de.ts'
import { en } from '../../../src/core/messages/en.ts'
import { latencies, percent } from '../../../src/daemon/pages/status/format.ts'
import { mailSection } from '../../../src/daemon/pages/status/mail.ts'

test.each([
  [1, '100 %'],
  [0.999_999_9, '99.99 %'],
  [0.999_96, '99.99 %'],
  [0.9999, '99.99 %'],
  [0.999_899, '99.98 %'],
  [0.5, '50.00 %'],
  [0.000_05, '0.00 %'],
  [0, '0.00 %'],
  [undefined, '–'],
])('an uptime of %s reads %s: never better than it was', (uptime, text) => {
  expect(percent(uptime, en)).toBe(text)
})

test.each([
  [{ count: 3, p50: 1, p95: 9.94, p99: 10 }, '1.0 · 9.9 · 10 ms'],
  [{ count: 3, p50: 0.04, p95: 99.4, p99: 9999 }, '0.0 · 99 · 9999 ms'],
  [{ count: 3, p50: 100, p95: 9999, p99: 10_000 }, '0.1 · 10.0 · 10 s'],
])('%j reads %s', (latency, text) => {
  expect(latencies(latency, en)).toBe(text)
})

test('no latency is a dash', () => {
  expect(latencies(undefined, en)).toBe('–')
})

test('a German page writes decimals with a comma', () => {
  expect(percent(0.94101, de)).toBe('94,10 %')
  expect(latencies({ count: 3, p50: 1, p95: 9.94, p99: 10 }, de)).toBe('1,0 · 9,9 · 10 ms')
  const days = [{ day: '2026-11-22', sent: 1001, hardBounces: 0, softBounces: 3, complaints: 1 }]
  const html = mailSection({ days, holds: [] }, de)
  expect([...new Set(html.match(/[\d,.]+ %/g))]).toEqual(['0 %', '5 %', '0,100 %', '0,3 %', '0,30 %'])
})
