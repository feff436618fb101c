import type { AnalyticsStore } from '../../analytics/store.ts'
import { DAY_MS } from '../../durations.ts'
import type { Log } from '../../host.ts'
import type { Secret } from '../../secret.ts'
import { addBatch, analytics } from '../analytics.ts'
import { first, LOCKS, lock, run, type Steps, scalar } from '../sql.ts'
import { createPool, orEnd } from './connection.ts'
import { plainSql, postgresSql } from './sql.ts'

/** Ingest is one statement a batch: more connections would only wait for the same disk. */
const CONNECTIONS = 4
/** Batches of a day are counted in several rows, so that commits seldom wait for each other's count. */
const SLOTS = 16
const SIZE = 'SELECT pg_total_relation_size(CAST(CAST(@table AS text) AS regclass)) AS bytes'
const SCHEMA = 'platformctl_analytics'
/** PostgreSQL cuts longer names (NAMEDATALEN), and the names of the views are longer than the table's. */
const LONGEST_NAME = 63

/** Analytics in a schema of their own, laid out as in SQLite: a row of JSON for each batch, and views over them. */
export async function openPostgresAnalytics(url: Secret, table: string, log?: Log): Promise<AnalyticsStore> {
  const pool = createPool({ url, size: CONNECTIONS, log, named: 'the store of analytics' })
  const made = plainSql(pool).write(() => createTables(table))
  await orEnd(pool, made)
  const sql = postgresSql(pool)
  const [batches, bytes] = [named(table), named(table, '_bytes')]
  const append = `WITH stored AS (
      ${addBatch(batches)} RETURNING id
    )
    INSERT INTO ${bytes} AS kept (day, slot, bytes) SELECT CAST(@day AS integer), id % ${SLOTS}, CAST(@bytes AS bigint) FROM stored
    ON CONFLICT (day, slot) DO UPDATE SET bytes = kept.bytes + excluded.bytes`
  return analytics(sql, {
    kind: 'postgres',
    table,
    named: (ending) => named(table, ending),
    append: (batch) => sql.one(run(append, batch)),
    size: () => sql.one(scalar(SIZE, { table: batches })),
    close: () => pool.end(),
  })
}

/** The name was checked as an identifier by the contract; quoted, it means itself and keeps its case. */
function named(table: string, ending = ''): string {
  return `${SCHEMA}."${table.slice(0, LONGEST_NAME - ending.length)}${ending}"`
}

const anyMissing = (...names: readonly string[]) =>
  first('SELECT 1 FROM {each @names} WHERE to_regclass(value) IS NULL', { names })

/** Additive only, and by one process at a time: two that make a schema at once would both fail. */
function* createTables(table: string): Steps<void> {
  const [daily, events, bytes] = [named(table, '_daily'), named(table, '_events'), named(table, '_bytes')]
  // Replacing a view waits for everybody who reads it, such as a dashboard.
  if ((yield* anyMissing(daily, events, bytes)) === undefined) return
  yield* lock(LOCKS.analytics)
  yield {
    script: `
      CREATE SCHEMA IF NOT EXISTS ${SCHEMA};
      CREATE TABLE IF NOT EXISTS ${named(table)} (
        id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, batch bytea UNIQUE, received_at bigint NOT NULL,
        size integer NOT NULL, counts json NOT NULL, events json NOT NULL
      );
      CREATE OR REPLACE VIEW ${daily} AS
        SELECT one ->> 0 AS day, one ->> 1 AS kind, sum((one ->> 2)::bigint)::bigint AS count
        FROM ${named(table)} AS stored, json_array_elements(stored.counts) AS one GROUP BY 1, 2;
      CREATE OR REPLACE VIEW ${events} AS
        SELECT stored.id AS batch, stored.received_at, one ->> 0 AS kind, (one ->> 1)::bigint AS at, one -> 2 AS properties
        FROM ${named(table)} AS stored, json_array_elements(stored.events) AS one`,
  }
  if ((yield* anyMissing(bytes)) === undefined) return
  // Events stored by an earlier build are counted once, when the table of counts is created.
  yield {
    script: `
      CREATE TABLE ${bytes} (day integer, slot integer, bytes bigint NOT NULL, PRIMARY KEY (day, slot));
      INSERT INTO ${bytes}
        SELECT received_at / ${DAY_MS}, 0, sum(octet_length(counts::text) + octet_length(events::text)) FROM ${named(table)} GROUP BY 1`,
  }
}
