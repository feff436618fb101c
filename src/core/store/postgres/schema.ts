import type { Secret } from '../../secret.ts'
import { POSTGRES_STEPS } from '../migrations.ts'
import { StoreOpenError, type StoreSchema } from '../store.ts'
import { createPool } from './connection.ts'
import { ReadOnlyServerError, sentence } from './faults.ts'
import { schemaVersion } from './migrate.ts'

/** The schema of the store on a server, read and never changed; undefined when there is nothing of ours yet. */
export async function postgresSchema(url: Secret): Promise<StoreSchema | undefined> {
  const pool = createPool({ url, size: 1, onIdleFault: () => {} })
  try {
    const version = await schemaVersion(pool)
    const { rows } = await pool.query<{ transaction_read_only: string }>('SHOW transaction_read_only')
    if (rows[0]?.transaction_read_only !== 'off') throw new ReadOnlyServerError('the server can only be read')
    return version === 0 ? undefined : { version, latest: POSTGRES_STEPS.length }
  } catch (error) {
    throw new StoreOpenError(sentence(error), { cause: error })
  } finally {
    await pool.end()
  }
}
