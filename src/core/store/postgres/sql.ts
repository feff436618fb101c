import { setTimeout as sleep } from 'node:timers/promises'
import { codeOf } from '../../errors.ts'
import { type Compiled, forPostgres, spelled } from '../dialect.ts'
import { cannotOpen } from '../errors.ts'
import { POSTGRES_STEPS } from '../migrations.ts'
import { migrate as bringUpToDate, type OnMigrate, schemaVersion } from '../schema.ts'
import type { Answer, Sql, Step, Steps } from '../sql.ts'
import { boundValue, NOTHING, rowReader, scalar } from '../sql.ts'
import { guarded, NOW_MS, type Pool, type Queryable, transaction, UNLIMITED } from './connection.ts'
import { explained, LOCK_NOT_AVAILABLE, PLACE } from './faults.ts'

/** Older servers get no fixes. */
const OLDEST_SERVER = 140_000

/** What waited behind a change of a table has this time to go on before the next attempt at it. */
const LOCK_AGAIN_MS = 3000

/** `leaseClock` measures leases instead of the server's clock; `limitMs` is the time limit of a transaction. */
type Runs = { leaseClock?: (() => number) | undefined; limitMs?: number | undefined; guard?: typeof guarded }

/** Runs steps on a PostgreSQL, awaiting each. A transaction that another one got in the way of is begun again. */
export function postgresSql(pool: Pool, { leaseClock, limitMs, guard = guarded }: Runs = {}): Sql {
  const run = performer(leaseClock)
  return {
    one: (statement) => guard(() => run(pool, statement)),
    read: (work) => guard(() => run(pool, work())),
    write: (work) => guard(() => transaction(pool, (on) => run(on, work()), limitMs)),
    // Its rows say what a journal would.
    journal: async () => {},
    // The server reuses the room in its own time; VACUUM and its logs are its administrator's.
    scrub: async () => true,
  }
}

/** For an operator's command, which says what is wrong with the server. */
export const plainSql = (pool: Pool, limitMs?: number) => postgresSql(pool, { guard: explained, limitMs })

/** The bytes that all tables of a store take. */
export const SIZE = `SELECT CAST(coalesce(sum(pg_total_relation_size(format('platformctl.%I', tablename)::regclass)), 0) AS bigint) AS bytes
  FROM pg_tables WHERE schemaname = 'platformctl'`

/** Fails on a database without a store: an operator who mistyped its name would read that nothing is due. */
export function* assertThere(): Steps<void> {
  if ((yield* schemaVersion()) === 0)
    throw cannotOpen`${PLACE} holds no store: correct the name of the database, or make one with platformctl db migrate.`
}

/** Brings the schema up to date. A step takes the time it takes: an index over a large table is not done in a request's. */
export async function migrate(pool: Pool, steps: readonly string[] = POSTGRES_STEPS, onMigrate?: OnMigrate) {
  const sql = plainSql(pool, UNLIMITED)
  const version = await sql.one(scalar<number>("SELECT current_setting('server_version_num')::int"))
  if ((version ?? 0) < OLDEST_SERVER) throw cannotOpen`${PLACE} is older than version 14: upgrade the server.`
  // Tries a step again for as long as somebody else, such as a dump, holds a table that it changes.
  const write: Sql['write'] = (work) =>
    sql.write(work).catch(async (error: unknown) => {
      if (!(error instanceof Error && codeOf(error.cause) === LOCK_NOT_AVAILABLE)) throw error
      await sleep(LOCK_AGAIN_MS)
      return write(work)
    })
  await bringUpToDate({ ...sql, write }, { steps, place: PLACE, onMigrate })
}

/** Runs steps on a connection, within whatever transaction it has open. */
export function performer(leaseClock?: () => number) {
  const compiled = new Map<string, Compiled & { readonly read: ReturnType<typeof rowReader> }>()
  const answer = async (on: Queryable, step: Step): Promise<Answer> => {
    if ('journal' in step) return { rows: [], changes: 1 }
    if ('script' in step) {
      await on.query(spelled(step.script, 'postgres'))
      return NOTHING
    }
    if ('space' in step) {
      // Another role's function of the same name, in `public`, could fit the parameters better than PostgreSQL's own.
      const key = step.name === undefined ? '$1' : 'pg_catalog.hashtextextended($2, $1)'
      await on.query(`SELECT pg_catalog.pg_advisory_xact_lock(${key})`, [step.space, step.name ?? []].flat())
      return NOTHING
    }
    let statement = compiled.get(step.text)
    if (statement === undefined) {
      statement = { ...forPostgres(step.text, leaseClock ? undefined : NOW_MS), read: rowReader() }
      compiled.set(step.text, statement)
    }
    const { text, names, read } = statement
    const bound = names.map((name) =>
      name === 'leaseNow' && leaseClock ? Math.floor(leaseClock()) : boundValue(step.values, name),
    )
    const { rows, rowCount } = await on.query(text, bound)
    return { rows: step.raw ? rows : rows.map(read), changes: rowCount ?? 0 }
  }
  return async <T>(on: Queryable, steps: Steps<T>): Promise<T> => {
    let next = steps.next()
    while (next.done !== true) next = steps.next(await answer(on, next.value))
    return next.value
  }
}
