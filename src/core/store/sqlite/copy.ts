import { StoreCareError } from '../care.ts'
import type { CopySource, Table } from '../copy.ts'
import { StoreOpenError } from '../store.ts'
import { damagedOr } from './backup.ts'
import { connect, migrate } from './connection.ts'
import { MIGRATIONS } from './migrations.ts'

const PAGE = 500
/** Columns of JSON text, which another store may keep as JSON. */
const JSON_COLUMNS = new Set(['sent_days'])

/** An SQLite store to copy from: brought up to date, and held against writers until it is closed. */
export function sqliteSource(file: string): CopySource {
  const database = connect({ file, busyMs: 5000 })
  try {
    migrate(database, file, MIGRATIONS)
    // Readers go on; whoever wants to write waits, and then learns that the store has moved.
    database.exec('BEGIN IMMEDIATE')
  } catch (error) {
    database.close()
    const said = damagedOr(file, error)
    if (said instanceof StoreOpenError || said instanceof StoreCareError) throw said
    throw new StoreOpenError(`${file} is written to by another process: stop the daemon first.`, {
      cause: error,
    })
  }
  // Here, because whoever copies would take it for a fault of the other store.
  const read = <T>(work: () => T): T => {
    try {
      return work()
    } catch (error) {
      throw damagedOr(file, error)
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
                JSON_COLUMNS.has(name) ? (JSON.parse(String(value)) as unknown) : value,
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
