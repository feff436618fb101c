import { existsSync } from 'node:fs'
import Database from 'better-sqlite3'
import { journalFile } from '../journal.ts'
import { SQLITE_STEPS } from '../migrations.ts'
import { StoreOpenError, type StoreSchema } from '../store.ts'
import { isForeign } from './owner.ts'

/** The schema of the store in a file, read and never changed; undefined when there is no such file. */
export function sqliteSchema(file: string): StoreSchema | undefined {
  if (!existsSync(file)) return undefined
  let database: Database.Database | undefined
  try {
    database = new Database(file, { readonly: true, fileMustExist: true })
    return {
      version: Number(database.pragma('user_version', { simple: true })),
      latest: SQLITE_STEPS.length,
      isJournalForeign: isForeign(journalFile(file), file),
    }
  } catch (error) {
    throw new StoreOpenError(`${file} cannot be read as a store.`, { cause: error })
  } finally {
    database?.close()
  }
}
