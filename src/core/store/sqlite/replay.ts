import { insertAudit } from './audit.ts'
import type { SqliteDatabase } from './connection.ts'
import { sqliteCourse } from './course.ts'
import type { JournalEntry } from './journal.ts'

/** What a journal changed in a store that was older than it. */
export interface Replayed {
  readonly unsubscribed: number
  readonly undone: number
  readonly erased: number
}

/** Does again in a restored store what happened after its backup. Doing it twice changes nothing more. */
export async function replay(database: SqliteDatabase, entries: readonly JournalEntry[]): Promise<Replayed> {
  const course = sqliteCourse(
    database,
    (work) => work(),
    // Nothing is claimed here.
    () => 0,
  )
  const state = database.prepare('SELECT state FROM subscription WHERE id = ?').pluck()
  const enrolmentOf = database.prepare('SELECT enrolment FROM subscription WHERE id = ?').pluck()
  const suppress = database.prepare('INSERT OR IGNORE INTO suppression (hash, created_at) VALUES (?, ?)')
  const count = { unsubscribed: 0, undone: 0, erased: 0 }
  // Only the last word about each enrolment counts.
  const last = new Map<string, Extract<JournalEntry, { what: 'unsubscribed' | 'undone' }>>()
  for (const entry of entries) {
    if (entry.what === 'audited') {
      insertAudit(database, entry.entry)
      continue
    }
    if (entry.what !== 'erased') {
      last.set(`${entry.id} ${entry.enrolment}`, entry)
      continue
    }
    let changes = suppress.run(entry.hash, entry.at).changes
    for (const [table, ids] of [
      [
        'subscription',
        [
          ...(entry.rows.subscription === undefined ? [] : [entry.rows.subscription]),
          ...(entry.rows.others ?? []),
        ],
      ],
      ['organisation_invite', entry.rows.invites],
      ['login_request', entry.rows.logins],
    ] as const)
      for (const id of ids) changes += database.prepare(`DELETE FROM ${table} WHERE id = ?`).run(id).changes
    if (changes > 0) count.erased += 1
  }
  for (const { what, at, id, enrolment } of last.values()) {
    // A course that was started over since is not the one that was ended.
    if (enrolmentOf.get(id) !== enrolment) continue
    const before = state.get(id)
    if (what === 'unsubscribed') await course.unsubscribe({ id, enrolment, now: at })
    else await course.undoUnsubscribe({ id, enrolment, now: at })
    if (state.get(id) !== before) count[what] += 1
  }
  return count
}
