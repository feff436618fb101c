import { setTimeout as sleep } from 'node:timers/promises'
import { codeOf } from '../../error-code.ts'
import type { Secret } from '../../secret.ts'
import { type CopiedRow, type CopySource, TABLES } from '../copy.ts'
import { StoreMaintenanceError } from '../maintenance.ts'
import { POSTGRES_STEPS } from '../migrations.ts'
import { StoreOpenError } from '../store.ts'
import { createPool, type Pool, type Queryable, UNLIMITED } from './connection.ts'
import { sentence } from './faults.ts'
import { migrate, schemaVersion } from './migrate.ts'

const PAGE = 500
/** A connection that was closed on this side is still listed by the server for a moment. */
const LOOKS = 10
const LOOK_EVERY_MS = 200
const LOCK_NOT_AVAILABLE = '55P03'
const inUse = (unchanged: string) =>
  `the database is in use by another process: stop the daemon and everything else that has it open; ${unchanged}.`

/** A PostgreSQL store to copy from: brought up to date, and held against writers until it is closed. */
export async function postgresSource(url: Secret): Promise<CopySource> {
  const pool = createPool({ url, size: 1, limitMs: UNLIMITED, onIdleFault: () => {} })
  try {
    if ((await schemaVersion(pool)) === 0)
      throw new StoreMaintenanceError('the database holds no store: set STORE_URL as the daemon had it.')
    await migrate(pool, POSTGRES_STEPS)
    await assertUnused(pool, 'nothing was copied')
    return await held(pool)
  } catch (error) {
    await pool.end()
    if (error instanceof StoreMaintenanceError || error instanceof StoreOpenError) throw error
    throw new StoreOpenError(sentence(error), { cause: error })
  }
}

async function held(pool: Pool): Promise<CopySource> {
  const connection = await pool.connect()
  const query: Queryable['query'] = (text, values) => connection.query(UNLIMITED, text, values)
  // Handled here: the caller would report it as a fault of the other store.
  const read: Queryable['query'] = (text, values) =>
    query<never>(text, values).catch((error: unknown) => {
      throw new StoreOpenError(sentence(error), { cause: error })
    })
  try {
    await query('BEGIN; SET LOCAL statement_timeout = 0')
    await query(`LOCK TABLE ${TABLES.map((table) => `platformctl.${table}`).join(', ')} IN SHARE MODE NOWAIT`)
  } catch (error) {
    connection.release()
    throw codeOf(error) === LOCK_NOT_AVAILABLE
      ? new StoreMaintenanceError(inUse('nothing was copied'), { cause: error })
      : error
  }
  return {
    async columns(table) {
      const { rows } = await read<{ name: string }>(
        `SELECT column_name AS name FROM information_schema.columns WHERE table_schema = 'platformctl' AND table_name = $1`,
        [table],
      )
      return rows.map(({ name }) => name)
    },
    async *pages(table) {
      await read(`DECLARE copied NO SCROLL CURSOR FOR SELECT * FROM platformctl.${table}`)
      for (;;) {
        const { rows } = await read<CopiedRow>(`FETCH ${PAGE} FROM copied`)
        if (rows.length > 0) yield rows
        if (rows.length < PAGE) break
      }
      await read('CLOSE copied')
    },
    async close() {
      await query('ROLLBACK').catch(() => {})
      connection.release()
      await pool.end()
    },
  }
}

/**
 * Fails if a daemon uses the store, because its writes after the copy would be lost. Cannot see daemons behind a
 * connection pooler.
 */
export async function assertUnused(pool: Pool, unchanged: string): Promise<void> {
  for (let look = 1; ; look += 1) {
    const { rows } = await pool.query<{ others: number }>(
      `SELECT count(*) AS others FROM pg_stat_activity
       WHERE datname = current_database() AND application_name = 'platformctl' AND pid <> pg_backend_pid()`,
    )
    if (Number(rows[0]?.others ?? 0) === 0) return
    if (look === LOOKS) throw new StoreMaintenanceError(inUse(unchanged))
    await sleep(LOOK_EVERY_MS)
  }
}
