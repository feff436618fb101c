import { statfsSync, statSync } from 'node:fs'
import path from 'node:path'
import { PlatformError } from '../../errors.ts'
import { storeFault } from '../../store-fault.ts'
import { directory, paymentEvents, sentMail } from '../account.ts'
import { heartbeats } from '../heartbeats.ts'
import { BACKUP_AT } from '../maintenance.ts'
import { storeOwner } from '../owner.ts'
import type { Store } from '../store.ts'
import { sqliteAudit } from './audit.ts'
import { closeFile, guard, IN_MEMORY, openDatabase, UNAVAILABLE } from './connection.ts'
import { sqliteCourse } from './course.ts'
import { sqliteFeedback } from './feedback.ts'
import { sqliteIncidents } from './incidents.ts'
import { openJournal } from './journal.ts'
import { MIGRATIONS } from './migrations.ts'
import { sqliteNotices } from './notices.ts'
import { createPageCheck } from './page-check.ts'
import { sqliteSending } from './sending.ts'
import { sqliteSql } from './sql.ts'

/**
 * Milliseconds since the machine started: all processes that can share a file share this clock, and nobody can set it.
 * After a reboot it is behind every lease in the file, which is how those are known to be over.
 */
const sinceBoot = () => Number(process.hrtime.bigint() / 1_000_000n)

/**
 * The store in an SQLite file, or (`file` undefined) in memory: the same code, but nothing outlives the process.
 * `onLost`: a write was not confirmed by the disk, and the store has closed itself.
 */
export function openSqlite(
  file: string | undefined,
  onLost?: (cause: unknown) => void,
  leaseClock: () => number = sinceBoot,
): Store {
  const database = openDatabase({ file: file ?? IN_MEMORY, synchronous: 'FULL', migrations: MIGRATIONS })
  // Damage met in daily work. Remembered, so that a later ping that happens to succeed cannot hide it.
  let damaged: unknown
  let full = false
  const guarded = guard(database, onLost, (error) => {
    const fault = storeFault(error)
    if (fault === 'damaged') damaged ??= error
    if (fault === 'disk_full') full = true
  })
  const steps = sqliteSql(database, guarded)
  const journal = openJournal(database, file)
  const pages = file === undefined ? undefined : createPageCheck(file)
  const sql = {
    // A lease that ends later than any new one could was taken before the machine started, so it is over.
    claimHour: database.prepare(`
      INSERT INTO handled_hour (hour, claimed_until) VALUES (@hour, @lease + @leaseMs)
      ON CONFLICT (hour) DO UPDATE SET claimed_until = excluded.claimed_until
      WHERE claimed_until IS NOT NULL AND (claimed_until <= @lease OR claimed_until > @lease + @leaseMs)`),
    isHandled: database.prepare('SELECT claimed_until IS NULL FROM handled_hour WHERE hour = ?').pluck(),
    keepHour: database.prepare(
      'UPDATE handled_hour SET claimed_until = @lease + @leaseMs WHERE hour = @hour AND claimed_until IS NOT NULL',
    ),
    endHour: database.prepare(
      'UPDATE handled_hour SET claimed_until = ? WHERE hour = ? AND claimed_until IS NOT NULL',
    ),
    forgetHours: database.prepare('DELETE FROM handled_hour WHERE hour > ?'),
    lastHour: database.prepare('SELECT max(hour) FROM handled_hour').pluck(),
    put: database.prepare('INSERT OR IGNORE INTO meta (name, value) VALUES (?, ?)'),
    get: database.prepare('SELECT value FROM meta WHERE name = ?').pluck(),
    ping: database.prepare(
      `INSERT INTO meta (name, value) VALUES ('ping', ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value`,
    ),
  }
  return {
    kind: file === undefined ? 'memory' : 'sqlite',
    persistent: file !== undefined,
    course: sqliteCourse(database, guarded, leaseClock, { file, journal }),
    feedback: sqliteFeedback(database, guarded, journal),
    sending: sqliteSending(database, guarded, journal, leaseClock),
    directory: directory(steps),
    sentMail: sentMail(steps),
    paymentEvents: paymentEvents(steps),
    audit: sqliteAudit(database, guarded, journal),
    incidents: sqliteIncidents(database, guarded, leaseClock),
    notices: sqliteNotices(database, guarded),
    heartbeats: heartbeats(steps),
    owner: storeOwner(steps),
    claimHour: async (claim) =>
      guarded(() => {
        if (sql.claimHour.run({ ...claim, lease: leaseClock() }).changes === 1) return 'claimed'
        return sql.isHandled.get(claim.hour) === 1 ? 'handled' : 'busy'
      }),
    keepHour: async (claim) => void guarded(() => sql.keepHour.run({ ...claim, lease: leaseClock() })),
    forgetHoursAfter: async (hour) => guarded(() => sql.forgetHours.run(hour).changes),
    endHour: async (hour, done) => void guarded(() => sql.endHour.run(done ? null : 0, hour)),
    lastHour: async () => guarded(() => (sql.lastHour.get() as string | null) ?? undefined),
    getOrCreate: async (name, make) =>
      guarded(() => {
        sql.put.run(name, make())
        return String(sql.get.get(name))
      }),
    async ping({ pages: everyPage = false } = {}) {
      if (damaged !== undefined) throw unavailable(damaged)
      if (file !== undefined && isDiskFull(file)) throw unavailable(codeError('ENOSPC'))
      const mark = String(performance.now())
      guarded(() => {
        // After a full disk, call the store healthy only once there is room for more than a row that exists
        // already.
        if (full) sql.ping.run(`${mark}${' '.repeat(GROWTH_BYTES)}`)
        sql.ping.run(mark)
        if (sql.get.get('ping') !== mark) throw new TypeError('what was written could not be read back')
      })
      full = false
      const catchUp = database.transaction(() => journal.catchUp())
      try {
        catchUp.immediate()
      } catch (error) {
        // Not an error of the store itself, which goes on.
        throw unavailable(error)
      }
      if (everyPage && (await pages?.check()) === false) {
        damaged = codeError('SQLITE_CORRUPT')
        throw unavailable(damaged)
      }
    },
    status: async () =>
      guarded(() => ({
        kind: file === undefined ? 'memory' : 'sqlite',
        version: Number(database.pragma('user_version', { simple: true })),
        latest: MIGRATIONS.length,
        bytes: file === undefined ? undefined : statSync(file).size,
        backupAt: numberOf(sql.get.get(BACKUP_AT)),
      })),
    async close() {
      await pages?.close()
      if (!database.open) return
      if (file === undefined) database.close()
      else closeFile(database)
    },
  }
}

/**
 * Free space that a growing store needs: with less, the disk counts as full, even while rows can still be changed in
 * place.
 */
const LEAST_FREE_BYTES = 256 * 1024
const GROWTH_BYTES = 64 * 1024

function numberOf(value: unknown): number | undefined {
  return value === undefined ? undefined : Number(value)
}

function isDiskFull(file: string): boolean {
  try {
    const { bavail, bfree, bsize } = statfsSync(path.dirname(path.resolve(file)))
    // Some blocks may be kept for the superuser.
    return (process.getuid?.() === 0 ? bfree : bavail) * bsize < LEAST_FREE_BYTES
  } catch {
    // A file system that does not say so is asked by writing.
    return false
  }
}

const codeError = (code: string) => Object.assign(new Error(code), { code })

function unavailable(cause: unknown): PlatformError {
  return new PlatformError('store_unavailable', UNAVAILABLE, { cause })
}
