import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

/**
 * The exponent with which the processor time of `run` grows while its input doubles: 1 is linear, 2 quadratic. Counts
 * this thread's own time, so that a busy machine changes nothing, and takes the best of a few runs of each size.
 */
export function growthOf<Input>(
  makeInput: (size: number) => Input,
  run: (input: Input) => unknown,
  { from = 20_000, doublings = 3, runs = 5, isSteady = false }: Sizes = {},
): number {
  const sizes = Array.from({ length: doublings + 1 }, (_, index) => from * 2 ** index)
  const points = sizes.map((size) => {
    const input = makeInput(size)
    const times = Array.from({ length: runs }, () => {
      if (!isSteady) return timeOf(() => run(input))
      collect()
      return meanTimeOf(() => run(input))
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
  /**
   * Takes the mean of many executions, after collecting what earlier runs left. Some kernels count processor time in ticks
   * of 4 ms, in which a linear reader goes from nothing to one tick and looks quadratic.
   */
  readonly isSteady?: boolean
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

/** Ten ticks of a kernel that counts in 4 ms. */
const STEADY_MS = 40

function meanTimeOf(run: () => void): number {
  let total = 0
  let count = 0
  for (; total < STEADY_MS; count += 1) total += timeOf(run)
  return total / count
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
