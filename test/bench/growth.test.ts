import { expect, test } from 'vitest'
import { growthChart, growthOf, growthSection } from '../../bench/growth-report.ts'

const sizes = [10, 100, 1000, 10_000, 100_000]
const line = (cost: (size: number) => number, floor?: true) => ({
  label: 'cost',
  ...(floor && { floor }),
  points: sizes.map((size) => ({ size, value: cost(size) })),
})

test.each([
  ['flat', () => 3],
  ['better than linear', (size: number) => Math.sqrt(size)],
  ['linear', (size: number) => size / 7],
  ['worse than linear', (size: number) => size * size],
] as const)('classifies this growth of cost as %s', (verdict, cost) => {
  expect(growthOf(line(cost)).verdict).toBe(verdict)
})

test('a high fixed cost does not hide steeper growth at the end', () => {
  const { exponent, lastDecade, verdict } = growthOf(line((size) => 1000 + (size / 1000) ** 2))
  expect(exponent).toBeLessThan(1.1)
  expect(lastDecade).toBeGreaterThan(0.8)
  expect(verdict).not.toBe('flat')
  expect(growthOf(line((size) => 100 + (size / 1000) ** 2)).verdict).toBe('worse than linear')
})

test.each([
  [1.3, 1.4, 'worse than linear, as the floor is'],
  [1.3, 1, 'worse than linear'],
  [1.13, 1.05, 'linear beside its floor'],
  [1.13, 0.9, 'worse than linear'],
])('a variable cost that grows by %d on a fixed cost that grows by %d is %s', (ours, floor, verdict) => {
  const beside = line((size) => size ** floor, true)
  expect(
    growthOf(
      line((size) => size ** ours),
      beside,
    ).verdict,
  ).toBe(verdict)
})

test('the section names what is a defect, and the chart stays in its box', () => {
  const growth = {
    name: 'x',
    title: 'Doing <x>',
    size: 'things',
    unit: 'ms',
    lines: [line((size) => size ** 2)],
    notes: 'None.',
    date: '2026-11-21T00:00:00.000Z',
    machine: { node: 'v24', cores: 2, load: 0 },
  }
  expect(growthSection([growth])).toContain(
    '| [Doing <x>](../docs/images/performance/growth-x.svg) | 10–100,000 things | cost | 100–10,000,000,000 ms | 2.00 | 2.00 | **worse than linear** |',
  )
  const chart = growthChart(growth)
  expect(chart).toContain('Doing &lt;x>')
  for (const [, x, y] of chart.matchAll(/(?:cx="|[ML])(\d+\.\d)"?(?: cy="| )(\d+\.\d)/g)) {
    expect(Number(x)).toBeGreaterThanOrEqual(80)
    expect(Number(x)).toBeLessThanOrEqual(680)
    expect(Number(y)).toBeGreaterThanOrEqual(34)
    expect(Number(y)).toBeLessThanOrEqual(284)
  }
  expect(growthSection([])).toBe('')
})
