import type Database from 'better-sqlite3'
import { codeOf } from '../../error-code.ts'
import type { Journal } from '../journal.ts'
import { SQLITE_STEPS } from '../migrations.ts'
import { migrate } from '../schema.ts'
import {
  type Answer,
  boundValue,
  type Dialect,
  first,
  forSqlite,
  quoted,
  rowReader,
  type Sql,
  type Step,
  type Steps,
  script,
} from '../sql.ts'
import { asOpening, connect, type Guarded, type SqliteDatabase } from './connection.ts'
import { scrubFile } from './scrub.ts'

export const DIALECT: Dialect = {
  length: (column) => `CASE WHEN json_valid(${column}) THEN json_array_length(${column}) ELSE 0 END`,
  each: (array) => `json_each(${array})`,
  rows: (_table, columns) =>
    // As JSONB each row is parsed once, and not for each of its columns.
    `(SELECT ${columns.map((column) => `value ->> '${column}' AS ${column}`).join(', ')} FROM jsonb_each(@rows))`,
  integer: (column) =>
    `CASE WHEN ${column} NOT GLOB '*[^0-9]*' THEN CAST(${column} AS INTEGER) ELSE 2000000000 END`,
  bytes: (column) => `unhex(${column}, '\\x')`,
  inserted: 'rowid',
  by: (index) => `INDEXED BY ${index}`,
  hasFailed: (failed) => `(failures > 0) = ${Number(failed)}`,
  byBytes: (column) => column,
  isForeign: (column) => `${column} GLOB '*[^ -~]*'`,
  hasTable: 'SELECT 1 FROM sqlite_schema WHERE name = @table',
  tables: "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%' ORDER BY name",
  columns: 'SELECT name FROM pragma_table_info(@table)',
  named: quoted,
  *version() {
    return (
      (yield* first<{ version: number }>('SELECT user_version AS version FROM pragma_user_version'))
        ?.version ?? 0
    )
  },
  setVersion: (version) => script(`PRAGMA user_version = ${version}`),
  closeTo: (schema) => `INSERT OR REPLACE INTO meta (name, value)
    SELECT 'readable_from', user_version || ':' || max(${schema}, coalesce(CAST(substr(value, instr(value, ':') + 1) AS INTEGER), 0))
    FROM pragma_user_version LEFT JOIN meta ON name = 'readable_from'`,
}

/** What the steps of an SQLite file need. */
export interface SqliteParts {
  readonly database: SqliteDatabase
  readonly guarded: Guarded
  /** Milliseconds by a clock that all processes share, and nobody can set. */
  readonly leaseClock: () => number
  /** Undefined: it has none, as a store in memory. */
  readonly journal: Journal | undefined
  /** Undefined: in memory. */
  readonly file: string | undefined
}

/** Runs steps on an SQLite file, each operation in one turn of the event loop. */
export function sqliteSql(parts: SqliteParts): Sql {
  const { database, guarded, journal, file } = parts
  const perform = performer(parts)
  return {
    dialect: DIALECT,
    one: async (statement) => guarded(() => perform(statement)),
    read: async (work) => guarded(() => perform(work())),
    // IMMEDIATE: takes the write lock first, so that a transaction never fails half-way for want of it.
    write: async (work) => guarded(() => database.transaction(() => perform(work())).immediate()),
    async journal(...entries) {
      if (journal === undefined || entries.length === 0) return
      // Under the write lock: an erasure in another process may be rewriting the journal.
      guarded(() => database.transaction(() => journal.add(...entries)).immediate())
    },
    scrub: async (texts) => guarded(() => scrubFile(database, file, texts)),
  }
}

/** What the steps need on a file of which this process alone knows, such as the image of a backup: no lease, and no journal. */
const PLAIN = { leaseClock: () => 0, journal: undefined, file: undefined }
export const plainSql = (database: SqliteDatabase, guarded: Guarded = (work) => work()): Sql =>
  sqliteSql({ database, guarded, ...PLAIN })
export const plainPerformer = (database: SqliteDatabase) => performer({ database, ...PLAIN })

/**
 * Opens (and creates) an SQLite file in WAL mode and brings its schema up to date. `synchronous: 'FULL'` survives a
 * power cut; `'NORMAL'` only a killed process.
 */
export async function openDatabase(
  file: string,
  synchronous: 'FULL' | 'NORMAL',
  steps: readonly string[],
): Promise<SqliteDatabase> {
  const database = connect({ file, synchronous })
  try {
    // An earlier process's log may not be on the disk yet: rewrite and confirm it before new commits follow it.
    asOpening(file, () => confirmLog(database))
    await migrateFile(database, file, steps)
    return database
  } catch (error) {
    database.close()
    throw error
  }
}

/** A process that has the file open already holds its lock, and answers for the log itself. */
function confirmLog(database: SqliteDatabase): void {
  try {
    database.pragma('wal_checkpoint(PASSIVE)')
  } catch (error) {
    if (!codeOf(error).startsWith('SQLITE_BUSY')) throw error
  }
}

/** Brings the schema of a file up to date. */
export const migrateFile = (
  database: SqliteDatabase,
  place: string,
  steps: readonly string[] = SQLITE_STEPS,
): Promise<void> =>
  migrate(
    plainSql(database, (work) => asOpening(place, work)),
    { steps, place },
  )

/** Runs steps at once, within whatever transaction is open. Statements are prepared when they are first used. */
export function performer({
  database,
  leaseClock,
  journal,
}: Pick<SqliteParts, 'database' | 'leaseClock' | 'journal'>): <T>(steps: Steps<T>) => T {
  const prepared = new Map<string, (values: object) => Answer>()
  const answer = (step: Step): Answer => {
    if ('space' in step) return NOTHING
    if ('script' in step) {
      database.exec(step.script)
      return NOTHING
    }
    if ('journal' in step) {
      const forgotten = step.forget === undefined || (journal?.forget(step.forget) ?? true)
      journal?.add(...step.journal)
      return { rows: [], changes: Number(forgotten) }
    }
    let execute = prepared.get(step.text)
    if (execute === undefined) {
      execute = prepare(database, leaseClock, step.text)
      prepared.set(step.text, execute)
    }
    return execute(step.values)
  }
  return (steps) => {
    let next = steps.next()
    while (next.done !== true) next = steps.next(answer(next.value))
    return next.value
  }
}

const NOTHING: Answer = { rows: [], changes: 0 }

function prepare(
  database: SqliteDatabase,
  leaseClock: () => number,
  source: string,
): (values: object) => Answer {
  const { text, names } = forSqlite(source)
  const statement: Database.Statement = database.prepare(text)
  const read = rowReader()
  return (values) => {
    const bound: Record<string, unknown> = {}
    for (const name of names)
      bound[name] = name === 'leaseNow' ? Math.floor(leaseClock()) : bindable(values, name)
    if (!statement.reader) return { rows: [], changes: statement.run(bound).changes }
    const rows = (statement.all(bound) as Record<string, unknown>[]).map(read)
    return { rows, changes: rows.length }
  }
}

/** SQLite has no booleans. */
function bindable(values: object, name: string): unknown {
  const value = boundValue(values, name)
  return typeof value === 'boolean' ? Number(value) : value
}
