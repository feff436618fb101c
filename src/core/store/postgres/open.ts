import { trailing } from '../../calls.ts'
import { storeFault } from '../../errors.ts'
import { type Log, within } from '../../host.ts'
import type { Secret } from '../../secret.ts'
import type { SharedHistory } from '../../status/history.ts'
import { sharedHistory } from '../health.ts'
import { POSTGRES_STEPS } from '../migrations.ts'
import { readSchema } from '../schema.ts'
import { ping, scalar } from '../sql.ts'
import { operations, type Store, type StoreOptions } from '../store.ts'
import { createPool, guarded, orEnd, silentServer } from './connection.ts'
import { assertThere, migrate, performer, plainSql, postgresSql, SIZE } from './sql.ts'

const PING_MS = 2000
const GROW = `UPDATE platformctl.meta SET value = (SELECT string_agg(md5(random()::text), '') FROM generate_series(1, 2000))
  WHERE name = 'ping'`

/** Recording a round waits no longer: the next one comes a minute later. */
const RECORD_MS = 5000

/** The record of health that machines share in a PostgreSQL whose store was opened before. */
export function openPostgresHealth(url: Secret, log?: Log): SharedHistory {
  const pool = createPool({ url, size: 1, limitMs: RECORD_MS, log })
  return { ...sharedHistory(postgresSql(pool)), close: () => pool.end() }
}

/** The store in a PostgreSQL that several machines share; everything of ours is in its schema `platformctl`. */
export async function openPostgres(url: Secret, options: StoreOptions): Promise<Store> {
  const { poolSize: size = 10, log, leaseClock, mustExist, onMigrate } = options
  let full = false
  const onFault = (error: unknown) => {
    full ||= storeFault(error) === 'disk_full'
  }
  const pool = createPool({ url, size, log, onFault })
  if (mustExist) await orEnd(pool, plainSql(pool).read(assertThere))
  await orEnd(pool, migrate(pool, undefined, onMigrate))
  // One at a time; callers that arrive meanwhile share the next, so health checks never hold a second connection.
  const pingOnce = trailing(async () => {
    // After a full disk, call the store healthy only once there is room for more than a row that exists already.
    if (full) await pool.queryWithin(PING_MS, GROW)
    full = false
    await performer()({ query: (text, values) => pool.queryWithin(PING_MS, text, values) }, ping())
  })
  const sql = postgresSql(pool, { leaseClock })
  const kind = 'postgres'
  return {
    kind,
    persistent: true,
    ...operations(sql),
    ping: () => guarded(() => within(PING_MS, pingOnce(), silentServer)),
    status: () =>
      sql.read(function* () {
        const { version, latest } = yield* readSchema(POSTGRES_STEPS.length)
        // Its own tools make its backups.
        return { kind, version, latest, bytes: yield* scalar<number>(SIZE), backupAt: undefined }
      }),
    close: () => pool.end(),
  }
}
