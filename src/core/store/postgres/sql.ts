import {
  type Answer,
  boundValue,
  type Compiled,
  type Dialect,
  forPostgres,
  rowReader,
  type Sql,
  type Step,
  type Steps,
} from '../sql.ts'
import { guarded, NOW_MS, type Pool, type Queryable, transaction } from './connection.ts'

export const DIALECT: Dialect = {
  length: (column) =>
    `CASE jsonb_typeof(${column}) WHEN 'array' THEN jsonb_array_length(${column}) ELSE 0 END`,
  each: (array) => `jsonb_array_elements_text(CAST(${array} AS jsonb)) AS value`,
  rows: (table) => `jsonb_populate_recordset(NULL::platformctl.${table}, CAST(@rows AS jsonb))`,
  integer: (column) => `CASE WHEN ${column} ~ '^[0-9]{1,9}$' THEN ${column}::bigint ELSE 2000000000 END`,
  bytes: (column) => column,
  by: () => '',
  // The predicates of the two partial indexes, word for word: the planner takes an index only for its own words.
  hasFailed: (failed) => (failed ? 'failures > 0' : 'failures = 0'),
  byBytes: (column) => `${column} COLLATE "C"`,
  isForeign: (column) => `${column} ~ '[^ -~]'`,
  closeTo: (schema) => `INSERT INTO meta (name, value)
    SELECT 'readable_from', version || ':' || greatest(${schema}, substring(value from ':([0-9]+)$')::integer)
    FROM platformctl.schema_version LEFT JOIN meta ON name = 'readable_from'
    ON CONFLICT (name) DO UPDATE SET value = excluded.value`,
}

/** Runs steps on a PostgreSQL, awaiting each. A transaction that another one got in the way of is begun again. */
export function postgresSql(pool: Pool, leaseClock?: () => number): Sql {
  const run = performer(leaseClock)
  return {
    dialect: DIALECT,
    one: (statement) => guarded(() => run(pool, statement)),
    read: (work) => guarded(() => run(pool, work())),
    write: (work) => guarded(() => transaction(pool, (on) => run(on, work()))),
    // Its rows say what a journal would.
    journal: async () => {},
    // The server reuses the room in its own time; VACUUM and its logs are its administrator's.
    scrub: async () => true,
  }
}

/** Runs steps on a connection, within whatever transaction it has open. `leaseClock`: instead of the server's clock. */
export function performer(leaseClock?: () => number): <T>(on: Queryable, steps: Steps<T>) => Promise<T> {
  const compiled = new Map<string, Compiled & { readonly read: ReturnType<typeof rowReader> }>()
  const query = async (on: Queryable, source: string, values: object): Promise<Answer> => {
    let statement = compiled.get(source)
    if (statement === undefined) {
      statement = { ...forPostgres(source, leaseClock ? undefined : NOW_MS), read: rowReader() }
      compiled.set(source, statement)
    }
    const { rows, rowCount } = await on.query(
      statement.text,
      statement.names.map((name) =>
        name === 'leaseNow' && leaseClock ? Math.floor(leaseClock()) : boundValue(values, name),
      ),
    )
    return { rows: rows.map(statement.read), changes: rowCount ?? 0 }
  }
  const answer = async (on: Queryable, step: Step): Promise<Answer> => {
    if ('text' in step) return query(on, step.text, step.values)
    return 'space' in step ? hold(on, step) : { rows: [], changes: 1 }
  }
  return async (on, steps) => {
    let next = steps.next()
    while (next.done !== true) {
      const step = next.value
      next = steps.next(await answer(on, step))
    }
    return next.value
  }
}

async function hold(on: Queryable, { space, name }: Extract<Step, { space: number }>): Promise<Answer> {
  if (name === undefined) await on.query('SELECT pg_advisory_xact_lock($1)', [space])
  else await on.query('SELECT pg_advisory_xact_lock(hashtextextended($1, $2))', [name, space])
  return { rows: [], changes: 0 }
}
