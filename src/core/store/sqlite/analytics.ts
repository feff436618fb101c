import { statfs } from 'node:fs/promises'
import path from 'node:path'
import { DAY_MS } from '../../durations.ts'
import { codeOf } from '../../errors.ts'
import { addBatch, analytics } from '../analytics.ts'
import { cannotOpenFor } from '../errors.ts'
import { quoted, run, type Steps } from '../sql.ts'
import type { OnLost } from '../store.ts'
import { closeFile, guard, type SqliteDatabase } from './connection.ts'
import { sizeOf } from './files.ts'
import { openDatabase, sqliteSql } from './sql.ts'

/** A step of pruning holds the writer for a few milliseconds at the most. */
const ROWS_A_STEP = 20

/**
 * Analytics in a file of their own, so that no writes wait for the course's. A batch is one row of JSON with its counts by
 * day and kind, so that no index and no summary touches events. `TABLE_events` shows each as a row, `TABLE_daily` the counts.
 */
export async function openSqliteAnalytics(file: string, table: string, onLost?: OnLost) {
  const database = await openDatabase(file, 'NORMAL', [])
  try {
    database.transaction(() => createTables(database, table)).immediate()
  } catch (error) {
    database.close()
    if (codeOf(error) !== 'SQLITE_ERROR') throw error
    const unopened = cannotOpenFor(error)
    throw unopened`${file} cannot hold the table that ANALYTICS_DATASTORE_TABLE names: choose a name that nothing else uses there.`
  }
  const sql = sqliteSql({ database, guarded: guard(database, onLost) })
  const named = (ending: string) => quoted(`${table}${ending}`)
  const add = addBatch(named(''))
  const count = `INSERT INTO ${named('_bytes')} (day, bytes) VALUES (@day, @bytes) ON CONFLICT (day) DO UPDATE SET bytes = bytes + excluded.bytes`
  // Once, not for each batch: V8 keeps a new generator function, and the batch with it, until the old heap is collected.
  function* append(batch: object): Steps<number> {
    return (yield* run(add, batch)) === 0 ? 0 : yield* run(count, batch)
  }
  return analytics(sql, {
    kind: 'sqlite',
    table,
    named,
    rowsAStep: ROWS_A_STEP,
    append: (batch) => sql.write(() => append(batch)),
    size: async () => sizeOf(file),
    async disk() {
      const { bavail, blocks, bsize } = await statfs(path.dirname(path.resolve(file)))
      return { free: bavail * bsize, size: blocks * bsize }
    },
    close: async () => closeFile(database),
  })
}

/** Additive only; the contract checked the name. Counts stand before events, whose overflow pages are then not read for them. */
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
  if (database.prepare('SELECT 1 FROM sqlite_schema WHERE name = ?').get(`${table}_bytes`)) return
  // Events stored by an earlier build are counted once, when the table of counts is created.
  database.exec(`
    CREATE TABLE "${table}_bytes" (day INTEGER PRIMARY KEY, bytes INTEGER NOT NULL) STRICT;
    INSERT INTO "${table}_bytes"
      SELECT received_at / ${DAY_MS}, sum(octet_length(counts) + octet_length(events)) FROM "${table}" GROUP BY 1;
  `)
}
