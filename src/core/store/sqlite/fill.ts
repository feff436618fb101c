import { lstatSync } from 'node:fs'
import path from 'node:path'
import { type CopiedRow, type CopyResult, type CopySource, OWN_META, TABLES } from '../copy.ts'
import { journalOf } from '../departures.ts'
import { StoreMaintenanceError } from '../maintenance.ts'
import { SQLITE_STEPS } from '../migrations.ts'
import { subscriptionSteps } from '../subscriptions.ts'
import { failed, moveIntoPlace, syncFolder } from './backup.ts'
import { connect, makeFolder, migrate, type SqliteDatabase } from './connection.ts'
import { appendToJournal, departuresOf } from './journal.ts'
import { changeOwner, ownerOf } from './owner.ts'
import { makeScratch } from './scratch.ts'
import { DIALECT, plainPerformer } from './sql.ts'

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
  const scratch = makeScratch(path.dirname(file))
  try {
    const image = scratch.file('image.sqlite')
    const database = connect({ file: image })
    try {
      migrate(database, image, SQLITE_STEPS)
      database.exec('BEGIN IMMEDIATE')
      const counts: Record<string, number> = {}
      for (const table of TABLES) counts[table] = await fill(database, table, source)
      plainPerformer(database)(subscriptionSteps(DIALECT).sayAll())
      database.exec('COMMIT')
      // A server keeps no journal, and restoring an older backup of this file must not mail anybody who left since.
      appendToJournal(file, journalOf(departuresOf(database)))
      // One file: what is left in the log would stay behind under the name that this one had.
      database.pragma('journal_mode = DELETE')
      database.close()
      changeOwner(ownerOf(file), image)
      moveIntoPlace(image, file)
      await syncFolder(path.dirname(file))
      return { counts }
    } finally {
      database.close()
    }
  } catch (error) {
    throw failed(file, error)
  } finally {
    scratch.remove()
  }
}

async function fill(
  database: SqliteDatabase,
  table: (typeof TABLES)[number],
  source: CopySource,
): Promise<number> {
  const known = new Set(
    (database.pragma(`table_info(${table})`) as { name: string }[]).map(({ name }) => name),
  )
  const columns = await source.columns(table)
  const lost = columns.filter((name) => !known.has(name))
  if (lost.length > 0)
    throw new StoreMaintenanceError(
      `the two stores differ in ${table} (${lost.join(', ')}): use one build for both.`,
    )
  const insert = database.prepare(
    `INSERT INTO ${table} (${columns.join(', ')}) VALUES (${columns.map((name) => `@${name}`).join(', ')})`,
  )
  let count = 0
  for await (const page of source.pages(table))
    for (const row of page) {
      if (table === 'meta' && OWN_META.includes(row.name as never)) continue
      insert.run(asStored(row))
      count += 1
    }
  return count
}

/** SQLite has neither booleans nor JSON. */
function asStored(row: CopiedRow): CopiedRow {
  return Object.fromEntries(
    Object.entries(row).map(([name, value]) => [
      name,
      typeof value === 'boolean'
        ? Number(value)
        : typeof value === 'object' && value !== null
          ? JSON.stringify(value)
          : value,
    ]),
  )
}
