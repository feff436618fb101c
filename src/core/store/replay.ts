import { parseAddress } from '../address.ts'
import { suppressionHashes } from '../course/links.ts'
import { type FeedbackStore, releaseChange, suppressionChange } from '../mail/feedback/store.ts'
import { secret } from '../secret.ts'
import { addAudit } from './audit.ts'
import { enrolments } from './enrolments.ts'
import { TEXTS as ERASURE, PERSONAL } from './erasure.ts'
import { feedback } from './feedback.ts'
import type { JournalEntry } from './journal.ts'
import { mailboxes } from './mailboxes.ts'
import { addressKeys } from './meta.ts'
import { holdAgain } from './sending.ts'
import { all, run, type Sql } from './sql.ts'

/** Changes that a journal made in an older store. */
export type Replayed = Readonly<typeof NOTHING_REPLAYED>
export const NOTHING_REPLAYED = {
  unsubscribed: 0,
  undone: 0,
  erased: 0,
  /** Put on the suppression list. */
  suppressed: 0,
  /** Taken off it. */
  released: 0,
  /** Streams of mail. */
  paused: 0,
  resumed: 0,
}

const PAGE = 500

const page = (table: string, id = 'id', address = 'address') =>
  `SELECT ${id} AS id, ${address} AS address FROM ${table} WHERE ${id} > @after AND ${address} IS NOT NULL ORDER BY ${id} LIMIT ${PAGE}`

/** Rows of people, by their tables, in the order of their ids. */
export const TEXTS = {
  subscription: page('subscription'),
  organisation_invite: page('organisation_invite'),
  login_request: page('login_request'),
  message: page('message'),
  mailbox: page('mailbox', 'identity', 'identity'),
}

interface Found {
  readonly table: keyof typeof TEXTS
  readonly id: string
}
type Person = Pick<Found, 'id'> & { readonly address: string }

type Entry<What extends JournalEntry['what']> = Extract<JournalEntry, { what: What }>
type Leaving = Entry<'unsubscribed' | 'undone'>
type Listing = Entry<'suppressed' | 'released'>

/**
 * What an entry does to the enrolment that a restore brought back: the one that it is said of, an earlier one, or
 * nothing. Only the last entry about each enrolment counts.
 */
function changeAfterRestore(
  restored: { readonly enrolment: number; readonly unsubscribedAt?: number | undefined } | undefined,
  { what, at, enrolment }: Leaving,
): { readonly what: Leaving['what']; readonly enrolment: number } | undefined {
  // An entry about an enrolment that has since started over says nothing about the new one.
  if (restored === undefined || restored.enrolment > enrolment) return undefined
  // The store is older than the enrolment, so its later start is lost. Apply its unsubscribe to the earlier enrolment,
  // so that the person stays out, but not its undo, which would put them back into the earlier one.
  if (restored.enrolment < enrolment && what === 'undone') return undefined
  // The suppression that ended the enrolment has already been replayed; ending it twice would record that the
  // subscriber left as well.
  if (what === 'unsubscribed' && restored.unsubscribedAt === at) return undefined
  return { what, enrolment: restored.enrolment }
}

/**
 * Does again in a store that was brought back to an older state what happened since. Doing it twice changes nothing
 * more.
 */
export async function replay(sql: Sql, entries: readonly JournalEntry[]): Promise<Replayed> {
  const { findById, unsubscribe, undoUnsubscribe } = enrolments(sql)
  const count = { ...NOTHING_REPLAYED }
  for (const entry of entries) if (entry.what === 'audited') await sql.write(() => addAudit(entry.entry))
  const keys = (await sql.one(addressKeys())).map(secret)
  const hashesOf = (identity: string) => suppressionHashes(keys, identity)
  count.erased = await eraseAgain(sql, entries.filter(is('erased')), hashesOf)
  const listings = new Map(entries.filter(is('suppressed', 'released')).map((one) => [one.identity, one]))
  for (const what of await listAgain(feedback(sql), [...listings.values()], hashesOf)) count[what] += 1
  const holds = new Map(entries.filter(is('paused', 'resumed')).map((one) => [one.name, one]))
  for (const hold of holds.values()) count[hold.what] += await sql.write(() => holdAgain(hold))
  const last = new Map(
    entries.filter(is('unsubscribed', 'undone')).map((one) => [`${one.id} ${one.enrolment}`, one]),
  )
  const gone = new Set(
    entries.filter(is('erased')).flatMap(({ rows }) => [rows.subscription, ...(rows.others ?? [])]),
  )
  for (const entry of last.values()) {
    const { id, at: now, hash } = entry
    const before = await findById(id)
    // Their enrolment began after the backup: what is left of it is that they ended it.
    if (before === undefined && hash !== undefined && !gone.has(id))
      count.unsubscribed += await sql.write(() => run(ERASURE.suppress, { hash, now }))
    const change = changeAfterRestore(before, entry)
    if (change === undefined) continue
    const { what, enrolment } = change
    if (what === 'unsubscribed') await unsubscribe({ id, enrolment, now })
    else await undoUnsubscribe({ id, enrolment, now })
    if ((await findById(id))?.state !== before?.state) count[what] += 1
  }
  return count
}

function is<What extends JournalEntry['what']>(...whats: readonly What[]) {
  const wanted: ReadonlySet<string> = new Set(whats)
  return (entry: JournalEntry): entry is Entry<What> => wanted.has(entry.what)
}

/**
 * Deletes the people who were erased since, by the ids that the journal has of them, and whoever has an address with
 * the hash of an erased one: a journal made from rows has no ids.
 */
async function eraseAgain(
  sql: Sql,
  erased: readonly Entry<'erased'>[],
  hashesOf: (identity: string) => readonly string[],
): Promise<number> {
  if (erased.length === 0) return 0
  const byHash = new Map<string, Found[]>(erased.map(({ hash }) => [hash, []]))
  for await (const { address: given, ...row } of everybody(sql)) {
    const address = parseAddress(given)
    if (address.ok) for (const hash of hashesOf(address.identity)) byHash.get(hash)?.push(row)
  }
  let changed = 0
  for (const { hash, at: now, rows } of erased) {
    const { subscription, others = [], invites, logins } = rows
    const named: Partial<Record<Found['table'], readonly string[]>> = {
      subscription: subscription === undefined ? others : [subscription, ...others],
      organisation_invite: invites,
      login_request: logins,
    }
    const idsOf = (table: Found['table']) => [
      ...(named[table] ?? []),
      ...(byHash.get(hash) ?? []).flatMap((row) => (row.table === table ? [row.id] : [])),
    ]
    const changes = await sql.write(function* () {
      let sum = yield* run(ERASURE.suppress, { hash, now })
      for (const table of PERSONAL) sum += yield* run(ERASURE.drop[table], { ids: idsOf(table) })
      return sum + (yield* mailboxes.drop(idsOf('mailbox')))
    })
    if (changes > 0) changed += 1
  }
  return changed
}

async function* everybody({ one }: Sql): AsyncGenerator<Found & Person> {
  // The texts have these names.
  for (const table of Object.keys(TEXTS) as Found['table'][])
    for (let after: string | undefined = ''; after !== undefined; ) {
      const rows: readonly Person[] = await one(all<Person>(TEXTS[table], { after }))
      for (const row of rows) yield { table, ...row }
      after = rows.length < PAGE ? undefined : rows.at(-1)?.id
    }
}

/** Applies the last entry about each address and gives what changed. */
async function listAgain(
  { apply, find }: FeedbackStore,
  listings: readonly Listing[],
  hashesOf: (identity: string) => readonly string[],
): Promise<readonly Listing['what'][]> {
  const changed: Listing['what'][] = []
  for (const listing of listings) {
    const { what, at, identity } = listing
    const known = (await find(identity))?.suppression
    if (what === 'suppressed' ? known?.cause === listing.suppression.cause : known === undefined) continue
    const change =
      listing.what === 'suppressed'
        ? suppressionChange(identity, listing.suppression, hashesOf)
        : releaseChange(identity, { at, reason: 'done again after a restore', source: 'operator' })
    const [applied] = await apply([change], at)
    if (applied !== 'erased') changed.push(what)
  }
  return changed
}
