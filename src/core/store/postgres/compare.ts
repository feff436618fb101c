import type { Secret } from '../../secret.ts'
import { type CopySource, OWN_META, TABLES, type Table, type TableDifference } from '../copy.ts'
import { POSTGRES_STEPS } from '../migrations.ts'
import { StoreOpenError } from '../store.ts'
import { createPool, type Queryable } from './connection.ts'
import { sentence } from './faults.ts'
import { schemaVersion } from './migrate.ts'

/** Compares each table of a source with the database's: which ones differ, and how many rows each side has. */
export async function compareWithPostgres(
  source: CopySource,
  url: Secret,
): Promise<readonly TableDifference[]> {
  const pool = createPool({ url, size: 1, onIdleFault: () => {} })
  try {
    const empty = (await schemaVersion(pool)) < POSTGRES_STEPS.length
    const differences: TableDifference[] = []
    for (const table of TABLES) {
      const { rows, same } = await compareTable(pool, table, source, empty)
      const to = empty ? 0 : await countOf(pool, table)
      if (!same || rows !== to) differences.push({ table, from: rows, to })
    }
    return differences
  } catch (error) {
    if (error instanceof StoreOpenError) throw error
    throw new StoreOpenError(sentence(error), { cause: error })
  } finally {
    await pool.end()
  }
}

/** The server casts the source's rows to its own types and says how many of them it has. */
async function compareTable(
  pool: Queryable,
  table: Table,
  source: CopySource,
  empty: boolean,
): Promise<{ readonly rows: number; readonly same: boolean }> {
  let rows = 0
  let same = true
  for await (const page of source.pages(table)) {
    const kept = table === 'meta' ? page.filter(({ name }) => !OWN_META.includes(name as never)) : page
    if (kept.length === 0) continue
    rows += kept.length
    if (empty || !same) continue
    const columns = Object.keys(kept[0] ?? {}).join(', ')
    const found = await pool.query<{ count: number }>(
      `SELECT count(*) AS count FROM (
         SELECT ${columns} FROM jsonb_populate_recordset(NULL::platformctl.${table}, $1::jsonb)
         INTERSECT SELECT ${columns} FROM platformctl.${table}) AS both_sides`,
      [JSON.stringify(kept)],
    )
    same = Number(found.rows[0]?.count ?? 0) === kept.length
  }
  return { rows, same: same && !(empty && rows > 0) }
}

async function countOf(pool: Queryable, table: Table): Promise<number> {
  const except = table === 'meta' ? 'WHERE name <> ALL ($1)' : ''
  const { rows } = await pool.query<{ count: number }>(
    `SELECT count(*) AS count FROM platformctl.${table} ${except}`,
    table === 'meta' ? [OWN_META] : [],
  )
  return Number(rows[0]?.count ?? 0)
}
