import { expect, test } from 'vitest'
import { en } from '../../../src/core/messages/en.ts'
import type { Line } from '../../../src/core/status/summary.ts'
import { responseTimes } from '../../../src/daemon/pages/status/format.ts'

const HOUR = 60 * 60 * 1000
const NOW = Date.UTC(2026, 10, 22, 12, 30)
const THIS_HOUR = Date.UTC(2026, 10, 22, 12)

type Hour = Line['hours'][number]
const hour = (ago: number, p50: number, p95: number): Hour => ({ start: THIS_HOUR - ago * HOUR, p50, p95 })

/** The picture of these hours, its legend and its scale. */
function drawn(
  hours: readonly Hour[],
  latency: object | undefined = { count: 9, p50: 9.96, p95: 9999, p99: 1 },
) {
  const html = responseTimes({ service: 'web', hours, lastDay: { latency } } as unknown as Line, NOW, en)
  const path = (name: string) => new RegExp(`path class="${name}" d="([^"]*)"`).exec(html)?.[1]
  const legend = [...html.matchAll(/<span class="t\d\d">(.*?)</g)].map(([, text]) => text)
  const scale = /class="scale"><span>(.*?)</.exec(html)?.[1]
  return { html, slow: path('t95'), usual: path('t50'), legend, scale }
}

test('hours are columns from left to right, as high as the scale says', () => {
  const { html, slow, usual, scale } = drawn([hour(23, 5, 50), hour(1, 10, 100), hour(0, 0.1, 30)])
  expect(scale).toBe('100 ms')
  expect(slow).toBe('M1.5 40v-20M89.5 40v-40M93.5 40v-12')
  // A column is at least one high.
  expect(usual).toBe('M1.5 40v-2M89.5 40v-4M93.5 40v-1')
  expect(html).toContain('viewBox="0 0 95 40"')
})

test('an hour of the day before is not drawn, and does not stretch the scale', () => {
  expect(drawn([hour(24, 5, 900), hour(1, 5, 50), hour(0, 5, 25)])).toMatchObject({
    slow: 'M89.5 40v-40M93.5 40v-20',
    scale: '50 ms',
  })
})

test.each([
  [1, '1 ms'],
  [1.1, '2 ms'],
  [21, '50 ms'],
  [510, '1000 ms'],
  [10_001, '20 s'],
])('the scale of a slowest hour of %s ms ends at %s', (slowest, end) => {
  expect(drawn([hour(1, 0.5, 1), hour(0, 0.5, slowest)]).scale).toBe(end)
})

test('the legend has the median and the 95th percentile of the day', () => {
  expect(drawn([hour(1, 1, 2), hour(0, 1, 2)]).legend).toEqual([
    'half within 10 ms',
    '95 of 100 within 9999 ms',
  ])
  expect(drawn([hour(1, 1, 2), hour(0, 1, 2)], { p50: 10, p95: 10_000 }).legend).toEqual([
    'half within 10 ms',
    '95 of 100 within 10 s',
  ])
})

test('fewer than two hours, or none that was answered, show nothing', () => {
  expect(drawn([]).html).toBe('')
  expect(drawn([hour(0, 1, 2)]).html).toBe('')
  expect(
    responseTimes({ hours: [hour(1, 1, 2), hour(0, 1, 2)], lastDay: {} } as unknown as Line, NOW, en),
  ).toBe('')
})
