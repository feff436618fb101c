import { parseAddress } from '../address.ts'
import { suppressionHashes } from '../course/links.ts'
import type { Subscription } from '../course/subscription.ts'
import { EXPIRES_MS } from '../delivery/retries.ts'
import { MINUTE_MS } from '../durations.ts'
import { type FeedbackStore, releaseChange, suppressionChange } from '../mail/feedback/store.ts'
import { recipientHashes } from '../mail/send-once.ts'
import { type Secret, secret } from '../secret.ts'
import { type CopiedRow, PAGE, partsOf } from './copy.ts'
import { departures, outBy } from './departures.ts'
import { enrolments } from './enrolments.ts'
import { byTable, TEXTS as ERASURE, PERSONAL } from './erasure.ts'
import { feedback } from './feedback.ts'
import type { JournalEntry } from './journal.ts'
import { mailboxes } from './mailboxes.ts'
import { holdAgain } from './sending.ts'
import { addAudit, addressKeys, all, insertRows, run, type Sql, type Steps, snakeCase } from './sql.ts'

/** Changes that a journal made in an older store: to enrolments, to the list of the suppressed, and to streams of mail. */
export type Replayed = Readonly<typeof NOTHING_REPLAYED>
export const NOTHING_REPLAYED = {
  unsubscribed: 0,
  undone: 0,
  erased: 0,
  suppressed: 0,
  released: 0,
  paused: 0,
  resumed: 0,
}

const page = (table: string, id = 'id', address = 'address') =>
  `SELECT ${id} AS id, ${address} AS address FROM ${table} WHERE ${id} > @after AND ${address} IS NOT NULL ORDER BY ${id} LIMIT ${PAGE}`

/** Rows of people, by their tables, in the order of their ids. */
export const TEXTS = {
  ...byTable(PERSONAL, (table) => page(table)),
  mailbox: page('mailbox', 'identity', 'identity'),
}

type Found = { readonly table: keyof typeof TEXTS | 'sent_mail'; readonly id: string }
type Person = Pick<Found, 'id'> & { readonly address: string }

type Entry<What extends JournalEntry['what']> = Extract<JournalEntry, { what: What }>
type Leaving = Entry<'unsubscribed' | 'undone'>
type Listing = Entry<'suppressed' | 'released'>

/** Whether the last entry about an enrolment changes the one that a restore brought back, which may be an earlier one. */
function concerns({ what, at, enrolment }: Leaving, restored: Subscription, isKnown: boolean): boolean {
  // An entry about an enrolment that has since started over says nothing about the new one.
  if (restored.enrolment > enrolment) return false
  // Where the later start is lost, its unsubscribe ends the earlier enrolment, so that the person stays out; its undo
  // would put them back into it. A suppression that ended one was replayed: nobody left as well.
  const { unsubscribedAt = 0 } = restored
  if (what === 'unsubscribed') return unsubscribedAt !== at
  // Of a leaving that the journal has, it says which was first, whatever the clock said.
  return restored.enrolment === enrolment && (isKnown || unsubscribedAt <= at)
}

const keysOf = ({ id, enrolment, hash = id, at }: Leaving) => [`${id} ${enrolment} ${at}`, `${hash} ${at}`]

const erasureKey = ({ hash, at }: Entry<'erased'>) => `erased ${hash} ${at}`
/** Also those that were undone. */
const LEFT = `SELECT subscription AS id, enrolment, at FROM subscription_event WHERE kind = 'unsubscribed'`

/** The departures that a restored store knows, which it need not apply again. Ask before the first replay, which adds some. */
export function* departed(): Steps<ReadonlySet<string>> {
  const known = yield* departures()
  const left = [...known.filter(is('unsubscribed')), ...(yield* all<Leaving>(LEFT))]
  return new Set([...left.flatMap(keysOf), ...known.filter(is('erased')).map(erasureKey)])
}

/** Does again in a store that was brought back to an older state what happened since. Twice changes nothing more. */
export async function replay(sql: Sql, entries: readonly JournalEntry[], had: ReadonlySet<string>) {
  const { findById, unsubscribe, undoUnsubscribe } = enrolments(sql)
  const count = { ...NOTHING_REPLAYED }
  for (const entry of entries) if (entry.what === 'audited') await sql.write(() => addAudit(entry.entry))
  const keys = (await sql.one(addressKeys())).map(secret)
  const erased = entries.filter(is('erased'))
  const lastErased = new Map(erased.map(({ hash, at }) => [hash, at]))
  // An erasure has a line for each form of the address, of which the store keeps the first.
  const isLast = ({ hash, at }: Entry<'erased'>) => at >= (lastErased.get(hash) ?? 0) - MINUTE_MS
  const known = new Set(
    erased.filter((one) => isLast(one) && had.has(erasureKey(one))).map(({ hash }) => hash),
  )
  count.erased = await eraseAgain(sql, erased, known, keys)
  const listed = entries.filter(is('suppressed', 'released'))
  const told = new Set(listed.map((one) => `${one.identity} ${'suppression' in one && one.suppression.at}`))
  const listings = new Map(listed.map((one) => [one.identity, one]))
  for (const one of listings.values())
    if (await listAgain(feedback(sql), one, told, keys)) count[one.what] += 1
  const holds = new Map(entries.filter(is('paused', 'resumed')).map((one) => [one.name, one]))
  for (const hold of holds.values()) count[hold.what] += await sql.write(() => holdAgain(hold))
  const moves = entries.filter(is('unsubscribed', 'undone'))
  const last = new Map(moves.map((one) => [`${one.id} ${one.enrolment}`, one]))
  const written = new Set(moves.map(({ id, at }) => `${id} ${at}`))
  for (const [key, one] of last)
    if (one.what === 'unsubscribed' && keysOf(one).some((name) => had.has(name))) last.delete(key)
  const gone = new Set(erased.flatMap(({ rows }) => [rows.subscription, ...(rows.others ?? [])]))
  const out: { readonly hashes: readonly string[]; readonly now: number; readonly isNew: boolean }[] = []
  for (const entry of last.values()) {
    const { id, at: now, hash } = entry
    const before = await findById(id)
    // Their enrolment began after the backup: what is left of it is that they ended it.
    const isNew = before === undefined || before.state === 'unconfirmed'
    if ((isNew || before.enrolment < entry.enrolment) && hash !== undefined && !gone.has(id))
      out.push({ hashes: [hash], now, isNew })
    if (before === undefined) continue
    if (!concerns(entry, before, written.has(`${id} ${before.unsubscribedAt}`))) continue
    // An import with another address may have taken the id over since. In doubt, who left stays out.
    const [{ hashes = [] } = {}] = before.createdAt > now ? await sql.one(outBy([before])) : []
    if (hash !== undefined && hashes.length > 0 && !hashes.includes(hash)) continue
    await (entry.what === 'unsubscribed' ? unsubscribe : undoUnsubscribe)({ id, now })
    if ((await findById(id))?.state !== before.state) count[entry.what] += 1
  }
  await leaveAgain(sql, last)
  // Last: a run after one that ended in the middle does all of it again.
  for (const { isNew, ...kept } of out)
    count.unsubscribed += Number(isNew) * (await sql.write(() => run(ERASURE.suppress, kept)))
  return count
}

/** Ends the enrolments of people who left another one that a restore had lost, unless they agreed later or took that back. */
async function leaveAgain(sql: Sql, last: ReadonlyMap<string, Leaving>): Promise<void> {
  const [out, undone] = [new Map<string, number>(), new Map<string, number>()]
  for (const { what, id, hash, at } of last.values())
    if (what === 'undone') undone.set(id, Math.max(at, undone.get(id) ?? 0))
    else if (hash) out.set(hash, Math.max(at, out.get(hash) ?? 0))
  if (out.size === 0) return
  const { page, unsubscribe } = enrolments(sql)
  for (let rows = await page(''); rows.length > 0; rows = await page(rows.at(-1)?.id ?? ''))
    for (const { person, hashes } of await sql.one(outBy(rows))) {
      const { id, consent, confirmedAt = 0, unsubscribedAt } = person
      const agreedAt = Math.max(consent?.at ?? 0, confirmedAt, undone.get(id) ?? 0)
      const now = Math.max(0, ...hashes.map((hash) => out.get(hash) ?? 0))
      if (now > 0 && now >= agreedAt && now !== unsubscribedAt) await unsubscribe({ id, now })
    }
}

function is<What extends JournalEntry['what']>(...whats: readonly What[]) {
  const wanted: ReadonlySet<string> = new Set(whats)
  return (entry: JournalEntry): entry is Entry<What> => wanted.has(entry.what)
}

/** The mail that a restore takes from the replaced store can be older than an erasure, which deletes it, or newer. */
const WAITING = `${ERASURE.drop.message} AND created_at <= @now`
const SENT = `${ERASURE.sentMail} AND first_attempt_at <= @now`

/**
 * Deletes who was erased since, by the ids in the journal, and by the hashes of addresses: one made from rows has no ids.
 * Of an erasure that the restored store has, whose hash is in `known`, only mail from before it is left to delete.
 */
async function eraseAgain(
  sql: Sql,
  erased: readonly Entry<'erased'>[],
  known: ReadonlySet<string>,
  keys: readonly Secret[],
) {
  if (erased.length === 0) return 0
  const byHash = new Map<string, Found[]>(erased.map(({ hash }) => [hash, []]))
  for await (const { address: given, ...row } of everybody(sql)) {
    const address = parseAddress(given)
    if (!address.ok) continue
    const sent = () => keys.flatMap((key) => recipientHashes(key.reveal(), address.identity))
    for (const hash of suppressionHashes(keys, address.identity))
      byHash.get(hash)?.push(row, ...sent().map((id) => ({ table: 'sent_mail' as const, id })))
  }
  let changed = 0
  const { findById } = enrolments(sql)
  for (const { hash, at: now, rows } of erased) {
    const { subscription, others = [], invites, logins } = rows
    const theirs: string[] = []
    // An import with another address may have taken an id over since.
    for (const id of [subscription ?? [], others].flat())
      if (((await findById(id))?.createdAt ?? 0) <= now) theirs.push(id)
    const named: Partial<Record<Found['table'], readonly string[]>> = {
      subscription: theirs,
      organisation_invite: invites,
      login_request: logins,
    }
    const idsOf = (table: Found['table']) => [
      ...(named[table] ?? []),
      ...(byHash.get(hash) ?? []).flatMap((row) => (row.table === table ? [row.id] : [])),
    ]
    const changes = await sql.write(function* () {
      let sum = yield* run(WAITING, { ids: idsOf('message'), now })
      sum += yield* run(SENT, { recipients: idsOf('sent_mail'), now })
      if (known.has(hash)) return sum
      sum += yield* run(ERASURE.suppress, { hashes: [hash], now })
      for (const table of PERSONAL)
        if (table !== 'message') sum += yield* run(ERASURE.drop[table], { ids: idsOf(table) })
      return sum + (yield* mailboxes.drop(idsOf('mailbox')))
    })
    if (changes > 0) changed += 1
  }
  return changed
}

async function* everybody({ one }: Sql): AsyncGenerator<Found & Person> {
  // The texts have these names.
  for (const table of Object.keys(TEXTS) as (keyof typeof TEXTS)[])
    for (let after: string | undefined = ''; after !== undefined; ) {
      const rows: readonly Person[] = await one(all<Person>(TEXTS[table], { after }))
      for (const row of rows) yield { table, ...row }
      after = rows.length < PAGE ? undefined : rows.at(-1)?.id
    }
}

/** Applies the last entry about an address; false if that changes nothing. */
async function listAgain(
  { apply, find }: FeedbackStore,
  listing: Listing,
  told: ReadonlySet<string>,
  keys: readonly Secret[],
) {
  const { what, at, identity } = listing
  const known = (await find(identity))?.suppression
  // The restored store may know of a later suppression. Of two that the journal has, the order of its lines counts.
  const isListed = known && (known.at <= at || told.has(`${identity} ${known.at}`))
  if (what === 'suppressed' ? known?.cause === listing.suppression.cause : !isListed) return false
  const change =
    what === 'suppressed'
      ? suppressionChange(identity, listing.suppression, (one) => suppressionHashes(keys, one))
      : releaseChange(identity, { at, reason: 'done again after a restore', source: 'operator' })
  const [applied] = await apply([change], at)
  return applied !== 'erased'
}

/** What was told and what waits to leave: in an older state it would be said twice, or its end never. */
const TOLD = [
  ...(['incident', 'alert_message', 'status_update', 'announcement'] as const),
  ...(['silence', 'notice', 'heartbeat', 'message', 'sent_mail'] as const),
]
/** What is added to that of the restored store, and how. */
const ADDED: Partial<Record<(typeof TOLD)[number], string>> = {
  message: 'AND (r.subscription IS NULL OR r.subscription IN (SELECT id FROM subscription))',
  sent_mail: `ON CONFLICT (key) DO UPDATE SET sent_id = excluded.sent_id, first_attempt_at = excluded.first_attempt_at,
    content = excluded.content, recipient = excluded.recipient`,
}
type Told = Map<(typeof TOLD)[number], readonly CopiedRow[]>

/** Of sent mails, those that may have left since. `schema`: with a dot, where it is another than the store's. */
export function* toldBy(since: number, schema = ''): Steps<Told> {
  const told: Told = new Map()
  for (const table of TOLD) {
    const which = table === 'sent_mail' ? ' WHERE first_attempt_at > @after' : ''
    const rows = all<CopiedRow>(`SELECT * FROM ${schema}${table}${which}`, { after: since - EXPIRES_MS.mail })
    told.set(table, yield* rows)
  }
  return told
}

/** Puts what a replaced store told, and what waits there, in the place of the restored store's. */
export function* takeTold(told: Told): Steps<void> {
  const isConfirmation = ({ stream }: CopiedRow) => stream === 'confirmation'
  const waiting = told.get('message')?.filter(isConfirmation) ?? []
  // A link works only in the store that has its hash: of confirmations those go that have left since.
  const gone = `stream <> 'confirmation' OR id NOT IN (SELECT value FROM {each @ids})`
  yield* run(`DELETE FROM message WHERE ${gone}`, { ids: waiting.map(({ id }) => id) })
  for (const [table, found] of told) {
    if (ADDED[table] === undefined) yield* run(`DELETE FROM ${table}`)
    const rows = found.filter((row) => !isConfirmation(row))
    const columns = Object.keys(rows[0] ?? {}).map(snakeCase)
    const insert = `${insertRows(table, columns.join(', '))} ${ADDED[table] ?? ''}`
    for (let start = 0; start < rows.length; start += PAGE)
      for (const part of partsOf(rows.slice(start, start + PAGE))) yield* run(insert, { rows: part })
  }
}
