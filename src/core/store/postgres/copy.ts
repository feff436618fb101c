import { setTimeout as sleep } from 'node:timers/promises'
import { codeOf } from '../../error-code.ts'
import type { Secret } from '../../secret.ts'
import {
  type CopiedRow,
  type CopyResult,
  type CopySource,
  compareRows,
  copyRows,
  PAGE,
  type TableDifference,
} from '../copy.ts'
import { StoreMaintenanceError } from '../errors.ts'
import { POSTGRES_STEPS, TABLES } from '../migrations.ts'
import { schemaVersion } from '../schema.ts'
import { rowReader, scalar } from '../sql.ts'
import { type Pool, type Queryable, transaction, withPool } from './connection.ts'
import { explained } from './faults.ts'
import { migrate, performer, plainSql } from './sql.ts'

/** A connection that was closed on this side is still listed by the server for a moment. */
const LOOKS = 10
const LOOK_EVERY_MS = 200
const LOCK_NOT_AVAILABLE = '55P03'
const inUse = (unchanged: string) =>
  `the database is in use by another process: stop the daemon and everything else that has it open; ${unchanged}.`
const OTHERS = `SELECT count(*) AS others FROM pg_stat_activity
  WHERE datname = current_database() AND application_name = 'platformctl' AND pid <> pg_backend_pid()`
/** What reads as a table and is none, or has rows that depend on who reads it. */
const FOREIGN = `SELECT c.relname AS name FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
  WHERE n.nspname = 'platformctl' AND c.relname IN (SELECT value FROM {each @tables})
    AND (c.relkind <> 'r' OR c.relhasrules OR c.relrowsecurity) LIMIT 1`

/** Fills an empty store on a server from another one, in one transaction: all of it is there afterwards, or nothing. */
export const copyIntoPostgres = (source: CopySource, url: Secret): Promise<CopyResult> =>
  withPool(url, async (pool) => {
    await migrate(pool)
    const run = performer()
    return explained(() => transaction(pool, (on) => copyRows(source, (steps) => run(on, steps))))
  })

/** Compares each table of a source with the database's. */
export const compareWithPostgres = (source: CopySource, url: Secret): Promise<readonly TableDifference[]> =>
  withPool(url, (pool) => compareRows(source, plainSql(pool).one, POSTGRES_STEPS.length))

/** Lends a PostgreSQL store to copy from: brought up to date, and held against writers. */
export const withPostgresSource = <T>(url: Secret, work: (source: CopySource) => Promise<T>): Promise<T> =>
  withPool(url, async (pool) => {
    const { one, read } = plainSql(pool)
    if ((await read(schemaVersion)) === 0)
      throw new StoreMaintenanceError('the database holds no store: set STORE_URL as the daemon had it.')
    const foreign = await one(scalar<string>(FOREIGN, { tables: TABLES }))
    if (foreign !== undefined)
      throw new StoreMaintenanceError(
        `the database was not copied: platformctl.${foreign} is not the table that platformctl made.`,
      )
    await migrate(pool)
    await assertUnused(pool, 'nothing was copied')
    return transaction(pool, async (on) => {
      await explained(() => on.query(LOCK_ALL).catch(refuseIfHeld))
      return work(sourceOn(on))
    })
  })

const LOCK_ALL = `LOCK TABLE ${TABLES.map((table) => `platformctl.${table}`).join(', ')} IN SHARE MODE NOWAIT`

function refuseIfHeld(error: unknown): never {
  throw codeOf(error) === LOCK_NOT_AVAILABLE
    ? new StoreMaintenanceError(inUse('nothing was copied'), { cause: error })
    : error
}

/** Faults are explained here: the caller would report them as faults of the other store. */
function sourceOn(on: Queryable): CopySource {
  const query = (text: string) => explained(() => on.query<CopiedRow>(text))
  return async function* (table) {
    const read = rowReader()
    await query(`DECLARE copied NO SCROLL CURSOR FOR SELECT * FROM platformctl.${table}`)
    for (let full = true; full; ) {
      const { rows } = await query(`FETCH ${PAGE} FROM copied`)
      if (rows.length > 0) yield rows.map(read)
      full = rows.length === PAGE
    }
    await query('CLOSE copied')
  }
}

/**
 * Fails if a daemon uses the store, because its writes after the copy would be lost. Cannot see daemons behind a
 * connection pooler.
 */
export async function assertUnused(pool: Pool, unchanged: string): Promise<void> {
  const { one } = plainSql(pool)
  for (let look = 1; ((await one(scalar<number>(OTHERS))) ?? 0) > 0; look += 1) {
    if (look === LOOKS) throw new StoreMaintenanceError(inUse(unchanged))
    await sleep(LOOK_EVERY_MS)
  }
}
