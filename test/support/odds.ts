/**
 * The chance that a run of `a` takes longer than a run of `b` (0.5: the two cannot be told apart by their time), from
 * runs in turn, so that a machine that slows down slows both. Ranks only: one long pause counts as one.
 */
export function odds({
  a,
  b,
  rounds = 400,
}: {
  readonly a: () => unknown
  readonly b: () => unknown
  readonly rounds?: number
}): number {
  const time = (work: () => unknown) => {
    const began = process.hrtime.bigint()
    work()
    return Number(process.hrtime.bigint() - began)
  }
  const times = { a: [] as number[], b: [] as number[] }
  for (let round = -50; round < rounds; round += 1) {
    const order = round % 2 === 0 ? (['a', 'b'] as const) : (['b', 'a'] as const)
    for (const which of order) {
      const took = time(which === 'a' ? a : b)
      if (round >= 0) times[which].push(took)
    }
  }
  return longerOf(times.a, times.b)
}

/** The share of pairs in which the first is the larger; a tie counts half (Mann and Whitney's U, scaled). */
export function longerOf(first: readonly number[], second: readonly number[]): number {
  let won = 0
  for (const one of first) for (const other of second) won += one > other ? 1 : one === other ? 0.5 : 0
  return won / (first.length * second.length)
}
