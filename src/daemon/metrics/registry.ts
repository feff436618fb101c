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
