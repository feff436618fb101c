import type { AnalyticsEvent } from '../../analytics/events.ts'
import { type AnalyticsStore, dayOf } from '../../analytics/store.ts'
import { DAY_MS } from '../../durations.ts'
import type { Log } from '../../log.ts'
import type { Secret } from '../../secret.ts'
import { analytics } from '../analytics.ts'
import { StoreOpenError } from '../errors.ts'
import { first } from '../sql.ts'
import { createPool, guarded, type Pool, transaction } from './connection.ts'
import { sentence } from './faults.ts'
import { postgresSql } from './sql.ts'

/** Ingest is one statement a batch: more connections would only wait for the same disk. */
const CONNECTIONS = 4
const ROWS_A_STEP = 500
/** Batches of a day are counted in several rows, so that commits seldom wait for each other's count. */
const SLOTS = 16
const SIZE = 'SELECT pg_total_relation_size(CAST(CAST(@table AS text) AS regclass)) AS bytes'
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
  const sql = postgresSql(pool)
  const shared = analytics(
    sql,
    { batches: named(table), daily: named(table, '_daily'), bytes: named(table, '_bytes') },
    ROWS_A_STEP,
  )
  return {
    ...shared,
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
    usage: async (day) => ({ ...(await shared.usage(day)), disk: undefined }),
    status: async () => ({
      kind: 'postgres',
      table,
      ...(await shared.sizes()),
      bytes: (await sql.one(first<{ bytes: number }>(SIZE, { table: named(table) })))?.bytes,
    }),
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
