/** Latencies in logarithmic buckets (DDSketch, VLDB 2019), off by 1 % at most. Bucket → count; milliseconds. */
export type Histogram = ReadonlyMap<number, number>

const ACCURACY = 0.01
const GAMMA = (1 + ACCURACY) / (1 - ACCURACY)
const LOG_GAMMA = Math.log(GAMMA)
/** Values outside are counted at these ends, which limits a histogram to about a thousand buckets. */
const SMALLEST_MS = 0.01
const LARGEST_MS = 60 * 60 * 1000
/** Makes bucket numbers begin at 0, so that the difference of two mostly fits in a byte. */
const FIRST = Math.ceil(Math.log(SMALLEST_MS) / LOG_GAMMA)

export function observe(histogram: Histogram, valueMs: number): Histogram {
  const bounded = Math.min(LARGEST_MS, Math.max(SMALLEST_MS, valueMs))
  const bucket = Math.max(0, Math.ceil(Math.log(bounded) / LOG_GAMMA) - FIRST)
  return new Map(histogram).set(bucket, (histogram.get(bucket) ?? 0) + 1)
}

export function merge(histograms: Iterable<Histogram>): Histogram {
  const merged = new Map<number, number>()
  for (const histogram of histograms)
    for (const [bucket, count] of histogram) merged.set(bucket, (merged.get(bucket) ?? 0) + count)
  return merged
}

export const count = (histogram: Histogram): number =>
  [...histogram.values()].reduce((total, each) => total + each, 0)

/** The value at quantile `q` by nearest rank, in milliseconds; undefined of an empty histogram. */
export function quantile(histogram: Histogram, q: number): number | undefined {
  const rank = Math.max(1, Math.ceil(q * count(histogram)))
  let passed = 0
  for (const bucket of [...histogram.keys()].sort((a, b) => a - b)) {
    passed += histogram.get(bucket) ?? 0
    // The middle of the bucket by relative error: equally far, in per cent, from both of its ends.
    if (passed >= rank) return (2 * GAMMA ** (bucket + FIRST)) / (GAMMA + 1)
  }
  return undefined
}

/** Packs differences of buckets, and counts, as LEB128 numbers: two or three bytes for each bucket. */
export function encode(histogram: Histogram): Uint8Array {
  const bytes: number[] = []
  const write = (value: number) => {
    let rest = value
    for (; rest >= 0x80; rest = Math.floor(rest / 0x80)) bytes.push((rest % 0x80) | 0x80)
    bytes.push(rest)
  }
  let before = 0
  for (const bucket of [...histogram.keys()].sort((a, b) => a - b)) {
    write(bucket - before)
    write(histogram.get(bucket) ?? 0)
    before = bucket
  }
  return Uint8Array.from(bytes)
}

/** Unpacks what `encode` wrote. Bytes that end within a number lose only that bucket. */
export function decode(bytes: Uint8Array): Histogram {
  const histogram = new Map<number, number>()
  let at = 0
  const read = (): number | undefined => {
    let value = 0
    for (let scale = 1; at < bytes.length; scale *= 0x80) {
      const byte = bytes[at] ?? 0
      at += 1
      value += (byte & 0x7f) * scale
      if (byte < 0x80) return value
    }
    return undefined
  }
  for (let bucket = 0; ; ) {
    const [step, counted] = [read(), read()]
    if (step === undefined || counted === undefined) return histogram
    bucket += step
    histogram.set(bucket, counted)
  }
}
