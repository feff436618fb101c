import path from 'node:path'
import Database from 'better-sqlite3'
import { openStore } from '../src/core/store/open.ts'

/**
 * A store of so many confirmed subscriptions, of which `due` wait for their first lesson since the time 1 and the others
 * far in the future; gives its file. Set-based, because a million sign-ups are not what is measured.
 */
export async function subscriptionsFile(input: {
  readonly folder: string
  readonly subscriptions: number
  readonly due: number
}): Promise<string> {
  const { folder, subscriptions, due } = input
  const file = path.join(folder, `${subscriptions}-${due}.sqlite`)
  await (await openStore({ kind: 'sqlite', file })).close()
  const database = new Database(file)
  database.exec('PRAGMA synchronous = OFF')
  database.exec(rows(subscriptions, due))
  database.pragma('wal_checkpoint(TRUNCATE)')
  database.close()
  return file
}

/** Puts so many due lessons in the place of whatever is there, while others have the file open. */
export function replaceByDue(file: string, due: number): void {
  const database = new Database(file)
  database.exec(`BEGIN IMMEDIATE; DELETE FROM subscription; ${rows(due, due)}; COMMIT`)
  database.close()
}

const rows = (subscriptions: number, due: number) => `
  INSERT INTO subscription (id, identity, address, state, enrolment, created_at, confirmed_at, next_attempt_at)
  WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < ${subscriptions})
  SELECT printf('%010d', n), n || '@example.com', n || '@example.com', 'confirmed', 1, 0, ${Date.now()},
    CASE WHEN n % ${Math.floor(subscriptions / due)} = 0 THEN 0 ELSE 4000000000000 + n END FROM n`
