import type Database from 'better-sqlite3'
import { faultOf } from '../../errors.ts'
import { forSqlite, spelled } from '../dialect.ts'
import type { JournalEntry } from '../journal.ts'
import { SQLITE_STEPS } from '../migrations.ts'
import { migrate, type OnMigrate } from '../schema.ts'
import { type Answer, boundValue, NOTHING, rowReader, type Sql, type Step, type Steps } from '../sql.ts'
import { asOpening, connect, type Guarded, type SqliteDatabase, scrubFile } from './connection.ts'

/** What the steps of an SQLite file need. Without the rest, it is a file of which this process alone knows. */
export interface SqliteParts {
  readonly database: SqliteDatabase
  readonly guarded?: Guarded
  /** Milliseconds by a clock that all processes share, and nobody can set. */
  readonly leaseClock?: () => number
  /** The journal beside the file; undefined: it has none, as a store in memory. */
  readonly journal?:
    | { add(...entries: readonly JournalEntry[]): void; forget(identity: string): boolean }
    | undefined
  /** What an erasure rewrites; undefined: in memory. */
  readonly file?: string | undefined
}

/** Runs steps on an SQLite file, each operation in one turn of the event loop. */
export function sqliteSql(parts: SqliteParts): Sql {
  const { database, guarded = (work) => work(), journal, file } = parts
  const perform = performer(database, parts)
  // IMMEDIATE: takes the write lock first, so that a transaction never fails half-way for want of it.
  const whole = <T>(work: () => T): T => guarded(() => database.transaction(work).immediate())
  return {
    one: async (statement) => guarded(() => perform(statement)),
    read: async (work) => guarded(() => perform(work())),
    write: async (work) => whole(() => perform(work())),
    async journal(...entries) {
      // Under the write lock: an erasure in another process may be rewriting the journal.
      if (journal && entries.length > 0) whole(() => journal.add(...entries))
    },
    scrub: async (texts) => file === undefined || guarded(() => scrubFile(database, file, texts)),
  }
}

/** Opens (and creates) a file in WAL mode, migrated. `FULL` survives a power cut, `NORMAL` only a killed process. */
export async function openDatabase(
  file: string,
  synchronous: 'FULL' | 'NORMAL',
  steps: readonly string[],
  onMigrate?: OnMigrate,
): Promise<SqliteDatabase> {
  const database = connect({ file, synchronous })
  try {
    // An earlier process's log may not be on the disk yet: rewrite and confirm it before new commits follow it. A
    // process that has the file open already holds its lock, and answers for the log itself.
    asOpening(file, () => faultOf(() => database.pragma('wal_checkpoint(PASSIVE)'), /^SQLITE_BUSY/))
    await migrateFile(database, file, steps, onMigrate)
    return database
  } catch (error) {
    database.close()
    throw error
  }
}

export const migrateFile = (
  database: SqliteDatabase,
  place: string,
  steps = SQLITE_STEPS,
  onMigrate?: OnMigrate,
) => migrate(sqliteSql({ database, guarded: (work) => asOpening(place, work) }), { steps, place, onMigrate })

/** Runs steps at once, within whatever transaction is open. Statements are prepared when they are first used. */
export function performer(database: SqliteDatabase, parts: Partial<SqliteParts> = {}) {
  const { leaseClock = () => 0, journal } = parts
  const prepared = new Map<string, ReturnType<typeof prepare>>()
  const answer = (step: Step): Answer => {
    if ('space' in step) return NOTHING
    if ('script' in step) {
      database.exec(spelled(step.script, 'sqlite'))
      return NOTHING
    }
    if ('journal' in step) {
      const forgotten = step.forget === undefined || (journal?.forget(step.forget) ?? true)
      journal?.add(...step.journal)
      return { rows: [], changes: Number(forgotten) }
    }
    const execute = prepared.get(step.text) ?? prepare(database, leaseClock, step.text)
    prepared.set(step.text, execute)
    return execute(step.values, step.raw)
  }
  return <T>(steps: Steps<T>): T => {
    let next = steps.next()
    while (next.done !== true) next = steps.next(answer(next.value))
    return next.value
  }
}

function prepare(database: SqliteDatabase, leaseClock: () => number, source: string) {
  const { text, names } = forSqlite(source)
  const statement: Database.Statement = database.prepare(text)
  const read = rowReader()
  return (values: object, raw?: boolean): Answer => {
    const bound: Record<string, unknown> = {}
    for (const name of names) {
      const value = name === 'leaseNow' ? Math.floor(leaseClock()) : boundValue(values, name)
      // SQLite has no booleans.
      bound[name] = typeof value === 'boolean' ? Number(value) : value
    }
    if (!statement.reader) return { rows: [], changes: statement.run(bound).changes }
    const rows = statement.all(bound) as Record<string, unknown>[]
    return { rows: raw ? rows : rows.map(read), changes: rows.length }
  }
}
