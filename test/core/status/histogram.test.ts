import fc from 'fast-check'
import { expect, test } from 'vitest'
import {
  count,
  decode,
  encode,
  type Histogram,
  merge,
  observe,
  quantile,
} from '../../../src/core/status/histogram.ts'

const EMPTY: Histogram = new Map()

const latency = fc.double({ min: 0.01, max: 3_600_000, noNaN: true, noDefaultInfinity: true })
const latencies = fc.array(latency, { minLength: 1, maxLength: 300 })
const histogramOf = (values: readonly number[]) => values.reduce(observe, EMPTY)
/** Nearest rank, of the values themselves. */
const exact = (values: readonly number[], q: number) =>
  [...values].sort((a, b) => a - b)[Math.max(1, Math.ceil(q * values.length)) - 1] ?? Number.NaN

test('a quantile is within 1 % of the exact one, whatever the values', () => {
  fc.assert(
    fc.property(latencies, fc.constantFrom(0, 0.01, 0.5, 0.95, 0.99, 1), (values, q) => {
      const [found, wanted] = [quantile(histogramOf(values), q) ?? Number.NaN, exact(values, q)]
      expect(Math.abs(found - wanted) / wanted).toBeLessThanOrEqual(0.01 + 1e-9)
    }),
  )
})

test('merging histograms of parts gives the histogram of the whole', () => {
  fc.assert(
    fc.property(fc.array(latencies, { maxLength: 5 }), (parts) => {
      expect(merge(parts.map(histogramOf))).toEqual(histogramOf(parts.flat()))
    }),
  )
})

test('a histogram is read back as it was written, in at most seven bytes a bucket', () => {
  fc.assert(
    fc.property(fc.dictionary(fc.nat(1000).map(String), fc.integer({ min: 1, max: 2 ** 31 })), (buckets) => {
      const histogram = new Map(Object.entries(buckets).map(([bucket, number]) => [Number(bucket), number]))
      const bytes = encode(histogram)
      expect(decode(bytes)).toEqual(histogram)
      expect(bytes.length).toBeLessThanOrEqual(7 * histogram.size)
    }),
  )
})

test('any bytes are read as some histogram', () => {
  fc.assert(fc.property(fc.uint8Array(), (bytes) => decode(bytes) instanceof Map))
})

test.each([0, -5, 1e12])('still counts a value of %d ms, outside the buckets', (value) => {
  const histogram = observe(EMPTY, value)
  expect(count(histogram)).toBe(1)
  expect(quantile(histogram, 0.5)).toBeGreaterThan(0)
})

test('the ends are a hundredth of a millisecond and an hour: what lies beyond them is counted at them, and what lies within is not', () => {
  for (const [end, beyond, within] of [
    [0.01, 0.0097, 0.0103],
    [3_600_000, 3_700_000, 3_500_000],
  ] as const) {
    expect(observe(EMPTY, beyond)).toEqual(observe(EMPTY, end))
    expect(observe(EMPTY, within)).not.toEqual(observe(EMPTY, end))
  }
})

test('numbers take one byte to 127 and two from 128, and buckets are written as the difference to the one before', () => {
  const histogram = new Map([
    [3, 127],
    [5, 128],
  ])
  expect([...encode(histogram)]).toEqual([3, 127, 2, 0x80, 1])
})

test('an empty histogram has no quantile', () => expect(quantile(EMPTY, 0.5)).toBeUndefined())
