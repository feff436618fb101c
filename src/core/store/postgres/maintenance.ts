import { type StoredSubscription, violations } from '../../course/invariants.ts'
import { postgresLocation } from '../../env/postgres-url.ts'
import type { Secret } from '../../secret.ts'
import { listAudit } from '../audit.ts'
import { type StoreMaintenance, StoreMaintenanceError, stepsFrom, type VerifyResult } from '../maintenance.ts'
import { POSTGRES_STEPS } from '../migrations.ts'
import { listPlans, listTexts, planFaults } from '../plans.ts'
import { StoreOpenError } from '../store.ts'
import { createPool, type Pool } from './connection.ts'
import { sentence } from './faults.ts'
import { journalFromRows, keepAnchor } from './journal.ts'
import { assertReadable, migrate, runsOn, schemaVersion } from './migrate.ts'
import { postgresSql } from './sql.ts'

const MOST_FAULTS = 100
const PAGE = 1000
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
        const result = await verify(pool, now)
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

/** The invariants of the course; that pages and references are sound is the server's own to watch. */
async function verify(pool: Pool, now: number): Promise<VerifyResult> {
  const faults: string[] = []
  let checked = 0
  let after = ''
  for (;;) {
    const { rows } = await pool.query<StoredSubscription>(
      `SELECT id, state, enrolment, confirmed_at AS "confirmedAt", unsubscribed_at AS "unsubscribedAt",
         sent_days::text AS "sentDays", lessons, due_at AS "dueAt", last_sent_at AS "lastSentAt", next_attempt_at AS "nextAttemptAt", problem_kind AS problem
       FROM platformctl.subscription WHERE id > $1 ORDER BY id LIMIT ${PAGE}`,
      [after],
    )
    for (const row of rows)
      faults.push(...violations(row, now).map((found) => `subscription ${row.id}: ${found}`))
    checked += rows.length
    const last = rows.at(-1)
    if (last === undefined || rows.length < PAGE) break
    after = last.id
  }
  // A store of an earlier build has no texts.
  if (await has(pool, 'course_text')) {
    const sql = postgresSql(pool)
    faults.push(...planFaults(await sql.one(listPlans()), await sql.one(listTexts())))
  }
  return {
    ok: faults.length === 0,
    damaged: false,
    checked,
    faults: faults.slice(0, MOST_FAULTS),
    moreFaults: Math.max(0, faults.length - MOST_FAULTS),
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
