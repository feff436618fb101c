import { performance } from 'node:perf_hooks'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { MINUTE_MS } from '../core/durations.ts'

const LOOK_EVERY_MS = 5000
/** Share of the time in which the event loop had work: above it, requests would wait for the collector. */
const BUSY = 0.02
const AGAIN_MS = 5 * MINUTE_MS

/** As V8 gives it to programs that were started with `--expose-gc`. */
type Collect = (options: { readonly type: 'major'; readonly flavor: 'last-resort' }) => void

/** Gives memory that is not in use back to the system, after the start and now and then, while the process is idle. */
export function releaseWhenIdle({ everyMs = LOOK_EVERY_MS } = {}): { stop(): void } {
  let before = performance.eventLoopUtilization()
  let nextAt = 0
  const timer = setInterval(() => {
    const now = performance.eventLoopUtilization()
    const { utilization } = performance.eventLoopUtilization(now, before)
    before = now
    if (utilization > BUSY || performance.now() < nextAt) return
    nextAt = performance.now() + AGAIN_MS
    release()
  }, everyMs).unref()
  return { stop: () => clearInterval(timer) }
}

/** Frees spare room for new objects and code that ran once, which V8 keeps until memory runs low. Takes about 0.05 s. */
function release(): void {
  setFlagsFromString('--expose-gc')
  // A flag set after the start only takes effect in a new context.
  const collect: Collect = runInNewContext('gc')
  setFlagsFromString('--no-expose-gc')
  collect({ type: 'major', flavor: 'last-resort' })
}
