import { isReadable, readableFrom, StoreOpenError } from '../store.ts'
import { type Pool, type Queryable, transaction, UNLIMITED } from './connection.ts'
import { sentence } from './faults.ts'

/** SKIP LOCKED and MERGE-free SQL would run on older ones; these no longer get fixes. */
const OLDEST_SERVER = 140_000

/**
 * Brings the schema up to date: each step whole or absent, under a lock so that two processes cannot both run one. A
 * new database gets all of them in one commit. A step takes the time it takes: an index over a large table is not done
 * in the seconds that a request has.
 */
export async function migrate(pool: Pool, steps: readonly string[]): Promise<void> {
  try {
    await transaction(pool, async (connection) => {
      const { rows } = await connection.query<{ version: number }>(
        `SELECT current_setting('server_version_num')::int AS version`,
      )
      if ((rows[0]?.version ?? 0) < OLDEST_SERVER)
        throw new StoreOpenError('The PostgreSQL of STORE_URL is older than version 14: upgrade the server.')
    })
    for (let done = false; !done; )
      done = await transaction(pool, (connection) => advance(connection, steps), UNLIMITED)
  } catch (error) {
    throw error instanceof StoreOpenError ? error : new StoreOpenError(sentence(error), { cause: error })
  }
}

/** True when nothing was left to do. */
async function advance(connection: Queryable, steps: readonly string[]): Promise<boolean> {
  // The lock's number is platformctl's own. A second migration waits here, then finds the step done.
  await connection.query('SELECT pg_advisory_xact_lock(7305823190017)')
  const version = await schemaVersion(connection)
  await assertReadable(connection, version, steps.length)
  if (version >= steps.length) return true
  if (version === 0) {
    await connection.query('CREATE SCHEMA IF NOT EXISTS platformctl')
    await connection.query('CREATE TABLE IF NOT EXISTS platformctl.schema_version (version integer NOT NULL)')
    await connection.query('INSERT INTO platformctl.schema_version VALUES (0)')
  }
  const end = version === 0 ? steps.length : version + 1
  for (const [index, step] of steps.slice(version, end).entries())
    await take(connection, step, version + index + 1)
  return false
}

async function take(connection: Queryable, step: string, version: number): Promise<void> {
  await connection.query(step)
  await connection.query('UPDATE platformctl.schema_version SET version = $1', [version])
  await connection.query(
    `INSERT INTO platformctl.meta (name, value) VALUES ('readable_from', $1)
     ON CONFLICT (name) DO UPDATE SET value = excluded.value`,
    [`${version}:${readableFrom(await saidOf(connection))}`],
  )
}

/** Whether this build runs on a schema: on a newer one only if that says so of itself. */
export async function runsOn(connection: Queryable, version: number, known: number): Promise<boolean> {
  if (version <= known) return true
  return isReadable((await saidOf(connection)) ?? '', version, known)
}

async function saidOf(connection: Queryable): Promise<string | undefined> {
  const { rows } = await connection.query<{ said: string }>(
    `SELECT value AS said FROM platformctl.meta WHERE name = 'readable_from'`,
  )
  return rows[0]?.said
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
