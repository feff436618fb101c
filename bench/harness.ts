import { setTimeout as sleep } from 'node:timers/promises'

/**
 * One figure: ours beside its floor and its peers, measured in turn within one run (A B C A B C …), so that a
 * machine whose speed drifts changes all of them alike. What is quoted is the ratio, round by round.
 */
export interface Benchmark {
  /** File-name form: `cold-start`. */
  readonly name: string
  readonly title: string
  /** Unit of the measured values: `ms`, `mails/s` … */
  readonly unit: string
  readonly better: 'lower' | 'higher'
  /** Promised ratios: ours divided by the named contender. `first`: what was promised until two designs missed it. */
  readonly promises: readonly { readonly against: string; readonly ratio: number; readonly first?: number }[]
  /** A promise about the figure itself, in its unit: the median of ours is not worse. */
  readonly bound?: number
  /** `the others` where ours is the baseline for the rest (one dispatcher beside sixteen). Promises need `ours`. */
  readonly ratiosOf?: 'ours' | 'the others'
  /**
   * Called once; gives the contenders in the order in which a round runs them. Put each resource on the stack as soon as
   * it is open, so that it is closed even if the next line throws, or close it in the returned `close`.
   */
  readonly open: (opened: AsyncDisposableStack) => Promise<{
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

/** The middle half of the measurements. If it spreads more than a fifth around the median, there is no figure to quote. */
export interface Spread {
  readonly low: number
  readonly median: number
  readonly high: number
  readonly tooWide: boolean
}

export interface Result {
  readonly name: string
  readonly title: string
  readonly unit: string
  readonly better: 'lower' | 'higher'
  readonly rounds: number
  readonly date: string
  readonly machine: { readonly node: string; readonly cores: number; readonly load: number }
  /** The versions of what stands beside it, where it needs the folder of peers. */
  readonly peers?: Readonly<Record<string, string>>
  readonly series: readonly Series[]
  readonly ratios: readonly Ratio[]
  readonly ratiosOf?: Benchmark['ratiosOf']
  /** `kept` is undefined when the spread is too wide and lies on both sides of what was promised. */
  readonly bound?: { readonly promised: number; readonly kept: boolean | undefined }
  readonly notes?: string
}

/** Ours divided by another (or the other by ours, see `ratiosOf`), round by round. `promised` is undefined where nothing was promised. */
export interface Ratio extends Spread {
  readonly against: string
  readonly promised: number | undefined
  readonly first?: number
  /** Undefined too when the spread is too wide to say. */
  readonly kept: boolean | undefined
}

/** How long closing may take after a fault. */
const CLOSING_MS = 10_000

export async function runBenchmark(
  benchmark: Benchmark,
  surroundings: Pick<Result, 'date' | 'machine' | 'peers'>,
  onRound: (round: number, rounds: number) => void,
  /** One round without a warm-up shows that the benchmark works, and nothing else. */
  trial = false,
): Promise<Result> {
  const opened = new AsyncDisposableStack()
  try {
    const result = await measured(benchmark, opened, surroundings, onRound, trial)
    await opened.disposeAsync()
    return result
  } catch (fault) {
    // Report the original fault, even if closing fails or hangs.
    await Promise.race([opened.disposeAsync().catch(() => {}), sleep(CLOSING_MS)])
    throw fault
  }
}

async function measured(
  benchmark: Benchmark,
  opened: AsyncDisposableStack,
  surroundings: Pick<Result, 'date' | 'machine' | 'peers'>,
  onRound: (round: number, rounds: number) => void,
  trial: boolean,
): Promise<Result> {
  const rounds = trial ? 1 : (benchmark.rounds ?? 10)
  const { contenders, close } = await benchmark.open(opened)
  if (close !== undefined) opened.defer(close)
  const values = contenders.map((): number[] => [])
  if (!trial) for (const contender of contenders) await contender.measure()
  for (let round = 0; round < rounds; round += 1) {
    onRound(round + 1, rounds)
    for (const [index, contender] of contenders.entries()) values[index]?.push(await contender.measure())
  }
  const series = contenders.map(({ name, role }, index) => {
    const each = values[index] ?? []
    return { name, role, values: each, median: spread(each).median }
  })
  const { name, title, unit, better, bound, notes } = benchmark
  const ours = spread(series.find((one) => one.role === 'ours')?.values ?? [])
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
    ...(bound !== undefined && { bound: { promised: bound, kept: keeps(ours, bound, better) } }),
    ...(notes && { notes }),
  }
}

/** Undefined where the spread is too wide and lies on both sides of the bound. */
function keeps(ours: Spread, bound: number, better: Benchmark['better']): boolean | undefined {
  if (ours.tooWide && ours.low < bound && bound < ours.high) return undefined
  return better === 'lower' ? ours.median <= bound : ours.median >= bound
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
      const one = spread(each)
      const { ratio: promised, first } = promises.find(({ against }) => against === other.name) ?? {}
      const kept =
        promised === undefined || one.tooWide
          ? undefined
          : better === 'lower'
            ? one.median <= promised
            : one.median >= promised
      return { against: other.name, ...one, promised, ...(first !== undefined && { first }), kept }
    })
}

export function spread(values: readonly number[]): Spread {
  const [low, median, high] = [quantile(values, 0.25), quantile(values, 0.5), quantile(values, 0.75)]
  return { low, median, high, tooWide: (high - low) / median > 0.4 }
}

/** Linear interpolation between the order statistics. */
function quantile(values: readonly number[], q: number): number {
  const sorted = [...values].sort((a, b) => a - b)
  const at = (sorted.length - 1) * q
  const [below = Number.NaN, above = Number.NaN] = [sorted[Math.floor(at)], sorted[Math.ceil(at)]]
  return below + (above - below) * (at - Math.floor(at))
}
