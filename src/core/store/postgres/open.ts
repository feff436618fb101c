import type { AnalyticsStore } from '../../analytics/store.ts'
import { trailing } from '../../calls.ts'
import { DAY_MS } from '../../durations.ts'
import { storeFault } from '../../errors.ts'
import { type Log, within } from '../../host.ts'
import type { Secret } from '../../secret.ts'
import type { SharedHistory } from '../../status/history.ts'
import { addBatch, analytics } from '../analytics.ts'
import { sharedHistory } from '../health.ts'
import { POSTGRES_STEPS } from '../migrations.ts'
import { readSchema } from '../schema.ts'
import { first, LOCKS, lock, ping, run, type Steps, scalar } from '../sql.ts'
import { operations, type Store, type StoreOptions } from '../store.ts'
import { createPool, guarded, orEnd, silentServer } from './connection.ts'
import { assertThere, migrate, performer, plainSql, postgresSql, SIZE } from './sql.ts'

const PING_MS = 2000
const GROW = `UPDATE platformctl.meta SET value = (SELECT string_agg(md5(random()::text), '') FROM generate_series(1, 2000))
  WHERE name = 'ping'`

/** Recording a round waits no longer: the next one comes a minute later. */
const RECORD_MS = 5000

/** The record of health that machines share in a PostgreSQL whose store was opened before. */
export function openPostgresHealth(url: Secret, log?: Log): SharedHistory {
  const pool = createPool({ url, size: 1, limitMs: RECORD_MS, log })
  return { ...sharedHistory(postgresSql(pool)), close: () => pool.end() }
}

/** The store in a PostgreSQL that several machines share; everything of ours is in its schema `platformctl`. */
export async function openPostgres(url: Secret, options: StoreOptions): Promise<Store> {
  const { poolSize: size = 10, log, leaseClock, mustExist, onMigrate } = options
  let full = false
  const onFault = (error: unknown) => {
    full ||= storeFault(error) === 'disk_full'
  }
  const pool = createPool({ url, size, log, onFault })
  if (mustExist) await orEnd(pool, plainSql(pool).read(assertThere))
  await orEnd(pool, migrate(pool, undefined, onMigrate))
  // One at a time; callers that arrive meanwhile share the next, so health checks never hold a second connection.
  const pingOnce = trailing(async () => {
    // After a full disk, call the store healthy only once there is room for more than a row that exists already.
    if (full) await pool.queryWithin(PING_MS, GROW)
    full = false
    await performer()({ query: (text, values) => pool.queryWithin(PING_MS, text, values) }, ping())
  })
  const sql = postgresSql(pool, { leaseClock })
  const kind = 'postgres'
  return {
    kind,
    persistent: true,
    ...operations(sql),
    ping: () => guarded(() => within(PING_MS, pingOnce(), silentServer)),
    status: () =>
      sql.read(function* () {
        const { version, latest } = yield* readSchema(POSTGRES_STEPS.length)
        // Its own tools make its backups.
        return { kind, version, latest, bytes: yield* scalar<number>(SIZE), backupAt: undefined }
      }),
    close: () => pool.end(),
  }
}

/** Ingest is one statement a batch: more connections would only wait for the same disk. */
const CONNECTIONS = 4
/** Batches of a day are counted in several rows, so that commits seldom wait for each other's count. */
const SLOTS = 16
const TABLE_SIZE = 'SELECT pg_total_relation_size(CAST(CAST(@table AS text) AS regclass)) AS bytes'
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
    size: () => sql.one(scalar(TABLE_SIZE, { table: batches })),
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
