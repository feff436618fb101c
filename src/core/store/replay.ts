import { parseAddress } from '../address.ts'
import type { AuditLog } from '../audit.ts'
import { suppressionHashes } from '../course/links.ts'
import type { CourseStore } from '../course/store.ts'
import { releaseChange, suppressionChange } from '../mail/feedback/changes.ts'
import type { FeedbackStore } from '../mail/feedback/store.ts'
import { secret } from '../secret.ts'
import type { JournalEntry } from './journal.ts'

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

const PAGE = 500

/** The tables with rows of a person, each row with its address. */
const PERSONAL = ['subscription', 'organisation_invite', 'login_request', 'message', 'mailbox'] as const

export interface PersonalRow {
  readonly table: (typeof PERSONAL)[number]
  readonly id: string
  readonly address: string
}

/** A store that was restored, as the rule of the restore needs it. */
export interface RestoredStore {
  readonly course: Pick<CourseStore, 'findById' | 'unsubscribe' | 'undoUnsubscribe'>
  readonly feedback: Pick<FeedbackStore, 'find' | 'apply'>
  readonly audit: Pick<AuditLog, 'record'>
  /** The keys by which erased addresses were hashed. */
  readonly addressKeys: () => Promise<readonly string[]>
  /** At most `limit` rows after an id, in the order of their ids; a mailbox's id is its address. */
  readonly personal: (
    table: PersonalRow['table'],
    after: string,
    limit: number,
  ) => Promise<readonly Omit<PersonalRow, 'table'>[]>
  /** Deletes rows and remembers the hash of an erased address, by one commit; gives how many rows changed. */
  readonly erase: (erased: {
    readonly hash: string
    readonly at: number
    readonly rows: Readonly<Record<PersonalRow['table'], readonly string[]>>
  }) => Promise<number>
}

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

/** Does again in a restored store what happened after its backup. Doing it twice changes nothing more. */
export async function replay(store: RestoredStore, entries: readonly JournalEntry[]): Promise<Replayed> {
  const count = { ...NOTHING_REPLAYED }
  for (const entry of entries) if (entry.what === 'audited') await store.audit.record(entry.entry)
  count.erased = await eraseAgain(store, entries.filter(is('erased')))
  const listings = new Map(entries.filter(is('suppressed', 'released')).map((one) => [one.identity, one]))
  for (const what of await listAgain(store, [...listings.values()])) count[what] += 1
  const last = new Map(
    entries.filter(is('unsubscribed', 'undone')).map((one) => [`${one.id} ${one.enrolment}`, one]),
  )
  for (const entry of last.values()) {
    const { id, at: now } = entry
    const before = await store.course.findById(id)
    const change = changeAfterRestore(before, entry)
    if (change === undefined) continue
    const { what, enrolment } = change
    if (what === 'unsubscribed') await store.course.unsubscribe({ id, enrolment, now })
    else await store.course.undoUnsubscribe({ id, enrolment, now })
    if ((await store.course.findById(id))?.state !== before?.state) count[what] += 1
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
async function eraseAgain(store: RestoredStore, erased: readonly Entry<'erased'>[]): Promise<number> {
  if (erased.length === 0) return 0
  const byHash = new Map<string, PersonalRow[]>(erased.map(({ hash }) => [hash, []]))
  const keys = (await store.addressKeys()).map(secret)
  for await (const row of everybody(store)) {
    const address = parseAddress(row.address)
    if (!address.ok) continue
    for (const hash of suppressionHashes(keys, address.identity)) byHash.get(hash)?.push(row)
  }
  let changed = 0
  for (const { hash, at, rows } of erased) {
    const found = (table: PersonalRow['table']) =>
      (byHash.get(hash) ?? []).flatMap((row) => (row.table === table ? [row.id] : []))
    const { subscription, others = [], invites, logins } = rows
    const changes = await store.erase({
      hash,
      at,
      rows: {
        subscription: [
          ...(subscription === undefined ? [] : [subscription]),
          ...others,
          ...found('subscription'),
        ],
        organisation_invite: [...invites, ...found('organisation_invite')],
        login_request: [...logins, ...found('login_request')],
        message: found('message'),
        mailbox: found('mailbox'),
      },
    })
    if (changes > 0) changed += 1
  }
  return changed
}

async function* everybody(store: RestoredStore): AsyncGenerator<PersonalRow> {
  for (const table of PERSONAL)
    for (let after = ''; ; ) {
      const page = await store.personal(table, after, PAGE)
      for (const row of page) yield { table, ...row }
      const last = page.at(-1)
      if (last === undefined || page.length < PAGE) break
      after = last.id
    }
}

/** Applies the last entry about each address and gives what changed. */
async function listAgain(
  { feedback, addressKeys }: RestoredStore,
  listings: readonly Listing[],
): Promise<readonly Listing['what'][]> {
  const changed: Listing['what'][] = []
  const keys = (await addressKeys()).map(secret)
  for (const listing of listings) {
    const { what, at, identity } = listing
    const known = (await feedback.find(identity))?.suppression
    if (what === 'suppressed' ? known?.cause === listing.suppression.cause : known === undefined) continue
    const change =
      listing.what === 'suppressed'
        ? suppressionChange(identity, listing.suppression, (named) => suppressionHashes(keys, named))
        : releaseChange(identity, { at, reason: 'done again after a restore', source: 'operator' })
    const [applied] = await feedback.apply([change], at)
    if (applied !== 'erased') changed.push(what)
  }
  return changed
}
