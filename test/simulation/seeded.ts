import type { Random } from '../../src/core/host.ts'

export interface Seeded extends Random {
  /** True once in `n` times; never for 0. */
  readonly oneIn: (n: number) => boolean
  /** A whole number from `low` to `high`, both included. */
  readonly between: (low: number, high: number) => number
  readonly pick: <T>(items: readonly [T, ...T[]]) => T
}

/** sfc32 (Doty-Humphrey, PractRand): everything random in a run comes from its seed. */
export function seeded(seed: number): Seeded {
  let [a, b, c, counter] = [0x9e3779b9 ^ seed, 0x243f6a88, 0xb7e15162 ^ (seed << 7), 1]
  const next = () => {
    const t = (((a + b) | 0) + counter) | 0
    counter = (counter + 1) | 0
    a = b ^ (b >>> 9)
    b = (c + (c << 3)) | 0
    c = (c << 21) | (c >>> 11)
    c = (c + t) | 0
    return t >>> 0
  }
  for (let warm = 0; warm < 12; warm += 1) next()
  const fraction = () => next() / 2 ** 32
  const between = (low: number, high: number) => low + Math.floor(fraction() * (high - low + 1))
  return {
    bytes: (length) => Uint8Array.from({ length }, () => next() & 0xff),
    fraction,
    oneIn: (n) => n > 0 && fraction() * n < 1,
    between,
    pick: (items) => items[between(0, items.length - 1)] ?? items[0],
  }
}
