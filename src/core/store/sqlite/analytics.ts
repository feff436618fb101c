import { existsSync, statSync } from 'node:fs'
import { statfs } from 'node:fs/promises'
import path from 'node:path'
import { type AnalyticsStore, dayOf } from '../../analytics/store.ts'
import { DAY_MS } from '../../durations.ts'
import { codeOf } from '../../error-code.ts'
import { analytics } from '../analytics.ts'
import { StoreOpenError } from '../errors.ts'
import { closeFile, type Guarded, guard, type SqliteDatabase } from './connection.ts'
import { openDatabase, plainSql } from './sql.ts'

/** A step of pruning holds the writer for a few milliseconds at the most. */
const ROWS_A_STEP = 20

/**
 * Analytics in a file of their own, so that their writes never wait for the course's, nor these for them. A batch is
 * one row of JSON with its own counts by day and kind: nothing has to be indexed by the scattered times of the events,
 * and a summary adds up counts without touching an event. `TABLE_events` shows every event as a row, `TABLE_daily` the
 * counts.
 */
export async function openSqliteAnalytics({
  file,
  table,
  onLost,
}: {
  readonly file: string
  readonly table: string
  readonly onLost?: ((cause: unknown) => void) | undefined
}): Promise<AnalyticsStore> {
  const database = await openDatabase(file, 'NORMAL', [])
  try {
    database.transaction(() => createTables(database, table)).immediate()
    return storeOver({ database, guarded: guard(database, onLost), file, table })
  } catch (error) {
    database.close()
    if (codeOf(error) !== 'SQLITE_ERROR') throw error
    throw new StoreOpenError(
      `${file} cannot hold the table that ANALYTICS_DATASTORE_TABLE names: choose a name that nothing else uses there.`,
      { cause: error },
    )
  }
}

/**
 * Additive only: what is there stays as it is. The name was checked as an identifier by the contract. The counts stand
 * before the events: a row's beginning is read without the pages that its events overflow into.
 */
export function createTables(database: SqliteDatabase, table: string): void {
  database.exec(`
    CREATE TABLE IF NOT EXISTS "${table}" (
      id INTEGER PRIMARY KEY, batch BLOB UNIQUE, received_at INTEGER NOT NULL, size INTEGER NOT NULL,
      counts TEXT NOT NULL, events TEXT NOT NULL
    );
    CREATE VIEW IF NOT EXISTS "${table}_daily" AS
      SELECT one.value ->> 0 AS day, one.value ->> 1 AS kind, sum(one.value ->> 2) AS count
      FROM "${table}" AS stored, json_each(stored.counts) AS one GROUP BY 1, 2;
    CREATE VIEW IF NOT EXISTS "${table}_events" AS
      SELECT stored.id AS batch, stored.received_at, one.value ->> 0 AS kind, one.value ->> 1 AS at, one.value -> 2 AS properties
      FROM "${table}" AS stored, json_each(stored.events) AS one;
  `)
  const counted = database.prepare(`SELECT 1 FROM sqlite_schema WHERE name = ?`).get(`${table}_bytes`)
  if (counted !== undefined) return
  // Events stored by an earlier build are counted once, when the table of counts is created.
  database.exec(`
    CREATE TABLE "${table}_bytes" (day INTEGER PRIMARY KEY, bytes INTEGER NOT NULL) STRICT;
    INSERT INTO "${table}_bytes"
      SELECT received_at / ${DAY_MS}, sum(octet_length(counts) + octet_length(events)) FROM "${table}" GROUP BY 1;
  `)
}

function storeOver({
  database,
  guarded,
  file,
  table,
}: {
  readonly database: SqliteDatabase
  readonly guarded: Guarded
  readonly file: string
  readonly table: string
}): AnalyticsStore {
  const shared = analytics(
    plainSql(database, guarded),
    { batches: `"${table}"`, daily: `"${table}_daily"`, bytes: `"${table}_bytes"` },
    ROWS_A_STEP,
  )
  const sql = {
    append: database.prepare(
      `INSERT INTO "${table}" (batch, received_at, size, counts, events) VALUES (?, ?, ?, ?, ?) ON CONFLICT (batch) DO NOTHING`,
    ),
    addBytes: database.prepare(
      `INSERT INTO "${table}_bytes" (day, bytes) VALUES (?, ?) ON CONFLICT (day) DO UPDATE SET bytes = bytes + excluded.bytes`,
    ),
  }
  const append = database.transaction(
    (id: Uint8Array | null, receivedAt: number, size: number, sums: string, rows: string) => {
      if (sql.append.run(id, receivedAt, size, sums, rows).changes === 0) return undefined
      const bytes = Buffer.byteLength(sums) + Buffer.byteLength(rows)
      sql.addBytes.run(dayOf(receivedAt), bytes)
      return bytes
    },
  )
  return {
    ...shared,
    append: async ({ id, receivedAt, events, counts }) => {
      const rows = JSON.stringify(events.map(({ kind, at, properties }) => [kind, at, properties]))
      const sums = JSON.stringify(counts.map(({ day, kind, count }) => [day, kind, count]))
      const bytes = guarded(() => append.immediate(id ?? null, receivedAt, events.length, sums, rows))
      return bytes === undefined ? { kind: 'repeated' } : { kind: 'stored', bytes }
    },
    async usage(day) {
      const used = await shared.usage(day)
      const { bavail, blocks, bsize } = await statfs(path.dirname(path.resolve(file)))
      return { ...used, disk: { free: bavail * bsize, size: blocks * bsize } }
    },
    async status() {
      const bytes = existsSync(file) ? statSync(file).size : 0
      return { kind: 'sqlite', table, ...(await shared.sizes()), bytes }
    },
    async close() {
      if (database.open) closeFile(database)
    },
  }
}
