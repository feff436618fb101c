import pg from 'pg'
import { expect, onTestFinished } from 'vitest'

/** A separate connection to a store's PostgreSQL, to hold locks or to try to take them. */
export async function besides(url: string): Promise<pg.Client> {
  const client = new pg.Client({ connectionString: url, options: '-c search_path=platformctl' })
  await client.connect()
  onTestFinished(() => client.end())
  return client
}

/** Waits until one of our statements is blocked by a lock, and gives that statement. */
export async function waiting(beside: pg.Client): Promise<{ readonly query: string; readonly lock: string }> {
  const sql = `SELECT query, wait_event AS lock FROM pg_stat_activity
    WHERE application_name = 'platformctl' AND wait_event_type = 'Lock' AND datname = current_database()`
  let found: { query: string; lock: string } | undefined
  const look = async () => {
    found = (await beside.query(sql)).rows[0]
    return found
  }
  await expect.poll(look, { interval: 5, timeout: 4000 }).toBeDefined()
  // The statement is read a moment before what it waits for, so the first look may show the one before it.
  await look()
  return found ?? { query: '', lock: '' }
}
