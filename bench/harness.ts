/**
 * One figure: ours beside its floor and its peers, measured in turn within one run (A B C A B C …), so that a
 * machine whose speed drifts changes all of them alike. What is quoted is the ratio, round by round.
 */
export interface Benchmark {
  /** File-name form: `cold-start`. */
  readonly name: string
  readonly title: string
  /** What one measurement gives: `ms`, `mails/s` … */
  readonly unit: string
  readonly better: 'lower' | 'higher'
  /** What the issue or the docs promise: ours divided by the named contender. */
  readonly promises: readonly { readonly against: string; readonly ratio: number }[]
  /** A promise about the figure itself, in its unit: the median of ours is not worse. */
  readonly bound?: number
  /** Where ours is the base that the others are held against (one dispatcher beside sixteen). Promises are of `ours`. */
  readonly ratiosOf?: 'ours' | 'the others'
  /** Called once; gives the contenders in the order in which a round runs them, and what to close afterwards. */
  readonly open: () => Promise<{
    readonly contenders: readonly Contender[]
    readonly close?: () => Promise<void>
  }>
  /** At least 10, unless one round takes minutes. */
  readonly rounds?: number
  readonly notes?: string
}

export interface Contender {
  readonly name: string
  readonly role: 'ours' | 'floor' | 'peer'
  /** One measurement in the benchmark's unit. */
  readonly measure: () => Promise<number>
}

export interface Series {
  readonly name: string
  readonly role: Contender['role']
  readonly values: readonly number[]
  readonly median: number
}

export interface Result {
  readonly name: string
  readonly title: string
  readonly unit: string
  readonly better: 'lower' | 'higher'
  readonly rounds: number
  readonly date: string
  readonly machine: { readonly node: string; readonly cores: number; readonly load: number }
  readonly series: readonly Series[]
  readonly ratios: readonly Ratio[]
  readonly ratiosOf?: Benchmark['ratiosOf']
  readonly bound?: { readonly promised: number; readonly kept: boolean }
  readonly notes?: string
}

/** Ours divided by another (or the other by ours, see `ratiosOf`), round by round. `promised` is undefined where nothing was promised. */
export interface Ratio {
  readonly against: string
  readonly median: number
  readonly low: number
  readonly high: number
  readonly promised: number | undefined
  readonly kept: boolean | undefined
  /** The middle half of the rounds lies further than a fifth around the median: no figure to quote. */
  readonly tooWide: boolean
}

export async function runBenchmark(
  benchmark: Benchmark,
  surroundings: Pick<Result, 'date' | 'machine'>,
  onRound: (round: number, rounds: number) => void,
): Promise<Result> {
  const rounds = benchmark.rounds ?? 10
  const { contenders, close } = await benchmark.open()
  try {
    const values = contenders.map((): number[] => [])
    for (const contender of contenders) await contender.measure()
    for (let round = 0; round < rounds; round += 1) {
      onRound(round + 1, rounds)
      for (const [index, contender] of contenders.entries()) values[index]?.push(await contender.measure())
    }
    const series = contenders.map(({ name, role }, index) => {
      const measured = values[index] ?? []
      return { name, role, values: measured, median: median(measured) }
    })
    const { name, title, unit, better, bound, notes } = benchmark
    const ours = series.find((one) => one.role === 'ours')?.median ?? Number.NaN
    return {
      name,
      title,
      unit,
      better,
      rounds,
      ...surroundings,
      series,
      ratios: ratios(benchmark, series),
      ...(benchmark.ratiosOf && { ratiosOf: benchmark.ratiosOf }),
      ...(bound !== undefined && {
        bound: { promised: bound, kept: better === 'lower' ? ours <= bound : ours >= bound },
      }),
      ...(notes && { notes }),
    }
  } finally {
    await close?.()
  }
}

function ratios({ promises, better, ratiosOf = 'ours' }: Benchmark, series: readonly Series[]): Ratio[] {
  const ours = series.find((one) => one.role === 'ours')
  if (ours === undefined) throw new Error('a benchmark needs one contender that is ours')
  return series
    .filter((one) => one.role !== 'ours')
    .map((other) => {
      const each = ours.values.map((value, round) => {
        const ratio = value / (other.values[round] ?? Number.NaN)
        return ratiosOf === 'ours' ? ratio : 1 / ratio
      })
      const [low, middle, high] = [quantile(each, 0.25), median(each), quantile(each, 0.75)]
      const promised = promises.find((promise) => promise.against === other.name)?.ratio
      const kept =
        promised === undefined ? undefined : better === 'lower' ? middle <= promised : middle >= promised
      return {
        against: other.name,
        median: middle,
        low,
        high,
        promised,
        kept,
        tooWide: (high - low) / middle > 0.4,
      }
    })
}

function median(values: readonly number[]): number {
  return quantile(values, 0.5)
}

/** Linear interpolation between the order statistics. */
function quantile(values: readonly number[], q: number): number {
  const sorted = [...values].sort((a, b) => a - b)
  const at = (sorted.length - 1) * q
  const [below = Number.NaN, above = Number.NaN] = [sorted[Math.floor(at)], sorted[Math.ceil(at)]]
  return below + (above - below) * (at - Math.floor(at))
}
