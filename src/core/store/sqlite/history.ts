import type { History } from '../../status/history.ts'
import { closeFile, guard, IN_MEMORY, openDatabase } from './connection.ts'
import { read } from './history-reader.ts'
import { writer } from './history-writer.ts'

/** Steps of the schema, in order: never edited once released, only added to. */
const MIGRATIONS: readonly string[] = [
  `
  CREATE TABLE series (
    id INTEGER PRIMARY KEY,
    service TEXT NOT NULL,
    probe TEXT NOT NULL,
    first_at INTEGER NOT NULL,
    at INTEGER NOT NULL,
    state TEXT NOT NULL,
    reason TEXT,
    UNIQUE (service, probe)
  ) STRICT;
  CREATE TABLE period (
    length INTEGER NOT NULL,
    start INTEGER NOT NULL,
    series INTEGER NOT NULL,
    ok INTEGER NOT NULL DEFAULT 0,
    degraded INTEGER NOT NULL DEFAULT 0,
    failing INTEGER NOT NULL DEFAULT 0,
    skipped INTEGER NOT NULL DEFAULT 0,
    seen INTEGER NOT NULL,
    latency BLOB NOT NULL DEFAULT x'',
    PRIMARY KEY (length, start, series)
  ) STRICT, WITHOUT ROWID;
  CREATE TABLE incident (
    id INTEGER PRIMARY KEY,
    series INTEGER NOT NULL,
    state TEXT NOT NULL,
    reason TEXT,
    began_at INTEGER NOT NULL,
    seen_at INTEGER NOT NULL,
    ended_at INTEGER
  ) STRICT;
  CREATE INDEX incident_open ON incident (series) WHERE ended_at IS NULL;
  CREATE INDEX incident_series ON incident (series, began_at);
  CREATE TABLE build (service TEXT PRIMARY KEY, build TEXT, since INTEGER NOT NULL, seen_at INTEGER NOT NULL) STRICT, WITHOUT ROWID;
  `,
]

/**
 * The history in an SQLite file of its own (`file` undefined: in memory). Synchronous NORMAL: a killed process loses
 * nothing that was recorded, a power cut perhaps the last minutes, which then are a gap.
 */
export function openSqliteHistory(file: string | undefined, onLost?: (cause: unknown) => void): History {
  const database = openDatabase({ file: file ?? IN_MEMORY, synchronous: 'NORMAL', migrations: MIGRATIONS })
  const guarded = guard(database, onLost)
  const write = writer(database)
  const record = database.transaction((round: Parameters<History['record']>[0]) => write(round))
  return {
    persistent: file !== undefined,
    record: async (round) => guarded(() => record.immediate(round)),
    read: async (now) => guarded(() => read(database, now)),
    async close() {
      if (!database.open) return
      if (file === undefined) database.close()
      else closeFile(database)
    },
  }
}
