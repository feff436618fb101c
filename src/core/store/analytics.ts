import { type AnalyticsStore, type DayCount, dayOf } from '../analytics/store.ts'
import { all, deleteInSteps, first, ROWS_A_STEP, run, type Sql } from './sql.ts'

/** A store of events, and what differs by its kind. */
interface Parts extends Pick<AnalyticsStore, 'close'> {
  readonly kind: 'sqlite' | 'postgres'
  /** The name that the operator gave, and with this ending, as statements have it. */
  readonly table: string
  readonly named: (ending: string) => string
  readonly rowsAStep?: number
  /** Stores a batch with its size; 0 if it is there already. */
  readonly append: (batch: object) => Promise<number>
  readonly size: () => Promise<number | undefined>
  readonly disk?: () => Promise<{ readonly free: number; readonly size: number }>
}

export const addBatch = (batches: string) =>
  `INSERT INTO ${batches} (batch, received_at, size, counts, events)
    VALUES (@id, @receivedAt, @size, @counts, @events) ON CONFLICT (batch) DO NOTHING`

export function analytics(sql: Sql, parts: Parts): AnalyticsStore {
  const { one } = sql
  const { kind, table, named, rowsAStep = ROWS_A_STEP, append, close } = parts
  const [batches, daily, bytes] = [named(''), named('_daily'), named('_bytes')]
  const text = {
    counts: `SELECT day, kind, count FROM ${daily} WHERE day >= @since ORDER BY day, {byBytes kind}`,
    usage: `SELECT CAST(coalesce(sum(bytes), 0) AS bigint) AS total,
      CAST(coalesce(sum(bytes) FILTER (WHERE day = @day), 0) AS bigint) AS today FROM ${bytes}`,
    sizes: `SELECT count(*) AS batches, CAST(coalesce(sum(size), 0) AS bigint) AS events FROM ${batches}`,
    // Rows stand in the order of their arrival, so the oldest are the first.
    prune: `DELETE FROM ${batches} WHERE received_at < @before
      AND id IN (SELECT id FROM ${batches} ORDER BY id LIMIT ${rowsAStep})`,
    dropBytes: `DELETE FROM ${bytes} WHERE day < @day`,
    ping: `SELECT 1 FROM ${batches} LIMIT 1`,
  }
  // An aggregate has one row.
  const only = async <Row>(query: string, values = {}) => (await one(first<Row>(query, values))) as Row
  return {
    async append({ id, receivedAt, events, counts }) {
      const batch = {
        counts: JSON.stringify(counts.map(({ day, kind: of, count }) => [day, of, count])),
        events: inJson(events.map(({ kind: of, at, properties }) => [of, at, properties])),
      }
      const size = Buffer.byteLength(batch.counts) + Buffer.byteLength(batch.events)
      const row = { ...batch, id, receivedAt, size: events.length, day: dayOf(receivedAt), bytes: size }
      return (await append(row)) === 0 ? { kind: 'repeated' } : { kind: 'stored', bytes: size }
    },
    counts: (since = '') => one(all<DayCount>(text.counts, { since })),
    usage: async (day) => ({
      ...(await only<{ total: number; today: number }>(text.usage, { day })),
      disk: await parts.disk?.(),
    }),
    async prune(before) {
      await deleteInSteps(sql, text.prune, { before }, rowsAStep)
      await one(run(text.dropBytes, { day: dayOf(before) }))
    },
    status: async () => ({
      kind,
      table,
      ...(await only<{ batches: number; events: number }>(text.sizes)),
      bytes: await parts.size(),
    }),
    ping: async () => void (await one(first(text.ping))),
    close,
  }
}

/** Without NUL, which PostgreSQL would refuse when somebody reads the batch. */
function inJson(value: unknown): string {
  const text = JSON.stringify(value)
  return text.includes('\\u0000')
    ? JSON.stringify(value, (_, one) => (typeof one === 'string' ? one.replaceAll('\0', '') : one))
    : text
}
