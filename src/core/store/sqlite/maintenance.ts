import { statSync } from 'node:fs'
import { codeOf } from '../../error-code.ts'
import {
  type AnalyticsMaintenance,
  BACKUP_AT,
  type StoreMaintenance,
  StoreMaintenanceError,
  stepsFrom,
} from '../maintenance.ts'
import { listAudit } from './audit.ts'
import { backup, explainDamage } from './backup.ts'
import { assertReadable, connect, migrate, runsOn, schemaVersion } from './connection.ts'
import { MIGRATIONS } from './migrations.ts'
import { countTableRows, verifyDatabase } from './verify.ts'

/** An operator may wait for a writer; the daemon may not. */
const BUSY_MS = 5000

/** Maintenance of a store in an SQLite file. Opening it migrates nothing. */
export function maintenanceOfSqlite(file: string, busyMs: number = BUSY_MS): StoreMaintenance {
  const database = connect({ file, busyMs })
  return {
    status: () =>
      sound(file, async () => ({
        kind: 'sqlite',
        location: file,
        version: schemaVersion(database),
        latest: MIGRATIONS.length,
        readable: runsOn(database, MIGRATIONS.length),
        bytes: sizeOf(file),
        walBytes: sizeOf(`${file}-wal`),
        counts: countTableRows(database),
        verifiedAt: verifiedAt(),
      })),
    pending: async () => {
      assertReadable(database, file, MIGRATIONS.length)
      return stepsFrom(MIGRATIONS, schemaVersion(database))
    },
    migrate: () =>
      sound(file, async () => {
        const from = schemaVersion(database)
        try {
          migrate(database, file, MIGRATIONS)
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
      assertReadable(database, file, MIGRATIONS.length)
      const result = verifyDatabase(database, { now, holds: 'course' })
      if (result.ok) remember('verified_at', now)
      return result
    },
    backup: (to, now, { recipients } = { recipients: [] }) =>
      sound(file, async () => {
        const result = await backup(database, to, { holds: 'course', recipients })
        remember(BACKUP_AT, now)
        return result
      }),
    audit: (limit) => sound(file, async () => listAudit(database, limit)),
    close: async () => void database.close(),
  }

  function remember(name: string, now: number): void {
    if (!hasMeta()) return
    database
      .prepare(
        'INSERT INTO meta (name, value) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value',
      )
      .run(name, String(now))
  }

  function hasMeta(): boolean {
    return database.prepare(`SELECT 1 FROM sqlite_schema WHERE name = 'meta'`).get() !== undefined
  }

  function verifiedAt(): number | undefined {
    if (!hasMeta()) return undefined
    const value = database.prepare(`SELECT value FROM meta WHERE name = 'verified_at'`).pluck().get()
    return value === undefined ? undefined : Number(value)
  }
}

/** Maintenance of the file with visitors' events. */
export function maintenanceOfAnalytics(file: string): AnalyticsMaintenance {
  const database = connect({ file, busyMs: BUSY_MS })
  return {
    verify: async (now) => verifyDatabase(database, { now, holds: 'analytics' }),
    backup: (to, _now, { recipients } = { recipients: [] }) =>
      sound(file, () => backup(database, to, { holds: 'analytics', recipients })),
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
