import { type StoredSubscription, violations } from '../../course/invariants.ts'
import type { StoreContent, VerifyResult } from '../maintenance.ts'
import { listPlans, listTexts, planFaults } from '../plans.ts'
import { type SqliteDatabase, schemaVersion } from './connection.ts'
import { plainPerformer } from './sql.ts'

const MOST_FAULTS = 100
/** Rows are read in pages, because one long read would keep the write-ahead log from shrinking. */
const PAGE = 500

/** SQLite's own integrity check, foreign keys, and (`holds`) the invariants of the course. Changes nothing. */
export function verifyDatabase(
  database: SqliteDatabase,
  { now, holds }: { readonly now: number; readonly holds: StoreContent },
): VerifyResult {
  const faults: string[] = []
  let checked = 0
  let damaged = false
  try {
    for (const line of database.pragma('integrity_check(100)') as { integrity_check: string }[])
      if (line.integrity_check !== 'ok') faults.push(`integrity: ${line.integrity_check}`)
    damaged = faults.length > 0
    for (const { table, parent } of database.pragma('foreign_key_check') as {
      table: string
      parent: string
    }[])
      faults.push(`${table}: a row refers to a ${parent} that does not exist`)
    // A store that was never migrated has no rows to look at.
    if (!damaged && holds === 'course' && schemaVersion(database) > 0) {
      for (const row of subscriptions(database)) {
        checked += 1
        faults.push(...violations(row, now).map((sentence) => `subscription ${row.id}: ${sentence}`))
      }
      // A store of an earlier build has no texts.
      if (database.prepare(`SELECT 1 FROM sqlite_schema WHERE name = 'course_text'`).get() !== undefined) {
        const perform = plainPerformer(database)
        faults.push(...planFaults(perform(listPlans()), perform(listTexts())))
      }
    }
  } catch (error) {
    // A page that cannot be read ends the check; that is its result.
    damaged = true
    faults.push(`integrity: ${error instanceof Error ? error.message : 'it cannot be read'}`)
  }
  return {
    ok: faults.length === 0,
    damaged,
    checked,
    faults: faults.slice(0, MOST_FAULTS),
    moreFaults: Math.max(0, faults.length - MOST_FAULTS),
  }
}

function* subscriptions(database: SqliteDatabase): Generator<StoredSubscription> {
  const page = database.prepare(`
    SELECT id, state, enrolment, confirmed_at AS confirmedAt, unsubscribed_at AS unsubscribedAt, sent_days AS sentDays,
      lessons, due_at AS dueAt, last_sent_at AS lastSentAt,
      next_attempt_at AS nextAttemptAt, problem_kind AS problem
    FROM subscription WHERE id > ? ORDER BY id LIMIT ${PAGE}`)
  let after = ''
  for (;;) {
    // Safe to cast: the table is STRICT, so SQLite enforces the types of the columns selected above.
    const rows = page.all(after) as StoredSubscription[]
    yield* rows
    const last = rows.at(-1)
    if (last === undefined || rows.length < PAGE) return
    after = last.id
  }
}

/** Rows of each table, by name. */
export function countTableRows(database: SqliteDatabase): Record<string, number> {
  const tables = database
    .prepare(`SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%' ORDER BY name`)
    .pluck()
    .all() as string[]
  return Object.fromEntries(
    tables.map((table) => [
      table,
      Number(
        database
          .prepare(`SELECT count(*) FROM "${table.replaceAll('"', '""')}"`)
          .pluck()
          .get(),
      ),
    ]),
  )
}
