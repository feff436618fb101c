import { lstatSync } from 'node:fs'
import path from 'node:path'
import { type CopiedRow, type CopyResult, type CopySource, copyRows, PAGE } from '../copy.ts'
import { departures } from '../departures.ts'
import { StoreMaintenanceError, StoreOpenError } from '../errors.ts'
import { linesOf } from '../journal.ts'
import { rowReader } from '../sql.ts'
import { assertMadeHere } from './check.ts'
import { connect, explainDamage, holdAlone, type SqliteDatabase } from './connection.ts'
import { makeFolder, making, shareOwner } from './files.ts'
import { appendText } from './journal.ts'
import { migrateFile, performer } from './sql.ts'

/** Lends an SQLite store to copy from: brought up to date, and held against writers. */
export async function withSqliteSource<T>(file: string, work: (source: CopySource) => Promise<T>) {
  const database = opened(file)
  try {
    try {
      assertMadeHere(database, { file, holds: 'course', done: 'copied' })
      await migrateFile(database, file)
      holdAlone(database, file, 'copied')
    } catch (error) {
      throw explainDamage(file, error)
    }
    return await work(function* (table) {
      try {
        yield* pagesOf(database, table)
      } catch (error) {
        // Here: the caller would report it as a fault of the other store.
        throw explainDamage(file, error)
      }
    })
  } finally {
    database.close()
  }
}

function* pagesOf(database: SqliteDatabase, table: string): Generator<readonly CopiedRow[]> {
  const read = rowReader()
  let page: CopiedRow[] = []
  for (const row of database.prepare<[], CopiedRow>(`SELECT * FROM ${table}`).iterate()) {
    page.push(read(row))
    if (page.length < PAGE) continue
    yield page
    page = []
  }
  if (page.length > 0) yield page
}

/** A fault of this file is not the other store's. */
function opened(file: string): SqliteDatabase {
  try {
    return connect({ file, busyMs: 5000 })
  } catch (error) {
    if (!(error instanceof StoreOpenError)) throw error
    const said = explainDamage(file, error.cause)
    throw said instanceof StoreMaintenanceError
      ? said
      : new StoreMaintenanceError(error.message, { cause: error })
  }
}

/** Throws where there is anything of that name; the log of a store that was moved away is another's, too. */
export function assertNoFile(file: string): void {
  for (const taken of [file, `${file}-wal`])
    if (lstatSync(taken, { throwIfNoEntry: false }))
      throw new StoreMaintenanceError(
        `${taken} exists and was left as it is: move it away, or name a file that does not exist.`,
      )
}

/** Makes the file of a store from another one: it has its name when all of it is there, or does not exist. */
export async function copyIntoSqlite(source: CopySource, file: string): Promise<CopyResult> {
  assertNoFile(file)
  makeFolder(path.dirname(path.resolve(file)))
  const { counts } = await making(file, async (scratch) => {
    const made = path.join(scratch, 'image.sqlite')
    const database = connect({ file: made })
    const perform = performer(database)
    try {
      await migrateFile(database, made)
      database.exec('BEGIN IMMEDIATE')
      const result = await copyRows(source, async (steps) => perform(steps))
      database.exec('COMMIT')
      // A server keeps no journal, and restoring an older backup of this file must not mail anybody who left since.
      appendText(file, linesOf(perform(departures())))
      // One file: what is left in the log would stay behind under the name that this one had.
      database.pragma('journal_mode = DELETE')
      shareOwner(made, file)
      return { made, ...result }
    } finally {
      database.close()
    }
  })
  return { counts }
}
