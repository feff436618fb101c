/** Mulberry32: a small generator with a seed, so that a run can be repeated and one case of it replayed. */
export interface Dice {
  /** Uniform in [0, 1). */
  next(): number
  /** A whole number from 0 below `bound`. */
  below(bound: number): number
  pick<T>(items: readonly T[]): T
  chance(probability: number): boolean
}

export function dice(seed: number): Dice {
  let state = seed >>> 0
  const next = () => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296
  }
  const below = (bound: number) => Math.floor(next() * bound)
  return {
    next,
    below,
    pick: (items) => {
      const item = items[below(items.length)]
      if (item === undefined) throw new RangeError('there is nothing to pick from')
      return item
    },
    chance: (probability) => next() < probability,
  }
}
