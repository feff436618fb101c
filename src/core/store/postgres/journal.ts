import { systemRandom } from '../../random.ts'
import { type Departures, departuresSql, journalOf } from '../departures.ts'
import { ANCHOR, type JournalEntry } from '../journal.ts'
import { rowReader } from '../sql.ts'
import type { Pool } from './connection.ts'

const ANCHOR_BYTES = 12

/** The journal of a store on a server: its rows say who left. */
export async function journalFromRows(
  pool: Pool,
  schema: string,
  now: number,
): Promise<readonly JournalEntry[]> {
  const rows: Record<string, readonly unknown[]> = {}
  for (const [name, sql] of Object.entries(departuresSql(`${schema}.`)))
    rows[name] = (await pool.query(sql)).rows.map(rowReader())
  const anchor = await metaOf(pool, schema, ANCHOR)
  return [
    // Safe to cast: the columns are those of the statements.
    ...journalOf(rows as unknown as Departures),
    ...(anchor === undefined ? [] : [{ what: 'anchor' as const, at: now, id: anchor }]),
  ]
}

/** Gives the store an anchor, which every dump from now on carries. */
export async function keepAnchor(pool: Pool): Promise<void> {
  await pool.query('INSERT INTO platformctl.meta (name, value) VALUES ($1, $2) ON CONFLICT DO NOTHING', [
    ANCHOR,
    Buffer.from(systemRandom.bytes(ANCHOR_BYTES)).toString('base64url'),
  ])
}

export async function metaOf(pool: Pool, schema: string, name: string): Promise<string | undefined> {
  const { rows } = await pool.query<{ value: string }>(`SELECT value FROM ${schema}.meta WHERE name = $1`, [
    name,
  ])
  return rows[0]?.value
}
