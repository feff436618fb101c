import type { Secret } from '../../secret.ts'
import { type CopyResult, type CopySource, OWN_META, TABLES, type Table } from '../copy.ts'
import { StoreMaintenanceError } from '../maintenance.ts'
import { POSTGRES_STEPS } from '../migrations.ts'
import { StoreOpenError } from '../store.ts'
import { subscriptionSteps } from '../subscriptions.ts'
import { createPool, type Queryable, transaction, UNLIMITED } from './connection.ts'
import { sentence } from './faults.ts'
import { migrate } from './migrate.ts'
import { DIALECT, performer } from './sql.ts'

/** Fills an empty store on a server from another one, in one transaction: all of it is there afterwards, or nothing. */
export async function copyIntoPostgres(source: CopySource, url: Secret): Promise<CopyResult> {
  const pool = createPool({ url, size: 1, limitMs: UNLIMITED, onIdleFault: () => {} })
  try {
    await migrate(pool, POSTGRES_STEPS)
    return await transaction(pool, async (connection) => {
      await assertEmpty(connection)
      const counts: Record<string, number> = {}
      for (const table of TABLES) {
        await assertSameColumns(connection, table, await source.columns(table))
        counts[table] = await fill(connection, table, source)
      }
      await performer()(connection, subscriptionSteps(DIALECT).sayAll())
      return { counts }
    })
  } catch (error) {
    if (error instanceof StoreMaintenanceError || error instanceof StoreOpenError) throw error
    throw new StoreOpenError(sentence(error), { cause: error })
  } finally {
    await pool.end()
  }
}

async function assertEmpty(connection: Queryable): Promise<void> {
  for (const table of TABLES) {
    const except = table === 'meta' ? `WHERE name <> ALL ($1)` : ''
    const { rows } = await connection.query<{ count: number }>(
      `SELECT count(*) AS count FROM platformctl.${table} ${except}`,
      table === 'meta' ? [OWN_META] : [],
    )
    if (Number(rows[0]?.count ?? 0) > 0)
      throw new StoreMaintenanceError(
        `the store to copy to is not empty (${table} has rows) and was left as it is: name an empty database.`,
      )
  }
}

async function assertSameColumns(
  connection: Queryable,
  table: Table,
  given: readonly string[],
): Promise<void> {
  const { rows } = await connection.query<{ name: string }>(
    `SELECT column_name AS name FROM information_schema.columns WHERE table_schema = 'platformctl' AND table_name = $1`,
    [table],
  )
  const known = new Set(rows.map(({ name }) => name))
  const lost = given.filter((name) => !known.has(name))
  if (lost.length > 0)
    throw new StoreMaintenanceError(
      `the two stores differ in ${table} (${lost.join(', ')}): use one build for both.`,
    )
}

/** The server casts each value to its column's type. */
async function fill(connection: Queryable, table: Table, source: CopySource): Promise<number> {
  let count = 0
  for await (const page of source.pages(table)) {
    const rows = table === 'meta' ? page.filter(({ name }) => !OWN_META.includes(name as never)) : page
    if (rows.length === 0) continue
    const columns = Object.keys(rows[0] ?? {}).join(', ')
    const { rowCount } = await connection.query(
      `INSERT INTO platformctl.${table} (${columns})
       SELECT ${columns} FROM jsonb_populate_recordset(NULL::platformctl.${table}, $1::jsonb)`,
      [JSON.stringify(rows)],
    )
    if (rowCount !== rows.length)
      throw new StoreMaintenanceError(`not every row of ${table} could be copied.`)
    count += rows.length
  }
  return count
}
