import { monitorEventLoopDelay } from 'node:perf_hooks'

/**
 * Loaded into the daemon by --import, with --expose-gc and an IPC channel: answers `measure` with what is really held
 * (after a collection) and with the event loop's delay since the last time it was asked.
 */
const delay = monitorEventLoopDelay({ resolution: 5 })
const whole = monitorEventLoopDelay({ resolution: 5 })
delay.enable()
whole.enable()

export interface Measured {
  /** MB after a full collection. */
  readonly heap: number
  readonly rss: number
  /** Milliseconds beyond the sampling interval. */
  readonly loopP99: number
  readonly loopMax: number
  /** Since the start. */
  readonly loopP99Whole: number
}

process.on('message', (asked) => {
  if (asked !== 'measure') return
  const p99 = delay.percentile(99)
  const max = delay.max
  // The collection is a pause of ours, not the daemon's.
  delay.disable()
  whole.disable()
  ;(globalThis as { gc?: () => void }).gc?.()
  const { heapUsed, external, rss } = process.memoryUsage()
  const answer: Measured = {
    heap: (heapUsed + external) / 1024 / 1024,
    rss: rss / 1024 / 1024,
    loopP99: Math.max(0, p99 / 1e6 - 5),
    loopMax: Math.max(0, max / 1e6 - 5),
    loopP99Whole: Math.max(0, whole.percentile(99) / 1e6 - 5),
  }
  setTimeout(() => {
    delay.reset()
    delay.enable()
    whole.enable()
    process.send?.(answer)
  }, 20)
})
// Listening keeps the channel, and the channel would keep the process.
process.channel?.unref()
