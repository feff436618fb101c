import { performance } from 'node:perf_hooks'
import type { MetricRegistry } from './registry.ts'

const EVERY_MS = 500

/** Figures of the process and its event loop, read when they are scraped. */
export function readProcess(registry: MetricRegistry): void {
  const { user, system } = process.cpuUsage()
  const { rss, heapUsed } = process.memoryUsage()
  raise(registry, 'process_cpu_seconds_total', (user + system) / 1e6)
  raise(
    registry,
    'platformctl_event_loop_busy_seconds_total',
    performance.eventLoopUtilization().active / 1000,
  )
  registry.gauge('process_start_time_seconds').set(performance.timeOrigin / 1000)
  registry.gauge('process_resident_memory_bytes').set(rss)
  registry.gauge('nodejs_heap_size_used_bytes').set(heapUsed)
}

/** A counter that is read elsewhere, set as a whole. */
function raise(
  registry: MetricRegistry,
  name: Parameters<MetricRegistry['counter']>[0],
  total: number,
): void {
  const counter = registry.counter(name)
  counter.reset()
  counter.inc(total)
}

/** Measures how late timers run; only the daemon asks for it, an embedding program has no timer of ours. */
export function watchEventLoop(registry: MetricRegistry): () => void {
  const delay = registry.histogram('platformctl_event_loop_delay_seconds')
  let due = performance.now() + EVERY_MS
  const timer = setInterval(() => {
    const now = performance.now()
    delay.observe(Math.max(0, now - due) / 1000)
    due = now + EVERY_MS
  }, EVERY_MS)
  timer.unref()
  return () => clearInterval(timer)
}
