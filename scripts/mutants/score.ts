/** How many of the planted mutants tests noticed; the others survived. */
export interface Score {
  readonly noticed: number
  readonly planted: number
}

/** Fewer mutants than this do not make a meaningful score. */
const FEWEST = 10

/** Whether so few were noticed that chance does not explain it; the undecided ones may all have been noticed by a test that did not run. */
export function isTooLow({
  noticed,
  survived,
  undecided,
  goal,
}: {
  readonly noticed: number
  readonly survived: number
  readonly undecided: number
  readonly goal: number
}): boolean {
  const planted = noticed + survived + undecided
  return planted >= FEWEST && highestPlausible({ noticed: noticed + undecided, planted }) < goal
}

/** The part that was noticed, in percent. */
export const percent = ({ noticed, planted }: Score) => (planted === 0 ? 100 : (noticed / planted) * 100)

/**
 * The highest score, in percent, that all the mutants together could plausibly have when these of them were drawn: the
 * upper end of the Wilson interval, which one sample in twenty exceeds.
 */
export function highestPlausible({ noticed, planted }: Score): number {
  if (planted === 0) return 100
  const z = 1.645
  const share = noticed / planted
  const middle = share + z ** 2 / (2 * planted)
  const spread = z * Math.sqrt((share * (1 - share)) / planted + z ** 2 / (4 * planted ** 2))
  return (100 * (middle + spread)) / (1 + z ** 2 / planted)
}
