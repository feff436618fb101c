/** Time as a parameter: the system's in production, a virtual one in tests, a fast one in the demo. */
export interface Clock {
  /** UTC milliseconds since the epoch. May step when the machine's clock is set. */
  now(): number
  /** Milliseconds from an arbitrary start that never step back: the one to measure durations with. */
  monotonic(): number
  /** Resolves after `ms` of this clock; rejects with the signal's reason when aborted. */
  sleep(ms: number, signal?: AbortSignal): Promise<void>
}

/** Waits for the network or the disk, in real time even when a program brings its own clock. */
export type Timer = Pick<Clock, 'sleep' | 'monotonic'>

export const systemClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
  sleep: (ms, signal) =>
    new Promise((resolve, reject) => {
      if (signal?.aborted) return reject(signal.reason)
      const stop = () => {
        clearTimeout(timer)
        reject(signal?.reason)
      }
      const timer = setTimeout(() => {
        signal?.removeEventListener('abort', stop)
        resolve()
      }, ms)
      signal?.addEventListener('abort', stop, { once: true })
    }),
}
