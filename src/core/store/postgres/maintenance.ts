import { postgresLocation } from '../../env/values.ts'
import type { Secret } from '../../secret.ts'
import { anchorOf, departures } from '../departures.ts'
import { StoreMaintenanceError } from '../errors.ts'
import type { StoreMaintenance } from '../maintenance.ts'
import { setMeta } from '../meta.ts'
import { POSTGRES_STEPS } from '../migrations.ts'
import { assertReadable, readSchema } from '../schema.ts'
import { first } from '../sql.ts'
import type { StoreSchema } from '../store.ts'
import { checkRows, upkeep, VERIFIED_AT, verifyResult } from '../upkeep.ts'
import { createPool } from './connection.ts'
import { PLACE, ReadOnlyServerError } from './faults.ts'
import { bytesOf, migrate, plainSql } from './sql.ts'

/** An operator waits longer than a request does: rows are counted one by one. */
const LONGEST_LOOK_MS = 10 * 60_000
/** Maintenance of a store on a PostgreSQL server. Opening it migrates nothing. */
export function maintenanceOfPostgres(url: Secret): StoreMaintenance {
  const pool = createPool({ url, size: 1, limitMs: LONGEST_LOOK_MS })
  const sql = plainSql(pool)
  const { dialect } = sql
  const schema = { steps: POSTGRES_STEPS, place: PLACE }
  const alike = upkeep(sql, schema, () => migrate(pool))
  return {
    ...alike,
    status: async () => ({
      ...(await alike.status()),
      kind: 'postgres',
      location: postgresLocation(url.reveal()),
      bytes: await sql.one(bytesOf()),
      walBytes: undefined,
    }),
    verify: (now) =>
      sql.read(function* () {
        if ((yield* assertReadable(dialect, schema)) === 0)
          return verifyResult({ checked: 0, faults: [] }, false)
        // That pages and references are sound is the server's own to watch.
        const result = verifyResult(yield* checkRows(dialect, now), false)
        if (result.ok) yield* setMeta(VERIFIED_AT, String(now))
        return result
      }),
    backup: async () => {
      throw new StoreMaintenanceError(
        'a PostgreSQL store is backed up by its own tools: pg_dump --format=custom --schema=platformctl, and pg_restore.',
      )
    },
    journal: (at) =>
      sql.write(function* () {
        const id = yield* anchorOf()
        return [...(yield* departures()), { what: 'anchor' as const, at, id }]
      }),
    close: () => pool.end(),
  }
}

/** The schema of the store on a server, read and never changed; undefined when there is nothing of ours yet. */
export async function postgresSchema(url: Secret): Promise<StoreSchema | undefined> {
  const pool = createPool({ url, size: 1 })
  const { read, dialect } = plainSql(pool)
  return read(function* () {
    const { version, latest } = yield* readSchema(dialect, POSTGRES_STEPS.length)
    const server = yield* first<{ transactionReadOnly: string }>('SHOW transaction_read_only')
    if (server?.transactionReadOnly !== 'off') throw new ReadOnlyServerError('the server can only be read')
    return version === 0 ? undefined : { version, latest }
  }).finally(() => pool.end())
}
