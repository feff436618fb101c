import type Database from 'better-sqlite3'
import { storableText } from '../rows.ts'
import {
  type Answer,
  type Dialect,
  forSqlite,
  rowReader,
  type Sql,
  type Step,
  type Steps,
  type Values,
} from '../sql.ts'
import type { Guarded, SqliteDatabase } from './connection.ts'

export const DIALECT: Dialect = {
  length: (column) => `CASE WHEN json_valid(${column}) THEN json_array_length(${column}) ELSE 0 END`,
  elements: (parameter) => `SELECT value FROM json_each(${parameter})`,
  integer: (column) =>
    `CASE WHEN ${column} NOT GLOB '*[^0-9]*' THEN CAST(${column} AS INTEGER) ELSE 2000000000 END`,
  by: (index) => `INDEXED BY ${index}`,
}

/** Runs steps on an SQLite file, each operation in one turn of the event loop. */
export function sqliteSql(database: SqliteDatabase, guarded: Guarded, leaseClock: () => number): Sql {
  const perform = performer(database, leaseClock)
  return {
    dialect: DIALECT,
    one: async (statement) => guarded(() => perform(statement)),
    read: async (work) => guarded(() => perform(work())),
    // IMMEDIATE: takes the write lock first, so that a transaction never fails half-way for want of it.
    write: async (work) => guarded(() => database.transaction(() => perform(work())).immediate()),
  }
}

/** Runs steps at once, within whatever transaction is open. Statements are prepared when they are first used. */
export function performer(database: SqliteDatabase, leaseClock: () => number): <T>(steps: Steps<T>) => T {
  const prepared = new Map<string, (values: Values) => Answer>()
  const answer = (step: Step): Answer => {
    if ('space' in step) return NOTHING
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
): (values: Values) => Answer {
  const { text, names } = forSqlite(source)
  const statement: Database.Statement = database.prepare(text)
  const read = rowReader()
  return (values) => {
    const bound: Record<string, unknown> = {}
    for (const name of names)
      bound[name] = name === 'leaseNow' ? Math.floor(leaseClock()) : storable(values[name])
    if (!statement.reader) return { rows: [], changes: statement.run(bound).changes }
    const rows = (statement.all(bound) as Record<string, unknown>[]).map(read)
    return { rows, changes: rows.length }
  }
}

function storable(value: unknown): unknown {
  if (typeof value === 'boolean') return Number(value)
  // As PostgreSQL has to: the same value is taken by both stores, and comes back the same.
  return typeof value === 'string' ? storableText(value) : (value ?? null)
}
