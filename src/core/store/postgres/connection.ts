import pg from 'pg'
import { PlatformError } from '../../errors.ts'
import type { Secret } from '../../secret.ts'
import { isReadable, READABLE_FROM, StoreOpenError } from '../store.ts'

export type Pool = pg.Pool
/** What a query runs on: the pool, or the one connection of a transaction. */
export type Queryable = Pick<pg.Pool, 'query'>

/** A server that does not answer in this time is down for the caller. */
const CONNECT_MS = 5000
const STATEMENT_MS = 30_000
/** SKIP LOCKED and MERGE-free SQL would run on older ones; these no longer get fixes. */
const OLDEST_SERVER = 140_000
const INT8 = 20
/** Transactions that met another's locks are tried again; a third meeting in a row is a fault. */
const ATTEMPTS = 3
const TRY_AGAIN = new Set(['40001', '40P01'])

/** The server's clock in UTC milliseconds: leases are measured by it, because the clocks of its clients differ. */
export const NOW_MS = '(extract(epoch FROM clock_timestamp()) * 1000)::bigint'

export function createPool(input: {
  readonly url: Secret
  readonly size: number
  readonly onIdleFault: (code: string) => void
}): Pool {
  const pool = new pg.Pool({
    connectionString: input.url.reveal(),
    max: input.size,
    connectionTimeoutMillis: CONNECT_MS,
    statement_timeout: STATEMENT_MS,
    idle_in_transaction_session_timeout: STATEMENT_MS,
    application_name: 'platformctl',
    keepAlive: true,
    // Times are whole milliseconds and counts stay below 2^53: numbers, not strings.
    types: {
      getTypeParser: (oid: number, format?: 'text' | 'binary') =>
        oid === INT8 ? Number : pg.types.getTypeParser(oid, format as 'text'),
    },
  })
  // An idle connection that the server ends would otherwise end the process; the next query opens another.
  pool.on('error', (error) => input.onIdleFault(codeOf(error)))
  return pool
}

/** Brings the schema up to date: each step whole or absent, under a lock so that two processes cannot both run one. */
export async function migrate(pool: Pool, steps: readonly string[]): Promise<void> {
  try {
    await transaction(pool, async (connection) => {
      const { rows } = await connection.query<{ version: number }>(
        `SELECT current_setting('server_version_num')::int AS version`,
      )
      if ((rows[0]?.version ?? 0) < OLDEST_SERVER)
        throw new StoreOpenError('The PostgreSQL of STORE_URL is older than version 14: upgrade the server.')
    })
    for (let done = false; !done; ) done = await transaction(pool, (connection) => step(connection, steps))
  } catch (error) {
    throw error instanceof StoreOpenError ? error : new StoreOpenError(sentence(error), { cause: error })
  }
}

async function step(connection: Queryable, steps: readonly string[]): Promise<boolean> {
  // The number is platformctl's own; whoever comes second waits here and then finds the step done.
  await connection.query('SELECT pg_advisory_xact_lock(7305823190017)')
  const version = await schemaVersion(connection)
  await assertReadable(connection, version, steps.length)
  const next = steps[version]
  if (next === undefined) return true
  if (version === 0) {
    await connection.query('CREATE SCHEMA IF NOT EXISTS platformctl')
    await connection.query('CREATE TABLE IF NOT EXISTS platformctl.schema_version (version integer NOT NULL)')
    await connection.query('INSERT INTO platformctl.schema_version VALUES (0)')
  }
  await connection.query(next)
  await connection.query('UPDATE platformctl.schema_version SET version = $1', [version + 1])
  await connection.query(
    `INSERT INTO platformctl.meta (name, value) VALUES ('readable_from', $1)
     ON CONFLICT (name) DO UPDATE SET value = excluded.value`,
    [`${version + 1}:${READABLE_FROM}`],
  )
  return false
}

/** Whether this build runs on a schema: on a newer one only if that says so of itself. */
export async function runsOn(connection: Queryable, version: number, known: number): Promise<boolean> {
  if (version <= known) return true
  const { rows } = await connection.query<{ said: string }>(
    `SELECT value AS said FROM platformctl.meta WHERE name = 'readable_from'`,
  )
  return isReadable(rows[0]?.said ?? '', version, known)
}

export async function assertReadable(connection: Queryable, version: number, known: number): Promise<void> {
  if (!(await runsOn(connection, version, known)))
    throw new StoreOpenError(
      `The PostgreSQL of STORE_URL was written by a newer platformctl (schema ${version}, this build knows ${known}): run that version, or restore a backup made before it.`,
    )
}

/** 0: there is nothing of ours yet. */
export async function schemaVersion(connection: Queryable): Promise<number> {
  const { rows: tables } = await connection.query<{ name: string | null }>(
    `SELECT to_regclass('platformctl.schema_version')::text AS name`,
  )
  if (tables[0]?.name == null) return 0
  const { rows } = await connection.query<{ version: number }>(
    'SELECT version FROM platformctl.schema_version',
  )
  return rows[0]?.version ?? 0
}

/** One transaction on one connection: committed whole, or not at all. */
export async function transaction<T>(pool: Pool, work: (connection: Queryable) => Promise<T>): Promise<T> {
  for (let attempt = 1; ; attempt += 1) {
    const connection = await pool.connect()
    let broken: Error | undefined
    // The pool listens to idle connections only: one that the server ends between two of our statements would otherwise
    // end the process.
    const onFault = (fault: Error) => {
      broken = fault
    }
    connection.on('error', onFault)
    try {
      await connection.query('BEGIN')
      const result = await work(connection)
      await connection.query('COMMIT')
      return result
    } catch (error) {
      await connection.query('ROLLBACK').catch((fault: Error) => {
        broken = fault
      })
      if (attempt >= ATTEMPTS || !TRY_AGAIN.has(codeOf(error))) throw error
    } finally {
      // A connection that could not roll back is not given to anyone else.
      connection.off('error', onFault)
      connection.release(broken)
    }
  }
}

/** A server that is down, full or too slow becomes `store_unavailable` (503); our own errors stay what they are. */
export async function guarded<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    if (error instanceof PlatformError) throw error
    throw new PlatformError(
      'store_unavailable',
      'The store cannot be read or written now; try again later.',
      { cause: error },
    )
  }
}

/** Why the server cannot be used, free of its address and credentials. */
export function sentence(error: unknown): string {
  const code = codeOf(error)
  const message = error instanceof Error ? error.message : ''
  const at = 'The PostgreSQL of STORE_URL'
  if (code === 'ECONNREFUSED')
    return `${at} refused the connection: check that it runs, and its host and port.`
  if (code === 'ENOTFOUND' || code === 'EAI_AGAIN') return `${at} has a host name that does not resolve.`
  if (code === 'ETIMEDOUT' || /timeout/i.test(message))
    return `${at} did not answer within ${CONNECT_MS / 1000} s: check the network and its load.`
  if (code === '28P01' || code === '28000') return `${at} refused the user or the password.`
  if (code === '3D000') return `${at} has no such database: create it, or correct the name in STORE_URL.`
  if (code === '42501')
    return `${at} does not let this user create the schema "platformctl": grant CREATE on the database.`
  if (code === '53300')
    return `${at} has no connection left: lower STORE_POOL_SIZE, or raise max_connections.`
  if (/SSL|certificate|self.signed/i.test(`${code} ${message}`))
    return `${at} does not speak TLS as asked: check sslmode in STORE_URL and the server's certificate.`
  return `${at} cannot be used (${code || 'no reason given'}).`
}

function codeOf(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : ''
}
