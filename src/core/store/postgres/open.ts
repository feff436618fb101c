import type { Log } from '../../log.ts'
import type { Secret } from '../../secret.ts'
import { trailing } from '../../trailing.ts'
import { within } from '../../wait.ts'
import { directory, paymentEvents, sentMail } from '../account.ts'
import { heartbeats } from '../heartbeats.ts'
import { storeOwner } from '../owner.ts'
import type { Store } from '../store.ts'
import { postgresAudit } from './audit.ts'
import { createPool, guarded, NOW_MS, silentServer } from './connection.ts'
import { postgresCourse } from './course.ts'
import { postgresFeedback } from './feedback.ts'
import { postgresIncidents } from './incidents.ts'
import { migrate, schemaVersion } from './migrate.ts'
import { MIGRATIONS } from './migrations.ts'
import { postgresNotices } from './notices.ts'
import { postgresSending } from './sending.ts'
import { postgresSql } from './sql.ts'

/** A health check waits at most this long. */
const PING_MS = 2000

/** The store in a PostgreSQL that several machines share; everything of ours is in its schema `platformctl`. */
export async function openPostgres(input: {
  readonly url: Secret
  readonly poolSize: number
  readonly log: Log
  readonly leaseClock?: (() => number) | undefined
}): Promise<Store> {
  const pool = createPool({
    url: input.url,
    size: input.poolSize,
    onIdleFault: (code) =>
      input.log.warn('store_connection_lost', 'an idle connection to the store was lost', { code }),
  })
  try {
    await migrate(pool, MIGRATIONS)
  } catch (error) {
    await pool.end()
    throw error
  }
  // One ping runs at a time, and callers that arrive meanwhile share the next one, so health checks never
  // hold a second connection.
  const ping = trailing(async () => {
    const mark = String(performance.now())
    const { rows } = await pool.queryWithin<{ value: string }>(
      PING_MS,
      `INSERT INTO platformctl.meta (name, value) VALUES ('ping', $1)
       ON CONFLICT (name) DO UPDATE SET value = excluded.value RETURNING value`,
      [mark],
    )
    if (rows[0]?.value !== mark) throw new TypeError('what was written could not be read back')
  })
  const sql = postgresSql(pool)
  const { leaseClock } = input
  /** The current time by the clock of leases, as an SQL expression. */
  const leaseNow = () => (leaseClock === undefined ? NOW_MS : String(Math.floor(leaseClock())))
  let ended = false
  return {
    kind: 'postgres',
    persistent: true,
    course: postgresCourse(pool, leaseNow),
    directory: directory(sql),
    sentMail: sentMail(sql),
    paymentEvents: paymentEvents(sql),
    audit: postgresAudit(pool),
    incidents: postgresIncidents(pool, leaseNow),
    notices: postgresNotices(pool),
    heartbeats: heartbeats(sql),
    owner: storeOwner(sql),
    feedback: postgresFeedback(pool),
    sending: postgresSending(pool),
    claimHour: ({ hour, leaseMs }) =>
      guarded(async () => {
        // A lease that ends much later than any new one could was taken before the server's clock was set back.
        const { rowCount } = await pool.query(
          `INSERT INTO platformctl.handled_hour AS h (hour, claimed_until) VALUES ($1, ${leaseNow()} + $2)
           ON CONFLICT (hour) DO UPDATE SET claimed_until = excluded.claimed_until
           WHERE h.claimed_until IS NOT NULL AND (h.claimed_until <= ${leaseNow()} OR h.claimed_until > ${leaseNow()} + 2 * $2)`,
          [hour, leaseMs],
        )
        if (rowCount === 1) return 'claimed'
        const { rows } = await pool.query<{ handled: boolean }>(
          'SELECT claimed_until IS NULL AS handled FROM platformctl.handled_hour WHERE hour = $1',
          [hour],
        )
        return rows[0]?.handled === true ? 'handled' : 'busy'
      }),
    keepHour: ({ hour, leaseMs }) =>
      guarded(async () => {
        await pool.query(
          `UPDATE platformctl.handled_hour SET claimed_until = ${leaseNow()} + $2 WHERE hour = $1 AND claimed_until IS NOT NULL`,
          [hour, leaseMs],
        )
      }),
    forgetHoursAfter: (hour) =>
      guarded(
        async () =>
          (await pool.query('DELETE FROM platformctl.handled_hour WHERE hour > $1', [hour])).rowCount ?? 0,
      ),
    endHour: (hour, done) =>
      guarded(async () => {
        await pool.query(
          'UPDATE platformctl.handled_hour SET claimed_until = $2 WHERE hour = $1 AND claimed_until IS NOT NULL',
          [hour, done ? null : 0],
        )
      }),
    lastHour: () =>
      guarded(async () => {
        const { rows } = await pool.query<{ hour: string | null }>(
          'SELECT max(hour) AS hour FROM platformctl.handled_hour',
        )
        return rows[0]?.hour ?? undefined
      }),
    getOrCreate: (name, make) =>
      guarded(async () => {
        await pool.query(
          'INSERT INTO platformctl.meta (name, value) VALUES ($1, $2) ON CONFLICT DO NOTHING',
          [name, make()],
        )
        const { rows } = await pool.query<{ value: string }>(
          'SELECT value FROM platformctl.meta WHERE name = $1',
          [name],
        )
        return rows[0]?.value ?? ''
      }),
    ping: () => guarded(() => within(PING_MS, ping(), silentServer)),
    status: () =>
      guarded(async () => {
        const { rows } = await pool.query<{ bytes: number }>(
          `SELECT coalesce(sum(pg_total_relation_size(c.oid)), 0)::bigint AS bytes
           FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
           WHERE n.nspname = 'platformctl' AND c.relkind = 'r'`,
        )
        return {
          kind: 'postgres' as const,
          version: await schemaVersion(pool),
          latest: MIGRATIONS.length,
          bytes: rows[0]?.bytes,
          // Its own tools make its backups.
          backupAt: undefined,
        }
      }),
    async close() {
      if (ended) return
      ended = true
      await pool.end()
    },
  }
}
