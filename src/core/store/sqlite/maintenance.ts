import { accessSync, constants, existsSync, statSync } from 'node:fs'
import path from 'node:path'
import Database from 'better-sqlite3'
import { codeError, codeOf } from '../../error-code.ts'
import { StoreMaintenanceError, StoreOpenError } from '../errors.ts'
import { entriesOf, journalFile, OWED, readJournal } from '../journal.ts'
import {
  type AnalyticsMaintenance,
  BACKUP_AT,
  type StoreMaintenance,
  upkeep,
  VERIFIED_AT,
} from '../maintenance.ts'
import { getMeta, OWNER, setMeta } from '../meta.ts'
import { SQLITE_STEPS } from '../migrations.ts'
import type { StoreSchema } from '../schema.ts'
import { assertReadable, hasTable, metaIn, migrate } from '../schema.ts'
import { backup, explainDamage } from './backup.ts'
import { verifyDatabase } from './check.ts'
import { connectAnyway, type Guarded, schemaVersion } from './connection.ts'
import { isDiskFull, isForeign } from './files.ts'
import { openJournal } from './journal.ts'
import { performer, sqliteSql } from './sql.ts'

/** An operator may wait for a writer; the daemon may not. */
const BUSY_MS = 5000

/** Maintenance of a store in an SQLite file. Opening it migrates nothing. */
export function maintenanceOfSqlite(file: string, busyMs: number = BUSY_MS): StoreMaintenance {
  const database = connectAnyway({ file, busyMs })
  const schema = { steps: SQLITE_STEPS, place: file }
  const journal = openJournal(database, file)
  const perform = performer(database)
  const sound = soundly(file)
  const sql = sqliteSql({ database, guarded: sound })
  const alike = upkeep(sql, schema, () =>
    migrate(sql, schema).catch((error: unknown) => {
      if (!codeOf(error).startsWith('SQLITE_BUSY')) throw error
      throw new StoreMaintenanceError(
        `${file} is being migrated or written to by another process: try again when that has ended; nothing was changed.`,
        { cause: error },
      )
    }),
  )
  return {
    ...alike,
    status: async () => ({
      ...(await alike.status()),
      kind: 'sqlite',
      location: file,
      bytes: sizeOf(file),
      walBytes: sizeOf(`${file}-wal`),
    }),
    verify: async (now) => {
      perform(assertReadable(schema))
      const found = verifyDatabase(database, { now, holds: 'course' })
      const fault = found.damaged ? undefined : journalFault()
      const result = fault === undefined ? found : { ...found, ok: false, faults: [...found.faults, fault] }
      if (result.ok) note(() => perform(setMeta(VERIFIED_AT, String(now))))
      return result
    },
    backup: async (to, now, { recipients } = { recipients: [] }) => {
      anchor(now)
      const result = await backup(database, to, { holds: 'course', recipients, now }).catch(damaged(file))
      note(() => perform(setMeta(BACKUP_AT, String(now))))
      return result
    },
    journal: async (now) =>
      sound(() => {
        anchor(now)
        return [...(readJournal(journalFile(file)) ?? []), ...entriesOf(perform(getMeta(OWED)) ?? '')]
      }),
    close: async () => void database.close(),
  }

  /** Writes what the journal lacks; a sentence if it cannot be written, by this user or by the daemon's. */
  function journalFault(): string | undefined {
    const name = journalFile(file)
    if (isForeign(name, file))
      return `${name} belongs to another user than the store, so the daemon cannot write unsubscribes into it: chown --reference=${file} ${name}`
    try {
      note(() => database.transaction(() => journal.catchUp()).immediate())
    } catch (error) {
      if (codeOf(error).startsWith('JOURNAL_'))
        return `${name} cannot be written, so a restore would forget who unsubscribes now: check its owner, its permissions and its disk`
    }
    return undefined
  }

  function anchor(now: number): void {
    note(() => database.transaction(() => journal.anchor(now)).immediate())
  }

  /** A store that cannot be written, as on a full disk, is backed up all the same: any journal is then believed. */
  function note(write: () => void): void {
    if (!sound(() => perform(hasTable('meta')))) return
    try {
      write()
    } catch (error) {
      if (!codeOf(error).startsWith('SQLITE_')) throw error
    }
  }
}

/** Maintenance of the file with visitors' events. */
export function maintenanceOfAnalytics(file: string): AnalyticsMaintenance {
  const database = connectAnyway({ file, busyMs: BUSY_MS })
  return {
    verify: async (now) => verifyDatabase(database, { now, holds: 'analytics' }),
    backup: (to, now, { recipients } = { recipients: [] }) =>
      backup(database, to, { holds: 'analytics', recipients, now }).catch(damaged(file)),
    close: async () => void database.close(),
  }
}

/** The schema of the store in a file, read and never changed; undefined when there is no such file. Throws what would keep a daemon from writing it. */
export function sqliteSchema(file: string): StoreSchema | undefined {
  let database: Database.Database | undefined
  try {
    assertWritable(file)
    if (!existsSync(file)) return undefined
    database = new Database(file, { readonly: true, fileMustExist: true })
    const owner = performer(database)(metaIn(OWNER))
    return { version: schemaVersion(database), latest: SQLITE_STEPS.length, owner }
  } catch (error) {
    throw new StoreOpenError(`${file} cannot be read as a store.`, { cause: error })
  } finally {
    database?.close()
  }
}

function assertWritable(file: string): void {
  const folder = path.dirname(file)
  if (!existsSync(folder)) return
  const journal = journalFile(file)
  for (const each of [folder, file, journal])
    if (existsSync(each)) accessSync(each, constants.R_OK | constants.W_OK)
  if (isForeign(journal, file)) throw codeError('JOURNAL_FOREIGN')
  if (isDiskFull(file)) throw codeError('ENOSPC')
}

/** Refuses work on a damaged file with a sentence; only `verify` reads further. */
const damaged = (file: string) => (error: unknown) => {
  throw explainDamage(file, error)
}
const soundly =
  (file: string): Guarded =>
  (work) => {
    try {
      return work()
    } catch (error) {
      return damaged(file)(error)
    }
  }

function sizeOf(file: string): number {
  return statSync(file, { throwIfNoEntry: false })?.size ?? 0
}
