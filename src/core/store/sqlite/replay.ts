import { suppressionHash } from '../../course/links.ts'
import { releaseChange, suppressionChange } from '../../mail/feedback/changes.ts'
import { insertAudit } from './audit.ts'
import type { SqliteDatabase } from './connection.ts'
import { sqliteCourse } from './course.ts'
import { sqliteFeedback } from './feedback.ts'
import { type JournalEntry, openJournal } from './journal.ts'

/** Changes that a journal made in an older store. */
export interface Replayed {
  readonly unsubscribed: number
  readonly undone: number
  readonly erased: number
  /** Put on the suppression list. */
  readonly suppressed: number
  /** Taken off it. */
  readonly released: number
}

export const NOTHING_REPLAYED: Replayed = {
  unsubscribed: 0,
  undone: 0,
  erased: 0,
  suppressed: 0,
  released: 0,
}

type Listing = Extract<JournalEntry, { what: 'suppressed' | 'released' }>

/** Does again in a restored store what happened after its backup. Doing it twice changes nothing more. */
export async function replay(database: SqliteDatabase, entries: readonly JournalEntry[]): Promise<Replayed> {
  const course = sqliteCourse(
    database,
    (work) => work(),
    // A replay claims nothing.
    () => 0,
  )
  const state = database.prepare('SELECT state FROM subscription WHERE id = ?').pluck()
  const enrolmentOf = database.prepare('SELECT enrolment FROM subscription WHERE id = ?').pluck()
  const suppress = database.prepare('INSERT OR IGNORE INTO suppression (hash, created_at) VALUES (?, ?)')
  const endedAt = database.prepare('SELECT unsubscribed_at FROM subscription WHERE id = ?').pluck()
  const count = { ...NOTHING_REPLAYED }
  const listings = new Map<string, Listing>()
  const erasedHashes = new Set<string>()
  // Only the last entry about each enrolment counts.
  const last = new Map<string, Extract<JournalEntry, { what: 'unsubscribed' | 'undone' }>>()
  for (const entry of entries) {
    if (entry.what === 'audited') {
      insertAudit(database, entry.entry)
      continue
    }
    if (entry.what === 'suppressed' || entry.what === 'released') {
      listings.set(entry.identity, entry)
      continue
    }
    if (entry.what !== 'erased') {
      last.set(`${entry.id} ${entry.enrolment}`, entry)
      continue
    }
    erasedHashes.add(entry.hash)
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
  forgetMailboxes(database, erasedHashes)
  for (const what of await replayListings(database, [...listings.values()])) count[what] += 1
  for (const { what, at, id, enrolment } of last.values()) {
    const current = Number(enrolmentOf.get(id) ?? Number.POSITIVE_INFINITY)
    // Skip an entry about an enrolment that has since started over. If the backup is older than the
    // enrolment, its later start is lost: apply its unsubscribe to what the backup has, so that the person
    // stays out, but not its undo, which would put them back into the earlier enrolment.
    if (current > enrolment || (current < enrolment && what === 'undone')) continue
    // The suppression that ended the enrolment has already been replayed; ending it twice would record that
    // the subscriber left as well.
    if (what === 'unsubscribed' && endedAt.get(id) === at) continue
    const before = state.get(id)
    if (what === 'unsubscribed') await course.unsubscribe({ id, enrolment: current, now: at })
    else await course.undoUnsubscribe({ id, enrolment, now: at })
    if (state.get(id) !== before) count[what] += 1
  }
  return count
}

/** Deletes what the backup knows about the mailboxes of people who were erased since. */
function forgetMailboxes(database: SqliteDatabase, hashes: ReadonlySet<string>): void {
  const key = database.prepare(`SELECT value FROM meta WHERE name = 'address_key'`).pluck().get()
  if (typeof key !== 'string' || hashes.size === 0) return
  const forget = database.prepare('DELETE FROM mailbox WHERE identity = ?')
  for (const identity of database.prepare('SELECT identity FROM mailbox').pluck().all() as string[])
    if (hashes.has(suppressionHash(key, identity))) forget.run(identity)
}

/** Applies the last entry about each address and gives what changed. */
async function replayListings(
  database: SqliteDatabase,
  listings: readonly Listing[],
): Promise<readonly Listing['what'][]> {
  const feedback = sqliteFeedback(database, (work) => work(), openJournal(undefined))
  const changed: Listing['what'][] = []
  for (const listing of listings) {
    const { what, at, identity } = listing
    const known = (await feedback.find(identity))?.suppression
    if (what === 'suppressed' ? known?.cause === listing.suppression.cause : known === undefined) continue
    const change =
      listing.what === 'suppressed'
        ? suppressionChange(identity, listing.suppression, () => [])
        : releaseChange(identity, { at, reason: 'done again after a restore', source: 'operator' })
    await feedback.apply([change], at)
    changed.push(what)
  }
  return changed
}
