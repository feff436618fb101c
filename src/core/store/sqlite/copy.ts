import type { CopySource, Table } from '../copy.ts'
import { StoreMaintenanceError } from '../maintenance.ts'
import { SQLITE_STEPS } from '../migrations.ts'
import { StoreOpenError } from '../store.ts'
import { explainDamage } from './backup.ts'
import { connect, migrate, type SqliteDatabase } from './connection.ts'

const PAGE = 500
/** Columns of JSON text, which another store may keep as JSON. */
const JSON_COLUMNS = new Set(['sent_days', 'sent_lessons'])

/** An SQLite store to copy from: brought up to date, and held against writers until it is closed. */
export function sqliteSource(file: string): CopySource {
  const database = opened(file)
  try {
    migrate(database, file, SQLITE_STEPS)
    // Leaving WAL mode needs every lock there is: a daemon that has the store open would write on into the old one.
    if (database.pragma('journal_mode = DELETE', { simple: true }) !== 'delete') throw inUse(file)
    database.exec('BEGIN IMMEDIATE')
  } catch (error) {
    database.close()
    const said = explainDamage(file, error)
    if (said instanceof StoreOpenError || said instanceof StoreMaintenanceError) throw said
    throw inUse(file)
  }
  // Handled here: the caller would report it as a fault of the other store.
  const read = <T>(work: () => T): T => {
    try {
      return work()
    } catch (error) {
      throw explainDamage(file, error)
    }
  }
  const columns = (table: Table) =>
    (database.pragma(`table_info(${table})`) as { name: string }[]).map(({ name }) => name)
  return {
    columns,
    *pages(table) {
      const order = columns(table).join(', ')
      const page = database.prepare(`SELECT * FROM ${table} ORDER BY ${order} LIMIT ${PAGE} OFFSET ?`)
      for (let offset = 0; ; offset += PAGE) {
        const rows = read(() => page.all(offset)) as Record<string, unknown>[]
        if (rows.length > 0)
          yield rows.map((row) =>
            Object.fromEntries(
              Object.entries(row).map(([name, value]) => [
                name,
                JSON_COLUMNS.has(name) ? parsedOr(String(value)) : value,
              ]),
            ),
          )
        if (rows.length < PAGE) return
      }
    },
    close() {
      database.exec('ROLLBACK')
      database.close()
    },
  }
}

/** The value of JSON text; text that is not valid JSON (damaged by hand) stays as it is. */
function parsedOr(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
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

function inUse(file: string): StoreMaintenanceError {
  return new StoreMaintenanceError(
    `${file} is open in another process: stop the daemon first; nothing was copied.`,
  )
}
