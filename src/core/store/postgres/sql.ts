import {
  type Answer,
  type Compiled,
  type Dialect,
  forPostgres,
  rowReader,
  type Sql,
  type Steps,
} from '../sql.ts'
import { guarded, type Pool, type Queryable, transaction } from './connection.ts'

const DIALECT: Dialect = {
  length: (column) =>
    `CASE jsonb_typeof(${column}) WHEN 'array' THEN jsonb_array_length(${column}) ELSE 0 END`,
}

const compiled = new Map<string, Compiled & { readonly read: ReturnType<typeof rowReader> }>()

/** Runs steps on a PostgreSQL, awaiting each. A transaction that another one got in the way of is begun again. */
export function postgresSql(pool: Pool): Sql {
  return {
    dialect: DIALECT,
    one: (statement) => guarded(() => perform(pool, statement)),
    read: (work) => guarded(() => perform(pool, work())),
    write: (work) => guarded(() => transaction(pool, (on) => perform(on, work()))),
  }
}

/** Runs steps on a connection, within whatever transaction it has open. */
async function perform<T>(on: Queryable, steps: Steps<T>): Promise<T> {
  let next = steps.next()
  while (next.done !== true) {
    const step = next.value
    next = steps.next('space' in step ? await hold(on, step) : await query(on, step.text, step.values))
  }
  return next.value
}

async function hold(
  on: Queryable,
  { space, name }: { readonly space: number; readonly name: string },
): Promise<Answer> {
  await on.query('SELECT pg_advisory_xact_lock(hashtextextended($1, $2))', [name, space])
  return { rows: [], changes: 0 }
}

async function query(
  on: Queryable,
  source: string,
  values: Readonly<Record<string, unknown>>,
): Promise<Answer> {
  let statement = compiled.get(source)
  if (statement === undefined) {
    statement = { ...forPostgres(source), read: rowReader() }
    compiled.set(source, statement)
  }
  const { rows, rowCount } = await on.query(
    statement.text,
    statement.names.map((name) => values[name] ?? null),
  )
  return { rows: rows.map(statement.read), changes: rowCount ?? 0 }
}
