import { expect, test } from 'vitest'
import { en } from '../../../src/core/messages/en.ts'
import type { Line } from '../../../src/core/status/summary.ts'
import { responseTimes } from '../../../src/daemon/pages/status/format.ts'

const HOUR = 60 * 60 * 1000
const NOW = Date.UTC(2026, 10, 22, 12, 30)
const THIS_HOUR = Date.UTC(2026, 10, 22, 12)

type Hour = Line['hours'][number]
const hour = (ago: number, p50: number, p95: number): Hour => ({ start: THIS_HOUR - ago * HOUR, p50, p95 })

/** The picture and the sentence for these hours. */
function drawn(
  hours: readonly Hour[],
  latency: object | undefined = { count: 9, p50: 9.96, p95: 9999, p99: 1 },
) {
  const html = responseTimes({ hours, lastDay: { latency } } as unknown as Line, NOW, en)
  const path = (name: string) => new RegExp(`class="${name}" d="([^"]*)"`).exec(html)?.[1]
  return { html, slow: path('t95'), usual: path('t50'), said: /<p>(.*)<\/p>/.exec(html)?.[1] }
}

test('hours are columns from left to right, the tallest for the slowest', () => {
  const { html, slow, usual } = drawn([hour(23, 5, 50), hour(1, 10, 100), hour(0, 0.1, 30)])
  expect(slow).toBe('M1.5 30v-15M89.5 30v-30M93.5 30v-9')
  // A column is at least one high.
  expect(usual).toBe('M1.5 30v-2M89.5 30v-3M93.5 30v-1')
  expect(html).toContain('viewBox="0 0 95 30"')
})

test('an hour of the day before is not drawn', () => {
  expect(drawn([hour(24, 5, 50), hour(0, 5, 50)]).slow).toBe('M93.5 30v-30')
})

test('an hour that is not drawn is not the slowest one either', () => {
  const { slow, said } = drawn([hour(24, 5, 900), hour(1, 5, 50), hour(0, 5, 25)])
  expect(slow).toBe('M89.5 30v-30M93.5 30v-15')
  expect(said).toContain('>11:00')
})

test('the sentence says the median, the 95th percentile and the slowest hour', () => {
  const at = (start: number) => new Date(start).toISOString()
  const { said } = drawn([hour(2, 1, 50), hour(1, 1, 60), hour(0, 1, 60)])
  expect(said).toContain('10.0 ms')
  expect(said).toContain('9999 ms')
  // Of two that are as slow, the first.
  expect(said).toContain(`<time datetime="${at(THIS_HOUR - HOUR)}">11:00`)
  expect(drawn([hour(1, 1, 2), hour(0, 1, 2)], { count: 1, p50: 10, p95: 10_000, p99: 1 }).said).toMatch(
    /10 ms.*10 s/,
  )
})

test('fewer than two hours, or none that was answered, show nothing', () => {
  expect(drawn([]).html).toBe('')
  expect(drawn([hour(0, 1, 2)]).html).toBe('')
  expect(
    responseTimes({ hours: [hour(1, 1, 2), hour(0, 1, 2)], lastDay: {} } as unknown as Line, NOW, en),
  ).toBe('')
})
