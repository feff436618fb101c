import { type AnalyticsStatus, type AnalyticsStore, type DayCount, dayOf } from '../analytics/store.ts'
import { all, first, run, type Sql } from './sql.ts'

/** The names of the tables of events, as statements have them. */
export interface AnalyticsTables {
  readonly batches: string
  readonly daily: string
  readonly bytes: string
}

type Shared = Pick<AnalyticsStore, 'counts' | 'prune' | 'ping'> & {
  usage(day: number): Promise<{ readonly total: number; readonly today: number }>
  sizes(): Promise<Pick<AnalyticsStatus, 'batches' | 'events'>>
}

/** What both stores do alike with the events of visitors; a step of pruning deletes `rowsAStep` batches. */
export function analytics({ one, dialect }: Sql, tables: AnalyticsTables, rowsAStep: number): Shared {
  const { batches, daily, bytes } = tables
  const text = {
    counts: `SELECT day, kind, count FROM ${daily} WHERE day >= @since ORDER BY day, ${dialect.byBytes('kind')}`,
    usage: `SELECT CAST(coalesce(sum(bytes), 0) AS bigint) AS total,
      CAST(coalesce(sum(bytes) FILTER (WHERE day = @day), 0) AS bigint) AS today FROM ${bytes}`,
    sizes: `SELECT count(*) AS batches, CAST(coalesce(sum(size), 0) AS bigint) AS events FROM ${batches}`,
    // Rows stand in the order of their arrival, so the oldest are the first.
    prune: `DELETE FROM ${batches} WHERE received_at < @before
      AND id IN (SELECT id FROM ${batches} ORDER BY id LIMIT ${rowsAStep})`,
    dropBytes: `DELETE FROM ${bytes} WHERE day < @day`,
    ping: `SELECT 1 FROM ${batches} LIMIT 1`,
  }
  return {
    // Kinds were checked before they were written.
    counts: (since = '') => one(all<DayCount>(text.counts, { since })),
    usage: async (day) =>
      (await one(first<{ total: number; today: number }>(text.usage, { day }))) ?? { total: 0, today: 0 },
    sizes: async () =>
      (await one(first<{ batches: number; events: number }>(text.sizes))) ?? { batches: 0, events: 0 },
    async prune(before) {
      while ((await one(run(text.prune, { before }))) === rowsAStep) await new Promise(setImmediate)
      await one(run(text.dropBytes, { day: dayOf(before) }))
    },
    ping: async () => void (await one(first(text.ping))),
  }
}
