import { expect, test } from 'vitest'
import { latencies, percent } from '../../../src/daemon/pages/status/format.ts'

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
  expect(percent(uptime)).toBe(text)
})

test.each([
  [{ count: 3, p50: 1, p95: 9.94, p99: 10 }, '1.0 · 9.9 · 10 ms'],
  [{ count: 3, p50: 0.04, p95: 99.4, p99: 9999 }, '0.0 · 99 · 9999 ms'],
  [{ count: 3, p50: 100, p95: 9999, p99: 10_000 }, '0.1 · 10.0 · 10 s'],
])('%j reads %s', (latency, text) => {
  expect(latencies(latency)).toBe(text)
})

test('no latency is a dash', () => {
  expect(latencies(undefined)).toBe('–')
})
