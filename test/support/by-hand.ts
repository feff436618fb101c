import Database from 'better-sqlite3'
import pg from 'pg'
import type { StoreAddress } from '../../src/core/env/settings.ts'

/** Reads or changes rows by hand, past all that the store promises; gives what is selected. */
export async function byHand(
  address: StoreAddress | undefined,
  sql: string,
): Promise<readonly Record<string, unknown>[]> {
  if (address === undefined) throw new TypeError('a store in memory has no rows to read')
  if (address.kind === 'sqlite') {
    const database = new Database(address.file)
    const statement = database.prepare<[], Record<string, unknown>>(sql)
    const rows = statement.reader ? statement.all() : []
    if (!statement.reader) statement.run()
    database.close()
    return rows
  }
  const connectionString = address.url.reveal()
  const client = new pg.Client({ connectionString })
  await client.connect()
  // In one transaction, and no option of the connection: also through a PgBouncer.
  for (const before of ['BEGIN', 'SET LOCAL search_path = platformctl']) await client.query(before)
  const { rows } = await client.query<Record<string, unknown>>(sql)
  await client.query('COMMIT')
  await client.end()
  return rows
}
