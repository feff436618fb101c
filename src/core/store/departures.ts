import type { AuditEntry } from '../audit.ts'
import { suppressionHash } from '../course/links.ts'
import type { SubscriptionRecord } from '../course/subscription.ts'
import { systemRandom } from '../host.ts'
import { TEXTS as ERASURE, keptOf } from './erasure.ts'
import { ANCHOR, type JournalEntry } from './journal.ts'
import { type MailboxRow, mailboxOf } from './mailboxes.ts'
import { all, getMeta, getOrMake, run, type Steps } from './sql.ts'
import { enrolmentKey } from './subscriptions.ts'

type Left = { readonly id: string; readonly enrolment: number; readonly at: number }

/** The id that ties a store, its backups and its dumps to their journal, made if there is none. */
export const anchorOf = () => getOrMake(ANCHOR, Buffer.from(systemRandom.bytes(12)).toString('base64url'))

/** The id of a database in what it exports: made from its key, so that dumps have it which are older than any export. */
export function* exportAnchor(): Steps<string> {
  const key = yield* storeKey()
  return key ? suppressionHash(key, 'journal') : yield* anchorOf()
}

/** Begins the hashes of those who left a course; an erasure’s are bare. */
const LEFT = 'left:'
/** In the place of a course in such a hash: of somebody who left before beginning any. No course has this id. */
export const EVERY_COURSE = '*'

function* leftHash(schema?: string): Steps<(key: string) => string | undefined> {
  const secret = yield* storeKey(schema)
  return (key) => secret && `${LEFT}${suppressionHash(secret, key)}`
}

type Enrolment = Pick<SubscriptionRecord, 'id' | 'enrolment' | 'identity' | 'course'>

/** What the journal says of people who leave a course. */
export function* leaving(at: number, ...people: readonly Enrolment[]): Steps<readonly JournalEntry[]> {
  if (people.length === 0) return []
  const hashOf = yield* leftHash()
  return people.map(({ id, enrolment, identity, course }) => {
    return { what: 'unsubscribed', at, id, enrolment, hash: hashOf(enrolmentKey(identity, course)) }
  })
}

/** Keeps out by a link’s id, or by keys of enrolments; gives what the journal says of it, at most once a minute. */
export function* keepOut(at: number, keys: readonly string[]): Steps<readonly JournalEntry[]> {
  if (keys.length === 0) return []
  const hashOf = yield* leftHash()
  const hashes = keys.flatMap((key) => hashOf(key) ?? [])
  if ((yield* run(ERASURE.suppress, { hashes, now: at })) === 0) return []
  return hashes.map((hash) => ({ what: 'unsubscribed', at, id: hash, enrolment: 0, hash }))
}

/** People with the hashes that keep them out of their course. */
export function* outBy<Person extends Pick<Enrolment, 'id' | 'identity' | 'course'>>(
  people: readonly Person[],
) {
  const hashOf = yield* leftHash()
  return people.map((person) => {
    const key = enrolmentKey(person.identity, person.course)
    const keys = [key, enrolmentKey(person.identity, EVERY_COURSE), person.id]
    return { person, key, hashes: keys.flatMap((one) => hashOf(one) ?? []) }
  })
}

/** Of the keys of enrolments those that somebody left whom the store did not know: only they themselves begin again. */
export function* leftOf(people: readonly Pick<Enrolment, 'id' | 'identity' | 'course'>[]) {
  const hashed = yield* outBy(people)
  const left = yield* keptOf(hashed.flatMap(({ hashes }) => hashes))
  return new Set(hashed.flatMap(({ key, hashes }) => (hashes.some((hash) => left.has(hash)) ? [key] : [])))
}

export const TEXTS = (schema = '') => ({
  // Without those whom a bounce alone ended: their suppression ends them again, and leaves it to an operator to retry.
  // A complaint after a bounce is as final as an unsubscribe of then.
  left: `SELECT id, enrolment, identity AS key,
      CASE WHEN problem_since > unsubscribed_at THEN problem_since ELSE unsubscribed_at END AS at
    FROM ${schema}subscription s WHERE state = 'unsubscribed' AND unsubscribed_at IS NOT NULL
      AND NOT (coalesce(problem_kind = 'bounced' AND problem_since = unsubscribed_at, false) AND EXISTS (
        SELECT 1 FROM ${schema}mailbox m WHERE m.identity = coalesce(s.person, s.identity) AND m.cause IS NOT NULL))`,
  // Of earlier enrolments what their history says; of the current one only a return, which its row does not show.
  past: `SELECT s.id, e.enrolment, e.at, e.kind AS what FROM ${schema}subscription_event e JOIN ${schema}subscription s ON s.id = e.subscription
    WHERE e.kind IN ('unsubscribed', 'undone')
      AND (e.enrolment < s.enrolment OR (e.kind = 'undone' AND e.enrolment = s.enrolment AND s.state = 'confirmed'))
    ORDER BY e.at`,
  suppressed: `SELECT m.*, (SELECT max(problem_since) FROM ${schema}subscription s
      WHERE (s.identity = m.identity OR s.person = m.identity) AND problem_kind = 'bounced' AND problem_since = unsubscribed_at) AS since
    FROM ${schema}mailbox m WHERE cause IS NOT NULL`,
  erased: `SELECT hash, created_at AS at FROM ${schema}suppression`,
  held: `SELECT name, paused_at, reason, resumed_at FROM ${schema}breaker`,
  audited: `SELECT id, at, action, who, place, subject, details FROM ${schema}audit ORDER BY at, id`,
})

/** The journal that a store would have written, from its rows: for one that has none, or lost it. */
export function* departures(schema?: string): Steps<readonly JournalEntry[]> {
  const text = TEXTS(schema)
  const left = yield* all<Left & { readonly key: string }>(text.left)
  const hashOf = yield* leftHash(schema)
  const listed = yield* all<MailboxRow & { readonly since?: number }>(text.suppressed)
  type Held = { name: string; pausedAt?: number; reason?: string; resumedAt?: number }
  const audited = yield* all<AuditEntry>(text.audited)
  return [
    ...(yield* all<Left & { readonly what: 'unsubscribed' | 'undone' }>(text.past)),
    ...left.map(({ key, ...row }) => ({ what: 'unsubscribed' as const, ...row, hash: hashOf(key) })),
    ...listed.flatMap(({ since = 0, ...row }) => {
      const { identity, suppression } = mailboxOf(row)
      // A provider may date a bounce before what the journal has: what it ended says when it was heard of.
      const at = Math.max(suppression?.at ?? 0, since)
      return suppression ? { what: 'suppressed' as const, at, identity, suppression } : []
    }),
    ...(yield* all<{ readonly hash: string; readonly at: number }>(text.erased)).map(({ hash, at }) =>
      hash.startsWith(LEFT)
        ? { what: 'unsubscribed' as const, at, id: hash, enrolment: 0, hash }
        : { what: 'erased' as const, at, hash, rows: { subscription: undefined, invites: [], logins: [] } },
    ),
    ...(yield* all<Held>(text.held)).map(({ name, pausedAt, reason = '', resumedAt = 0 }) =>
      pausedAt === undefined
        ? { what: 'resumed' as const, at: resumedAt, name }
        : { what: 'paused' as const, at: pausedAt, name, reason },
    ),
    ...audited.map((entry) => ({ what: 'audited' as const, at: entry.at, entry })),
  ]
}

/** What tells stores apart: each makes this key once, and its backups and dumps keep it. */
export const storeKey = (schema?: string): Steps<string | undefined> => getMeta('address_key', schema)

/** The departures of a replaced store; undefined if it is another one than that with this key. */
export function* departuresOf(key: string | undefined, schema?: string) {
  return (yield* storeKey(schema)) === key ? yield* departures(schema) : undefined
}
