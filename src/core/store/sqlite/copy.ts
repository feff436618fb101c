import { lstatSync } from 'node:fs'
import path from 'node:path'
import { type CopiedRow, type CopySource, copyRows, PAGE } from '../copy.ts'
import { departures } from '../departures.ts'
import { refusal, StoreMaintenanceError, StoreOpenError } from '../errors.ts'
import { linesOf } from '../journal.ts'
import { rowReader } from '../sql.ts'
import { assertMadeHere } from './check.ts'
import { connect, explainDamage, holdAlone, type SqliteDatabase, withImage } from './connection.ts'
import { makeFolder, making, shareOwner } from './files.ts'
import { appendText } from './journal.ts'
import { migrateFile, performer } from './sql.ts'

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
    return await work(pagesOf(database, file))
  } finally {
    database?.close()
  }
}

const pagesOf = (database: SqliteDatabase, file: string): CopySource =>
  function* (table) {
    const read = rowReader()
    let page: CopiedRow[] = []
    try {
      for (const row of database.prepare<[], CopiedRow>(`SELECT * FROM ${table}`).iterate()) {
        page.push(read(row))
        if (page.length < PAGE) continue
        yield page
        page = []
      }
    } catch (error) {
      throw ofSource(file, error)
    }
    if (page.length > 0) yield page
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
      const result = await copyRows(source, async (steps) => perform(steps))
      database.exec('COMMIT')
      // A server keeps no journal, and restoring an older backup of this file must not mail anybody who left since.
      appendText(file, linesOf(perform(departures())))
      shareOwner(made, file)
      return result
    }),
  )
}
