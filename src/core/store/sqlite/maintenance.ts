import { statSync } from 'node:fs'
import { codeOf } from '../../error-code.ts'
import { listAudit } from '../audit.ts'
import { entriesOf, journalFile, readJournal } from '../journal.ts'
import {
  type AnalyticsMaintenance,
  BACKUP_AT,
  type StoreMaintenance,
  StoreMaintenanceError,
  stepsFrom,
} from '../maintenance.ts'
import { SQLITE_STEPS } from '../migrations.ts'
import { backup, explainDamage } from './backup.ts'
import { assertReadable, connectAnyway, migrate, runsOn, schemaVersion } from './connection.ts'
import { openJournal, owedOf } from './journal.ts'
import { isForeign } from './owner.ts'
import { plainPerformer } from './sql.ts'
import { countTableRows, hasTable, verifyDatabase } from './verify.ts'

/** An operator may wait for a writer; the daemon may not. */
const BUSY_MS = 5000

/** Maintenance of a store in an SQLite file. Opening it migrates nothing. */
export function maintenanceOfSqlite(file: string, busyMs: number = BUSY_MS): StoreMaintenance {
  const database = connectAnyway({ file, busyMs })
  const perform = plainPerformer(database)
  return {
    status: () =>
      sound(file, async () => ({
        kind: 'sqlite',
        location: file,
        version: schemaVersion(database),
        latest: SQLITE_STEPS.length,
        readable: runsOn(database, SQLITE_STEPS.length),
        bytes: sizeOf(file),
        walBytes: sizeOf(`${file}-wal`),
        counts: countTableRows(database),
        verifiedAt: verifiedAt(),
      })),
    pending: async () => {
      assertReadable(database, file, SQLITE_STEPS.length)
      return stepsFrom(SQLITE_STEPS, schemaVersion(database))
    },
    migrate: () =>
      sound(file, async () => {
        const from = schemaVersion(database)
        try {
          migrate(database, file, SQLITE_STEPS)
        } catch (error) {
          if (codeOf(error).startsWith('SQLITE_BUSY'))
            throw new StoreMaintenanceError(
              `${file} is being migrated or written to by another process: try again when that has ended; nothing was changed.`,
              { cause: error },
            )
          throw error
        }
        return { from, to: schemaVersion(database) }
      }),
    verify: async (now) => {
      assertReadable(database, file, SQLITE_STEPS.length)
      const found = verifyDatabase(database, { now, holds: 'course' })
      const journal = found.damaged ? undefined : journalFault()
      const result =
        journal === undefined ? found : { ...found, ok: false, faults: [...found.faults, journal] }
      if (result.ok) remember('verified_at', now)
      return result
    },
    backup: (to, now, { recipients } = { recipients: [] }) =>
      sound(file, async () => {
        anchor(now)
        const result = await backup(database, to, { holds: 'course', recipients, now })
        remember(BACKUP_AT, now)
        return result
      }),
    journal: (now) =>
      sound(file, async () => {
        anchor(now)
        return [...(readJournal(journalFile(file)) ?? []), ...entriesOf(owedOf(database))]
      }),
    // None from a store that is older than the log.
    audit: (limit) => sound(file, async () => (hasTable(database, 'audit') ? perform(listAudit(limit)) : [])),
    close: async () => void database.close(),
  }

  /** Writes what the journal lacks; a sentence if it cannot be written, by this user or by the daemon's. */
  function journalFault(): string | undefined {
    const name = journalFile(file)
    if (isForeign(name, file))
      return `${name} belongs to another user than the store, so the daemon cannot write unsubscribes into it: chown --reference=${file} ${name}`
    if (!hasTable(database, 'meta')) return undefined
    try {
      database.transaction(() => openJournal(database, file).catchUp()).immediate()
    } catch (error) {
      if (codeOf(error).startsWith('JOURNAL_'))
        return `${name} cannot be written, so a restore would forget who unsubscribes now: check its owner, its permissions and its disk`
    }
    return undefined
  }

  function anchor(now: number): void {
    note(() => database.transaction(() => openJournal(database, file).anchor(now)).immediate())
  }

  function remember(name: string, now: number): void {
    const sql =
      'INSERT INTO meta (name, value) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value'
    note(() => database.prepare(sql).run(name, String(now)))
  }

  /** A store that cannot be written, as on a full disk, is backed up all the same: any journal is then believed. */
  function note(write: () => void): void {
    if (!hasTable(database, 'meta')) return
    try {
      write()
    } catch (error) {
      if (!codeOf(error).startsWith('SQLITE_')) throw error
    }
  }

  function verifiedAt(): number | undefined {
    if (!hasTable(database, 'meta')) return undefined
    const value = database.prepare(`SELECT value FROM meta WHERE name = 'verified_at'`).pluck().get()
    return value === undefined ? undefined : Number(value)
  }
}

/** Maintenance of the file with visitors' events. */
export function maintenanceOfAnalytics(file: string): AnalyticsMaintenance {
  const database = connectAnyway({ file, busyMs: BUSY_MS })
  return {
    verify: async (now) => verifyDatabase(database, { now, holds: 'analytics' }),
    backup: (to, now, { recipients } = { recipients: [] }) =>
      sound(file, () => backup(database, to, { holds: 'analytics', recipients, now })),
    close: async () => void database.close(),
  }
}

/** Refuses work on a damaged file with a sentence; only `verify` reads further. */
async function sound<T>(file: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    throw explainDamage(file, error)
  }
}

function sizeOf(file: string): number {
  return statSync(file, { throwIfNoEntry: false })?.size ?? 0
}
