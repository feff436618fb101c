import type { AnalyticsEvent } from '../../analytics/events.ts'
import { type AnalyticsStore, type DayCount, dayOf } from '../../analytics/store.ts'
import { DAY_MS } from '../../durations.ts'
import type { Log } from '../../log.ts'
import type { Secret } from '../../secret.ts'
import { StoreOpenError } from '../store.ts'
import { createPool, guarded, type Pool, transaction } from './connection.ts'
import { sentence } from './faults.ts'

/** Ingest is one statement a batch: more connections would only wait for the same disk. */
const CONNECTIONS = 4
const ROWS_A_STEP = 500
/** Batches of a day are counted in several rows, so that commits seldom wait for each other's count. */
const SLOTS = 16
const SCHEMA = 'platformctl_analytics'
/** PostgreSQL cuts longer names (NAMEDATALEN), and the names of the views are longer than the table's. */
const LONGEST_NAME = 63

/** Analytics in a schema of their own, laid out as in SQLite: a row of JSON for each batch, and views over them. */
export async function openPostgresAnalytics(input: {
  readonly url: Secret
  readonly table: string
  readonly log: Log
}): Promise<AnalyticsStore> {
  const { url, table, log } = input
  const pool = createPool({
    url,
    size: CONNECTIONS,
    onIdleFault: (code) =>
      log.warn('store_connection_lost', 'an idle connection to the store of analytics was lost', { code }),
  })
  try {
    await createTables(pool, table)
  } catch (error) {
    await pool.end()
    throw error instanceof StoreOpenError ? error : new StoreOpenError(sentence(error), { cause: error })
  }
  return storeOver(pool, table)
}

/** The name was checked as an identifier by the contract; quoted, it means itself and keeps its case. */
function named(table: string, ending = ''): string {
  return `${SCHEMA}."${table.slice(0, LONGEST_NAME - ending.length)}${ending}"`
}

/** Additive only, and by one process at a time: two that make a schema at once would both fail. */
async function createTables(pool: Pool, table: string): Promise<void> {
  await transaction(pool, async (connection) => {
    await connection.query('SELECT pg_advisory_xact_lock(7305823190018)')
    await connection.query(`CREATE SCHEMA IF NOT EXISTS ${SCHEMA}`)
    await connection.query(`
      CREATE TABLE IF NOT EXISTS ${named(table)} (
        id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, batch bytea UNIQUE, received_at bigint NOT NULL,
        size integer NOT NULL, counts json NOT NULL, events json NOT NULL
      )`)
    await connection.query(`
      CREATE OR REPLACE VIEW ${named(table, '_daily')} AS
        SELECT one ->> 0 AS day, one ->> 1 AS kind, sum((one ->> 2)::bigint)::bigint AS count
        FROM ${named(table)} AS stored, json_array_elements(stored.counts) AS one GROUP BY 1, 2`)
    await connection.query(`
      CREATE OR REPLACE VIEW ${named(table, '_events')} AS
        SELECT stored.id AS batch, stored.received_at, one ->> 0 AS kind, (one ->> 1)::bigint AS at, one -> 2 AS properties
        FROM ${named(table)} AS stored, json_array_elements(stored.events) AS one`)
    const counted = await connection.query<{ exists: boolean }>(
      'SELECT to_regclass($1) IS NOT NULL AS exists',
      [named(table, '_bytes')],
    )
    if (counted.rows[0]?.exists === true) return
    await connection.query(
      `CREATE TABLE ${named(table, '_bytes')} (day integer, slot integer, bytes bigint NOT NULL, PRIMARY KEY (day, slot))`,
    )
    // Events stored by an earlier build are counted once, when the table of counts is created.
    await connection.query(`
      INSERT INTO ${named(table, '_bytes')}
        SELECT received_at / ${DAY_MS}, 0, sum(octet_length(counts::text) + octet_length(events::text)) FROM ${named(table)} GROUP BY 1`)
  })
}

function storeOver(pool: Pool, table: string): AnalyticsStore {
  let ended = false
  return {
    append: ({ id, receivedAt, events, counts }) =>
      guarded(async () => {
        const sums = JSON.stringify(counts.map(({ day, kind, count }) => [day, kind, count]))
        const rows = JSON.stringify(
          events.map(({ kind, at, properties }) => [kind, at, withoutNul(properties)]),
        )
        const bytes = Buffer.byteLength(sums) + Buffer.byteLength(rows)
        const { rowCount } = await pool.query(
          `WITH stored AS (
             INSERT INTO ${named(table)} (batch, received_at, size, counts, events) VALUES ($1, $2, $3, $4, $5)
             ON CONFLICT (batch) DO NOTHING RETURNING id
           )
           INSERT INTO ${named(table, '_bytes')} AS kept (day, slot, bytes) SELECT $6::integer, id % ${SLOTS}, $7::bigint FROM stored
           ON CONFLICT (day, slot) DO UPDATE SET bytes = kept.bytes + excluded.bytes`,
          [
            id === undefined ? null : Buffer.from(id),
            receivedAt,
            events.length,
            sums,
            rows,
            dayOf(receivedAt),
            bytes,
          ],
        )
        return rowCount === 1 ? { kind: 'stored', bytes } : { kind: 'repeated' }
      }),
    usage: (day) =>
      guarded(async () => {
        const { rows } = await pool.query<{ total: number; today: number }>(
          `SELECT coalesce(sum(bytes), 0)::bigint AS total, coalesce(sum(bytes) FILTER (WHERE day = $1), 0)::bigint AS today
           FROM ${named(table, '_bytes')}`,
          [day],
        )
        const { total = 0, today = 0 } = rows[0] ?? {}
        return { total, today, disk: undefined }
      }),
    counts: (since = '') =>
      guarded(async () => {
        const { rows } = await pool.query<DayCount>(
          `SELECT day, kind, count FROM ${named(table, '_daily')} WHERE day >= $1 ORDER BY day, kind COLLATE "C"`,
          [since],
        )
        return rows
      }),
    prune: (before) =>
      guarded(async () => {
        for (let removed = ROWS_A_STEP; removed === ROWS_A_STEP; ) {
          const { rowCount } = await pool.query(
            `DELETE FROM ${named(table)} WHERE id IN (SELECT id FROM ${named(table)} WHERE received_at < $1 ORDER BY id LIMIT ${ROWS_A_STEP})`,
            [before],
          )
          removed = rowCount ?? 0
        }
        await pool.query(`DELETE FROM ${named(table, '_bytes')} WHERE day < $1`, [dayOf(before)])
      }),
    status: () =>
      guarded(async () => {
        const { rows } = await pool.query<{ batches: number; events: number; bytes: number }>(
          `SELECT count(*) AS batches, coalesce(sum(size), 0)::bigint AS events, pg_total_relation_size($1::regclass) AS bytes FROM ${named(table)}`,
          [named(table)],
        )
        const { batches = 0, events = 0, bytes } = rows[0] ?? {}
        return { kind: 'postgres' as const, table, batches, events, bytes }
      }),
    ping: () => guarded(async () => void (await pool.query(`SELECT 1 FROM ${named(table)} LIMIT 1`))),
    async close() {
      if (ended) return
      ended = true
      await pool.end()
    },
  }
}

/** PostgreSQL stores no NUL, and would refuse the whole batch when somebody reads it. */
function withoutNul(properties: AnalyticsEvent['properties']): AnalyticsEvent['properties'] {
  const entries = Object.entries(properties)
  if (!entries.some(([, value]) => typeof value === 'string' && value.includes('\0'))) return properties
  return Object.fromEntries(
    entries.map(([key, value]) => [key, typeof value === 'string' ? value.replaceAll('\0', '') : value]),
  )
}
