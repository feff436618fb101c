import type { Store } from '../src/core/store/store.ts'

/** With BENCH_LARGE=1 also ten millions: a file of two gigabytes. */
export const SIZES = process.env.BENCH_LARGE === '1' ? [100_000, 1_000_000, 10_000_000] : [100_000, 1_000_000]

export const ROWS = 100

/** Virtual time. Each claim is one step later, so that lessons given back are due after all the others. */
let now = 1

/** Times this many claims of a hundred lessons, in milliseconds each. A claim is one durable commit; giving back is not timed. */
export async function claimTimes(store: Store, claims: number): Promise<number[]> {
  const times: number[] = []
  for (let n = 0; n < claims; n += 1) {
    const began = performance.now()
    now += 1
    const taken = await store.course.claimDue({
      now,
      limit: ROWS,
      retries: 0,
      leaseMs: 90_000,
      call: `call-${n}-${began}`,
    })
    times.push(performance.now() - began)
    if (taken.length !== ROWS) throw new Error(`${taken.length} claims instead of ${ROWS}`)
    const untried = {
      now,
      sent: false,
      nextAttemptAt: now,
      failures: 0,
      problem: undefined,
      end: false,
    } as const
    await store.course.settle(taken.map((claim) => ({ ...untried, claim })))
  }
  return times
}

export function quantile(times: readonly number[], q: number): number {
  const sorted = [...times].sort((a, b) => a - b)
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * q))] ?? Number.NaN
}

export function label(size: number): string {
  return `${size.toLocaleString('en')} subscriptions`
}
