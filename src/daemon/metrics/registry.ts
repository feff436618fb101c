import { performance } from 'node:perf_hooks'
import { Counter, Gauge, Histogram, Registry } from 'prom-client'
import { type MetricCatalog, type MetricName, ROWS } from './catalog.ts'

type Named<Type> = {
  [Name in MetricName]: MetricCatalog[Name]['type'] extends Type ? Name : never
}[MetricName]

/** The catalog's metrics over a registry of their own: two platforms in one process count apart. */
export interface MetricRegistry {
  counter(name: Named<'counter'>): Counter
  gauge(name: Named<'gauge'>): Gauge
  histogram(name: Named<'histogram'>): Histogram
  /** Removes a gauge's value until it is set again. No value is not the same as 0. */
  clear(name: Named<'gauge'>): void
  text(): Promise<{ readonly type: string; readonly body: string }>
}

export function openRegistry(): MetricRegistry {
  const registry = new Registry()
  const made = new Map<string, Counter | Gauge | Histogram>()
  for (const [name, { type, help, labels = {}, buckets = [] }] of Object.entries(ROWS)) {
    const options = { name, help, labelNames: Object.keys(labels), registers: [registry] }
    made.set(
      name,
      type === 'counter'
        ? new Counter(options)
        : type === 'gauge'
          ? new Gauge(options)
          : new Histogram({ ...options, buckets: [...buckets] }),
    )
  }
  return {
    // The catalog gives each name's type.
    counter: (name) => made.get(name) as Counter,
    gauge: (name) => made.get(name) as Gauge,
    histogram: (name) => made.get(name) as Histogram,
    clear(name) {
      const gauge = made.get(name) as Gauge
      gauge.reset()
      // The library sets one without labels back to 0.
      if (ROWS[name].labels === undefined) gauge.remove()
    },
    text: async () => ({ type: registry.contentType, body: await registry.metrics() }),
  }
}

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
