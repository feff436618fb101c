import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

/**
 * The exponent with which the processor time of `run` grows while its input doubles: 1 is linear, 2 quadratic. Counts
 * this thread's own time, so that a busy machine changes nothing, and takes the best of a few runs of each size.
 */
export function growthOf<Input>(
  makeInput: (size: number) => Input,
  run: (input: Input) => unknown,
  { from = 20_000, doublings = 3, runs = 5, isClean = false }: Sizes = {},
): number {
  const sizes = Array.from({ length: doublings + 1 }, (_, index) => from * 2 ** index)
  const points = sizes.map((size) => {
    const input = makeInput(size)
    const times = Array.from({ length: runs }, () => {
      if (isClean) collect()
      return timeOf(() => run(input))
    })
    return { x: Math.log2(size), y: Math.log2(Math.max(SHORTEST_MS, Math.min(...times))) }
  })
  return slope(points)
}

interface Sizes {
  /** The smallest input. */
  readonly from?: number
  readonly doublings?: number
  readonly runs?: number
  /** Collects what earlier runs left before each, which takes longer than most runs. */
  readonly isClean?: boolean
}

/** The exponent that still counts as linear. */
export const LINEAR = 1.2

/** Below this, time is noise: an input that stays under it does not grow. */
const SHORTEST_MS = 1

setFlagsFromString('--expose-gc')
const collect = runInNewContext('gc') as () => void

/** Milliseconds that this thread spends in `run`. */
export function timeOf(run: () => unknown): number {
  const before = process.threadCpuUsage()
  run()
  const { user, system } = process.threadCpuUsage(before)
  return (user + system) / 1000
}

/** The same for work that waits for nothing outside this thread. */
export async function asyncTimeOf(run: () => Promise<unknown>): Promise<number> {
  const before = process.threadCpuUsage()
  await run()
  const { user, system } = process.threadCpuUsage(before)
  return (user + system) / 1000
}

/** Least squares. */
function slope(points: readonly { readonly x: number; readonly y: number }[]): number {
  const mean = (of: 'x' | 'y') => points.reduce((sum, point) => sum + point[of], 0) / points.length
  const [x, y] = [mean('x'), mean('y')]
  const up = points.reduce((sum, point) => sum + (point.x - x) * (point.y - y), 0)
  return up / points.reduce((sum, point) => sum + (point.x - x) ** 2, 0)
}
