import type { Clock } from '../../src/core/host.ts'

/** A clock that stands still until the test advances it. Sleepers wake when their time has come. */
export function standingClock(start: number) {
  const sleepers = new Set<{ readonly due: number; readonly wake: () => void }>()
  let now = start
  const clock: Clock = {
    now: () => now,
    monotonic: () => now - start,
    sleep: (ms, signal) =>
      new Promise((resolve, reject) => {
        if (signal?.aborted) return reject(signal.reason)
        const sleeper = { due: now + ms, wake: resolve }
        sleepers.add(sleeper)
        signal?.addEventListener('abort', () => {
          sleepers.delete(sleeper)
          reject(signal.reason)
        })
      }),
  }
  return {
    clock,
    /** The recorder has looked, and waits in steps of at most five seconds. */
    waits: () => [...sleepers].some(({ due }) => due - now <= 5000),
    pass(ms: number) {
      now += ms
      for (const sleeper of sleepers) {
        if (sleeper.due > now) continue
        sleepers.delete(sleeper)
        sleeper.wake()
      }
    },
  }
}
