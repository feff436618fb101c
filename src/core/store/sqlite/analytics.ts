import { existsSync, statSync } from 'node:fs'
import { setImmediate } from 'node:timers/promises'
import type { AnalyticsStore, DayCount, StoredBatch } from '../../analytics/store.ts'
import { StoreOpenError } from '../store.ts'
import { guarded, openDatabase, type SqliteDatabase } from './connection.ts'

/** A step of pruning holds the writer for a few milliseconds at the most. */
const ROWS_A_STEP = 20

/**
 * Analytics in a file of their own, so that their writes never wait for the course's, nor these for them. A batch is
 * one row of JSON, and its counts are added to a small table in the same transaction: nothing has to be indexed by
 * the scattered times of the events, and a summary reads counts, not events. `TABLE_events` is a view that shows
 * every event as a row.
 */
export function openSqliteAnalytics({
  file,
  table,
}: {
  readonly file: string
  readonly table: string
}): AnalyticsStore {
  const database = openDatabase({ file, synchronous: 'NORMAL', migrations: [] })
  const daily = `${table}_daily`
  try {
    database.transaction(() => createTables(database, table, daily)).immediate()
    return storeOver(database, file, table, daily)
  } catch (error) {
    database.close()
    if (!(error instanceof Error && 'code' in error && error.code === 'SQLITE_ERROR')) throw error
    throw new StoreOpenError(
      `${file} cannot hold the table that ANALYTICS_DATASTORE_TABLE names: choose a name that nothing else uses there.`,
      { cause: error },
    )
  }
}

/** Additive only: what is there stays as it is. The name was checked as an identifier by the contract. */
function createTables(database: SqliteDatabase, table: string, daily: string): void {
  database.exec(`
    CREATE TABLE IF NOT EXISTS "${table}" (
      id INTEGER PRIMARY KEY, batch BLOB UNIQUE, received_at INTEGER NOT NULL, size INTEGER NOT NULL, events TEXT NOT NULL
    );
    CREATE TABLE IF NOT EXISTS "${daily}" (
      day TEXT NOT NULL, kind TEXT NOT NULL, count INTEGER NOT NULL, PRIMARY KEY (day, kind)
    ) WITHOUT ROWID;
    CREATE VIEW IF NOT EXISTS "${table}_events" AS
      SELECT stored.id AS batch, stored.received_at, event.value ->> 0 AS kind, event.value ->> 1 AS at, event.value -> 2 AS properties
      FROM "${table}" AS stored, json_each(stored.events) AS event;
  `)
}

function storeOver(database: SqliteDatabase, file: string, table: string, daily: string): AnalyticsStore {
  const sql = {
    insert: database.prepare(
      `INSERT INTO "${table}" (batch, received_at, size, events) VALUES (?, ?, ?, ?) ON CONFLICT (batch) DO NOTHING`,
    ),
    count: database.prepare(
      `INSERT INTO "${daily}" (day, kind, count) VALUES (?, ?, ?) ON CONFLICT (day, kind) DO UPDATE SET count = count + excluded.count`,
    ),
    counts: database.prepare(`SELECT day, kind, count FROM "${daily}" WHERE day >= ? ORDER BY day, kind`),
    // Rows stand in the order of their arrival, so the oldest are the first.
    prune: database.prepare(
      `DELETE FROM "${table}" WHERE received_at < ? AND id IN (SELECT id FROM "${table}" ORDER BY id LIMIT ${ROWS_A_STEP})`,
    ),
    pruneDaily: database.prepare(`DELETE FROM "${daily}" WHERE day < ?`),
    status: database.prepare(`SELECT count(*) AS batches, coalesce(sum(size), 0) AS events FROM "${table}"`),
    ping: database.prepare(`SELECT 1 FROM "${table}" LIMIT 1`),
  }
  const append = database.transaction((batch: StoredBatch, events: string): 'stored' | 'repeated' => {
    if (sql.insert.run(batch.id ?? null, batch.receivedAt, batch.events.length, events).changes === 0)
      return 'repeated'
    for (const { day, kind, count } of batch.counts) sql.count.run(day, kind, count)
    return 'stored'
  })
  return {
    append: async (batch) => {
      const events = JSON.stringify(batch.events.map(({ kind, at, properties }) => [kind, at, properties]))
      return guarded(() => append.immediate(batch, events))
    },
    // The columns are those of DayCount; kinds were checked before they were written.
    counts: async (since = '') => guarded(() => sql.counts.all(since) as DayCount[]),
    async prune(before) {
      guarded(() => sql.pruneDaily.run(new Date(before).toISOString().slice(0, 10)))
      while (guarded(() => sql.prune.run(before).changes) === ROWS_A_STEP) await setImmediate()
    },
    status: async () =>
      guarded(() => {
        const { batches, events } = sql.status.get() as { batches: number; events: number }
        return { kind: 'sqlite', table, batches, events, bytes: existsSync(file) ? statSync(file).size : 0 }
      }),
    ping: async () => void guarded(() => sql.ping.get()),
    async close() {
      if (!database.open) return
      database.pragma('wal_checkpoint(TRUNCATE)')
      database.close()
    },
  }
}
