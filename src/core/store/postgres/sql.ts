import {
  type Answer,
  type Compiled,
  type Dialect,
  forPostgres,
  rowReader,
  type Sql,
  type Steps,
  type Values,
} from '../sql.ts'
import { guarded, NOW_MS, type Pool, type Queryable, transaction } from './connection.ts'

export const DIALECT: Dialect = {
  length: (column) =>
    `CASE jsonb_typeof(${column}) WHEN 'array' THEN jsonb_array_length(${column}) ELSE 0 END`,
  elements: (parameter) => `SELECT jsonb_array_elements_text(CAST(${parameter} AS jsonb))`,
  integer: (column) => `CASE WHEN ${column} ~ '^[0-9]{1,9}$' THEN ${column}::bigint ELSE 2000000000 END`,
  by: () => '',
}

/** Runs steps on a PostgreSQL, awaiting each. A transaction that another one got in the way of is begun again. */
export function postgresSql(pool: Pool, leaseClock?: () => number): Sql {
  const run = performer(leaseClock)
  return {
    dialect: DIALECT,
    one: (statement) => guarded(() => run(pool, statement)),
    read: (work) => guarded(() => run(pool, work())),
    write: (work) => guarded(() => transaction(pool, (on) => run(on, work()))),
  }
}

/** Runs steps on a connection, within whatever transaction it has open. `leaseClock`: instead of the server's clock. */
export function performer(leaseClock?: () => number): <T>(on: Queryable, steps: Steps<T>) => Promise<T> {
  const compiled = new Map<string, Compiled & { readonly read: ReturnType<typeof rowReader> }>()
  const query = async (on: Queryable, source: string, values: Values): Promise<Answer> => {
    let statement = compiled.get(source)
    if (statement === undefined) {
      statement = { ...forPostgres(source, leaseClock ? undefined : NOW_MS), read: rowReader() }
      compiled.set(source, statement)
    }
    const { rows, rowCount } = await on.query(
      statement.text,
      statement.names.map((name) =>
        name === 'leaseNow' && leaseClock ? Math.floor(leaseClock()) : (values[name] ?? null),
      ),
    )
    return { rows: rows.map(statement.read), changes: rowCount ?? 0 }
  }
  return async (on, steps) => {
    let next = steps.next()
    while (next.done !== true) {
      const step = next.value
      next = steps.next('space' in step ? await hold(on, step) : await query(on, step.text, step.values))
    }
    return next.value
  }
}

async function hold(
  on: Queryable,
  { space, name }: { readonly space: number; readonly name: string },
): Promise<Answer> {
  await on.query('SELECT pg_advisory_xact_lock(hashtextextended($1, $2))', [name, space])
  return { rows: [], changes: 0 }
}
