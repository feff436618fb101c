import { postgresLocation } from '../../env/values.ts'
import type { Secret } from '../../secret.ts'
import { listAudit } from '../audit.ts'
import { checkRows, verifyResult } from '../check.ts'
import { type StoreMaintenance, StoreMaintenanceError, stepsFrom } from '../maintenance.ts'
import { POSTGRES_STEPS } from '../migrations.ts'
import { StoreOpenError } from '../store.ts'
import { createPool, type Pool } from './connection.ts'
import { sentence } from './faults.ts'
import { journalFromRows, keepAnchor } from './journal.ts'
import { assertReadable, migrate, runsOn, schemaVersion } from './migrate.ts'
import { postgresSql } from './sql.ts'

/** An operator waits longer than a request does: rows are counted one by one. */
const LONGEST_LOOK_MS = 10 * 60_000

/** Maintenance of a store on a PostgreSQL server. Opening it migrates nothing. */
export function maintenanceOfPostgres(url: Secret): StoreMaintenance {
  const pool = createPool({ url, size: 1, limitMs: LONGEST_LOOK_MS, onIdleFault: () => {} })
  return {
    status: () =>
      asked(async () => {
        const version = await schemaVersion(pool)
        return {
          kind: 'postgres',
          location: postgresLocation(url.reveal()),
          version,
          latest: POSTGRES_STEPS.length,
          readable: await runsOn(pool, version, POSTGRES_STEPS.length),
          bytes: await bytesOf(pool),
          walBytes: undefined,
          counts: await countRows(pool),
          verifiedAt: version > 0 ? await verifiedAt(pool) : undefined,
        }
      }),
    pending: () =>
      asked(async () => {
        const version = await schemaVersion(pool)
        await assertReadable(pool, version, POSTGRES_STEPS.length)
        return stepsFrom(POSTGRES_STEPS, version)
      }),
    migrate: () =>
      asked(async () => {
        const from = await schemaVersion(pool)
        await migrate(pool, POSTGRES_STEPS)
        return { from, to: await schemaVersion(pool) }
      }),
    verify: (now) =>
      asked(async () => {
        const version = await schemaVersion(pool)
        await assertReadable(pool, version, POSTGRES_STEPS.length)
        if (version === 0) return { ok: true, damaged: false, checked: 0, faults: [], moreFaults: 0 }
        // That pages and references are sound is the server's own to watch.
        const hasTexts = await has(pool, 'course_text')
        const result = verifyResult(await postgresSql(pool).read(() => checkRows(now, hasTexts)), false)
        if (result.ok)
          await pool.query(
            `INSERT INTO platformctl.meta (name, value) VALUES ('verified_at', $1)
             ON CONFLICT (name) DO UPDATE SET value = excluded.value`,
            [String(now)],
          )
        return result
      }),
    backup: async () => {
      throw new StoreMaintenanceError(
        'a PostgreSQL store is backed up by its own tools: pg_dump --format=custom --schema=platformctl, and pg_restore.',
      )
    },
    journal: (now) =>
      asked(async () => {
        await keepAnchor(pool)
        return journalFromRows(pool, 'platformctl', now)
      }),
    // None from a store that is older than the log.
    audit: (limit) =>
      asked(async () => ((await has(pool, 'audit')) ? postgresSql(pool).one(listAudit(limit)) : [])),
    close: () => pool.end(),
  }
}

async function has(pool: Pool, table: string): Promise<boolean> {
  const { rows } = await pool.query<{ name: string | null }>('SELECT to_regclass($1)::text AS name', [
    `platformctl.${table}`,
  ])
  return rows[0]?.name != null
}

async function bytesOf(pool: Pool): Promise<number> {
  const { rows } = await pool.query<{ bytes: string | number | null }>(
    `SELECT sum(pg_total_relation_size(format('platformctl.%I', tablename)::regclass)) AS bytes
     FROM pg_tables WHERE schemaname = 'platformctl'`,
  )
  return Number(rows[0]?.bytes ?? 0)
}

async function countRows(pool: Pool): Promise<Record<string, number>> {
  const { rows: tables } = await pool.query<{ name: string; quoted: string }>(
    `SELECT tablename AS name, format('platformctl.%I', tablename) AS quoted
     FROM pg_tables WHERE schemaname = 'platformctl' AND tablename <> 'schema_version' ORDER BY tablename`,
  )
  const counts: Record<string, number> = {}
  for (const { name, quoted } of tables) {
    const { rows } = await pool.query<{ count: number }>(`SELECT count(*) AS count FROM ${quoted}`)
    counts[name] = Number(rows[0]?.count ?? 0)
  }
  return counts
}

async function verifiedAt(pool: Pool): Promise<number | undefined> {
  const { rows } = await pool.query<{ value: string }>(
    `SELECT value FROM platformctl.meta WHERE name = 'verified_at'`,
  )
  return rows[0] === undefined ? undefined : Number(rows[0].value)
}

async function asked<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    if (error instanceof StoreOpenError || error instanceof StoreMaintenanceError) throw error
    throw new StoreOpenError(sentence(error), { cause: error })
  }
}
