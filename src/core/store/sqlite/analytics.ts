import { existsSync, statSync } from 'node:fs'
import { statfs } from 'node:fs/promises'
import path from 'node:path'
import { setImmediate } from 'node:timers/promises'
import { type AnalyticsStore, type DayCount, dayOf } from '../../analytics/store.ts'
import { DAY_MS } from '../../durations.ts'
import { codeOf } from '../../error-code.ts'
import { StoreOpenError } from '../store.ts'
import { closeFile, type Guarded, guard, openDatabase, type SqliteDatabase } from './connection.ts'

/** A step of pruning holds the writer for a few milliseconds at the most. */
const ROWS_A_STEP = 20

/**
 * Analytics in a file of their own, so that their writes never wait for the course's, nor these for them. A batch is
 * one row of JSON with its own counts by day and kind: nothing has to be indexed by the scattered times of the events,
 * and a summary adds up counts without touching an event. `TABLE_events` shows every event as a row, `TABLE_daily` the
 * counts.
 */
export function openSqliteAnalytics({
  file,
  table,
  onLost,
}: {
  readonly file: string
  readonly table: string
  readonly onLost?: ((cause: unknown) => void) | undefined
}): AnalyticsStore {
  const database = openDatabase({ file, synchronous: 'NORMAL', migrations: [] })
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
  const sql = {
    append: database.prepare(
      `INSERT INTO "${table}" (batch, received_at, size, counts, events) VALUES (?, ?, ?, ?, ?) ON CONFLICT (batch) DO NOTHING`,
    ),
    counts: database.prepare(
      `SELECT day, kind, count FROM "${table}_daily" WHERE day >= ? ORDER BY day, kind`,
    ),
    // Rows stand in the order of their arrival, so the oldest are the first.
    prune: database.prepare(
      `DELETE FROM "${table}" WHERE received_at < ? AND id IN (SELECT id FROM "${table}" ORDER BY id LIMIT ${ROWS_A_STEP})`,
    ),
    addBytes: database.prepare(
      `INSERT INTO "${table}_bytes" (day, bytes) VALUES (?, ?) ON CONFLICT (day) DO UPDATE SET bytes = bytes + excluded.bytes`,
    ),
    dropBytes: database.prepare(`DELETE FROM "${table}_bytes" WHERE day < ?`),
    usage: database.prepare(
      `SELECT coalesce(sum(bytes), 0) AS total, coalesce(sum(bytes) FILTER (WHERE day = ?), 0) AS today FROM "${table}_bytes"`,
    ),
    status: database.prepare(`SELECT count(*) AS batches, coalesce(sum(size), 0) AS events FROM "${table}"`),
    ping: database.prepare(`SELECT 1 FROM "${table}" LIMIT 1`),
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
    append: async ({ id, receivedAt, events, counts }) => {
      const rows = JSON.stringify(events.map(({ kind, at, properties }) => [kind, at, properties]))
      const sums = JSON.stringify(counts.map(({ day, kind, count }) => [day, kind, count]))
      const bytes = guarded(() => append.immediate(id ?? null, receivedAt, events.length, sums, rows))
      return bytes === undefined ? { kind: 'repeated' } : { kind: 'stored', bytes }
    },
    async usage(day) {
      // One row, whose columns are numbers.
      const used = guarded(() => sql.usage.get(day) as { total: number; today: number })
      const { bavail, blocks, bsize } = await statfs(path.dirname(path.resolve(file)))
      return { ...used, disk: { free: bavail * bsize, size: blocks * bsize } }
    },
    // The columns are those of DayCount; kinds were checked before they were written.
    counts: async (since = '') => guarded(() => sql.counts.all(since) as DayCount[]),
    async prune(before) {
      while (guarded(() => sql.prune.run(before).changes) === ROWS_A_STEP) await setImmediate()
      guarded(() => sql.dropBytes.run(dayOf(before)))
    },
    status: async () =>
      guarded(() => {
        const { batches, events } = sql.status.get() as { batches: number; events: number }
        return { kind: 'sqlite', table, batches, events, bytes: existsSync(file) ? statSync(file).size : 0 }
      }),
    ping: async () => void guarded(() => sql.ping.get()),
    async close() {
      if (database.open) closeFile(database)
    },
  }
}
