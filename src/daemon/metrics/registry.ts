import { Counter, Gauge, Histogram, Registry } from 'prom-client'
import { type MetricCatalog, type MetricName, type MetricRow, ROWS } from './catalog.ts'

type Kinds = { readonly counter: Counter; readonly gauge: Gauge; readonly histogram: Histogram }

export type MetricSet = { readonly [Name in MetricName]: Kinds[MetricCatalog[Name]['type']] }

/** The catalog's metrics over a registry of their own: two platforms in one process count apart. */
export function openRegistry() {
  const registry = new Registry()
  const make = (name: string, { type, help, labels = {}, buckets = [] }: MetricRow) => {
    const options = { name, help, labelNames: Object.keys(labels), registers: [registry] }
    if (type === 'histogram') return new Histogram({ ...options, buckets: [...buckets] })
    return type === 'counter' ? new Counter(options) : new Gauge(options)
  }
  const made = Object.entries(ROWS).map(([name, row]) => [name, make(name, row)])
  return {
    // The catalog gives each name its type.
    metrics: Object.fromEntries(made) as MetricSet,
    text: async () => ({ type: registry.contentType, body: await registry.metrics() }),
  }
}

export type CounterName = { [Name in MetricName]: MetricSet[Name] extends Counter ? Name : never }[MetricName]

/** Starts a counter's series at 0: a rate needs a value before the first event. `known` narrows labels. */
export function startAtZero(
  metrics: MetricSet,
  name: CounterName,
  known: Readonly<Record<string, readonly string[]>> = {},
): void {
  let series: Record<string, string>[] = [{}]
  for (const [label, values] of Object.entries({ ...ROWS[name].labels, ...known }))
    series = series.flatMap((one) => [values].flat().map((value) => ({ ...one, [label]: value })))
  for (const one of series) metrics[name].inc(one, 0)
}

type GaugeName = { [Name in MetricName]: MetricSet[Name] extends Gauge ? Name : never }[MetricName]

/** Removes a gauge's value until it is set again. No value is not the same as 0. */
export function clear(metrics: MetricSet, name: GaugeName): void {
  metrics[name].reset()
  // The library sets one without labels back to 0.
  if (ROWS[name].labels === undefined) metrics[name].remove()
}

const EVERY_MS = 500

/** Figures of the process and its event loop, read when they are scraped. */
export function readProcess(metrics: MetricSet): void {
  const { user, system } = process.cpuUsage()
  const { rss, heapUsed } = process.memoryUsage()
  raise(metrics.process_cpu_seconds_total, (user + system) / 1e6)
  raise(metrics.platformctl_event_loop_busy_seconds_total, performance.eventLoopUtilization().active / 1000)
  metrics.process_start_time_seconds.set(performance.timeOrigin / 1000)
  metrics.process_resident_memory_bytes.set(rss)
  metrics.nodejs_heap_size_used_bytes.set(heapUsed)
}

function raise(counter: Counter, total: number): void {
  counter.reset()
  counter.inc(total)
}

/** Measures how late timers run; only the daemon asks for it, an embedding program has no timer of ours. */
export function watchEventLoop({ platformctl_event_loop_delay_seconds: delay }: MetricSet): () => void {
  let due = performance.now() + EVERY_MS
  const timer = setInterval(() => {
    const now = performance.now()
    delay.observe(Math.max(0, now - due) / 1000)
    due = now + EVERY_MS
  }, EVERY_MS)
  timer.unref()
  return () => clearInterval(timer)
}
