import { accessSync, constants, existsSync, lstatSync } from 'node:fs'
import path from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import Database from 'better-sqlite3'
import { codeError, codeOf, faultOf } from '../../errors.ts'
import { type CopiedRow, type CopySource, copyRows, PAGE } from '../copy.ts'
import { departures } from '../departures.ts'
import { cannotOpenFor, refusal, refusalFor, StoreMaintenanceError, StoreOpenError } from '../errors.ts'
import { entriesOf, journalFile, linesOf, OWED, readJournal } from '../journal.ts'
import type { AnalyticsMaintenance, StoreContent, StoreMaintenance } from '../maintenance.ts'
import { BACKUP_AT, countRows, upkeep, VERIFIED_AT } from '../maintenance.ts'
import { SQLITE_STEPS } from '../migrations.ts'
import { assertReadable, hasTable, metaIn, migrate, type StoreSchema } from '../schema.ts'
import { getMeta, OWNER, rowReader, setMeta } from '../sql.ts'
import { assertMadeHere, foreignObject, verifyDatabase } from './check.ts'
import type { SqliteDatabase } from './connection.ts'
import { connect, connectAnyway, explainDamage, holdAlone, schemaVersion, withImage } from './connection.ts'
import { isDiskFull, isForeign, makeFile, makeFolder, making, shareOwner, sizeOf } from './files.ts'
import { hashOf, pack, packingOf, unpack } from './image.ts'
import { appendText, openJournal } from './journal.ts'
import { migrateFile, performer, sqliteSql } from './sql.ts'

/** An operator may wait for a writer; the daemon may not. */
const BUSY_MS = 5000

export function maintenanceOfSqlite(file: string, busyMs: number = BUSY_MS): StoreMaintenance {
  const database = connectAnyway({ file, busyMs })
  const schema = { steps: SQLITE_STEPS, place: file }
  const journal = openJournal(database, file)
  const perform = performer(database)
  // Refuses work on a damaged file with a sentence; only `verify` reads further.
  const sound = <T>(work: () => T): T => {
    try {
      return work()
    } catch (error) {
      throw explainDamage(file, error)
    }
  }
  const sql = sqliteSql({ database, guarded: sound })
  const place = async () =>
    ({ kind: 'sqlite', location: file, bytes: sizeOf(file), walBytes: sizeOf(`${file}-wal`) }) as const
  const migrateAlone = () =>
    migrate(sql, schema).catch((error: unknown) => {
      if (!codeOf(error).startsWith('SQLITE_BUSY')) throw error
      throw refusalFor(
        error,
      )`${file} is being migrated or written to by another process: try again when that has ended; nothing was changed.`
    })
  const anchor = (now: number, isBackup = false) =>
    note(() => database.transaction(() => journal.anchor(now, isBackup)).immediate())
  return {
    ...upkeep(sql, schema, { place, migrate: migrateAlone }),
    verify: async (now) => {
      perform(assertReadable(schema))
      const found = verifyDatabase(database, 'course', now)
      const fault = found.damaged ? undefined : journalFault()
      const result = fault === undefined ? found : { ...found, ok: false, faults: [...found.faults, fault] }
      if (result.ok) note(() => perform(setMeta(VERIFIED_AT, String(now))))
      return result
    },
    backup: async (to, now, options) => {
      anchor(now, true)
      const result = await backup({ database, file, holds: 'course' }, to, now, options?.recipients)
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
    const fault = faultOf(() => note(() => database.transaction(() => journal.catchUp()).immediate()))
    return fault?.startsWith('JOURNAL_')
      ? `${name} cannot be written, so a restore would forget who unsubscribes now: check its owner, its permissions and its disk`
      : undefined
  }

  /** A store that cannot be written, as on a full disk, is backed up all the same: any journal is then believed. */
  function note(write: () => void): void {
    if (sound(() => perform(hasTable('meta')))) faultOf(write, /^SQLITE_/)
  }
}

export function maintenanceOfAnalytics(file: string): AnalyticsMaintenance {
  const database = connectAnyway({ file, busyMs: BUSY_MS })
  return {
    verify: async (now) => verifyDatabase(database, 'analytics', now),
    backup: (to, now, asked) => backup({ database, file, holds: 'analytics' }, to, now, asked?.recipients),
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
    throw cannotOpenFor(error)`${file} cannot be read as a store.`
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

type Source = { readonly database: SqliteDatabase; readonly file: string; readonly holds: StoreContent }

/** Backs up under writes: a copy (VACUUM INTO) is checked, packed, encrypted, read back and compared before it has its name; or nothing is left. */
async function backup(source: Source, file: string, now: number, recipients: readonly string[] = []) {
  try {
    const packing = packingOf(file)
    const isSealed = recipients.length > 0
    if (file.endsWith('.age') !== isSealed)
      throw isSealed
        ? refusal`${file} would be encrypted: let its name end in .age.`
        : refusal`${file} says that it is encrypted: name who may read it with --recipient.`
    const checked = await making(file, async (made) => {
      // Not by what a link leads to: a link is somebody's file too.
      if (lstatSync(file, { throwIfNoEntry: false }))
        throw refusal`${file} exists and was left as it is: give the backup a new name.`
      const image = `${made}.sqlite`
      makeFile(image)
      source.database.prepare('VACUUM INTO ?').run(image)
      const found = await withImage(image, (copy) => checkImage(copy, source.holds, now))
      const { image: hash, written } = await pack(image, made, packing, recipients)
      // Only its recipients can read an encrypted backup: then the bytes are compared.
      const same = isSealed ? (await hashOf(made)) === written : (await unpack(made, undefined)) === hash
      if (!same) throw refusal`what was written to ${file} reads back differently: check the disk.`
      shareOwner(made, source.file)
      return found
    })
    return { file, bytes: sizeOf(file), ...checked }
  } catch (error) {
    throw explainDamage(source.file, error)
  }
}

function checkImage(copy: SqliteDatabase, holds: StoreContent, now: number) {
  const version = schemaVersion(copy)
  // A newer schema has tables that this build does not know, and the restore of that build does.
  const foreign = version > SQLITE_STEPS.length ? undefined : foreignObject(copy, holds)
  if (foreign !== undefined)
    throw refusal`the store has ${foreign}, and a restore would refuse it: drop what platformctl did not make, or restore the schema.`
  const found = copy.pragma('integrity_check(1)', { simple: true })
  if (found !== 'ok')
    throw refusal`the store itself is damaged (${String(found)}): platformctl db verify says where.`
  const perform = performer(copy)
  // A restore names the time since then.
  if (holds === 'course' && version > 0) perform(setMeta(BACKUP_AT, String(now)))
  return { version, counts: perform(countRows()) }
}

/** Lends an SQLite store to copy from: brought up to date, and held against writers. */
export async function withSqliteSource<T>(file: string, work: (source: CopySource) => Promise<T>) {
  let database: SqliteDatabase | undefined
  try {
    try {
      database = connect({ file, busyMs: 5000 })
      assertMadeHere(database, { file, holds: 'course', done: 'copied' })
      await migrateFile(database, file)
      holdAlone(database, file, 'copied')
    } catch (error) {
      throw ofSource(file, error)
    }
    const source = sourceOn(database, file)
    const result = await work(source)
    await source.assertUnchanged()
    return result
  } finally {
    database?.close()
  }
}

function sourceOn(database: SqliteDatabase, file: string): CopySource {
  const version = () => database.pragma('data_version', { simple: true })
  const copied = version()
  return {
    *rows(table) {
      const read = rowReader()
      let page: CopiedRow[] = []
      try {
        for (const row of database.prepare<[], CopiedRow>(`SELECT * FROM ${table}`).iterate()) {
          if (page.push(read(row)) < PAGE) continue
          yield page
          page = []
        }
      } catch (error) {
        throw ofSource(file, error)
      }
      if (page.length > 0) yield page
    },
    // A process that waits for the file cannot be seen: it gets its turn, and by opening the store changes its mode.
    async assertUnchanged() {
      database.exec('COMMIT; PRAGMA locking_mode = NORMAL')
      // The next read lets the file go. SQLite tries a lock again after at most 100 ms.
      version()
      await sleep(250)
      const refused = faultOf(() => holdAlone(database, file, 'copied'), /^$/)
      if (refused !== undefined || version() !== copied)
        throw refusal`${file} was opened by another process meanwhile, which may have changed it: stop that process, then copy again to an empty store.`
    },
  }
}

/** Here, because the caller reports what it does not know as a fault of the other store. */
function ofSource(file: string, error: unknown): unknown {
  const isOpening = error instanceof StoreOpenError
  const said = explainDamage(file, isOpening ? error.cause : error)
  if (!isOpening || said instanceof StoreMaintenanceError) return said
  return new StoreMaintenanceError(error.message, { cause: error })
}

/** Throws where there is anything of that name; the log of a store that was moved away is another's, too. */
export function assertNoFile(file: string): void {
  for (const taken of [file, `${file}-wal`])
    if (lstatSync(taken, { throwIfNoEntry: false }))
      throw refusal`${taken} exists and was left as it is: move it away, or name a file that does not exist.`
}

/** Makes the file of a store from another one: it has its name when all of it is there, or does not exist. */
export async function copyIntoSqlite(source: CopySource, file: string) {
  makeFolder(path.dirname(path.resolve(file)))
  return making(file, (made) =>
    withImage(made, async (database) => {
      const perform = performer(database)
      await migrateFile(database, made)
      database.exec('BEGIN IMMEDIATE')
      const counts = await copyRows(source, async (steps) => perform(steps))
      database.exec('COMMIT')
      // A server keeps no journal, and restoring an older backup of this file must not mail anybody who left since.
      appendText(file, linesOf(perform(departures())))
      shareOwner(made, file)
      return counts
    }),
  )
}
