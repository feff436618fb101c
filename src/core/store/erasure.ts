import { asciiAddress } from '../address.ts'
import type { CourseStore } from '../course/store.ts'
import { MINUTE_MS } from '../durations.ts'
import { newMailbox, type Suppression, suppressed, withoutTraces } from '../mail/feedback/event.ts'
import { mailboxes } from './mailboxes.ts'
import { addAudit, all, journal, lock, run, SPACE, type Sql, type Steps } from './sql.ts'

/** Tables beside the course with rows about a person. */
const RELATED = ['organisation_invite', 'login_request', 'message'] as const
export const PERSONAL = ['subscription', ...RELATED] as const

// The letters that a store can lower-case depend on it, so rows with other characters are selected as well.
const relatedText = (table: string) => `SELECT id, address FROM ${table}
  WHERE lower(trim(address)) IN (SELECT value FROM {each @spellings}) OR {isForeign address}`
export const byTable = <T extends string>(tables: readonly T[], text: (table: T) => string) =>
  Object.fromEntries(tables.map((table) => [table, text(table)])) as Readonly<Record<T, string>>

export const TEXTS = {
  suppress: `INSERT INTO suppression (hash, created_at) SELECT value, CAST(@now AS bigint) FROM {each @hashes} WHERE true
    ON CONFLICT (hash) DO UPDATE SET created_at = excluded.created_at WHERE suppression.created_at < excluded.created_at - ${MINUTE_MS}`,
  kept: 'SELECT hash FROM suppression WHERE hash IN (SELECT value FROM {each @hashes})',
  subscriptions: `DELETE FROM subscription WHERE identity = @identity OR person = @identity RETURNING id, address`,
  sentMail: `DELETE FROM sent_mail WHERE recipient IN (SELECT value FROM {each @recipients})`,
  related: byTable(RELATED, relatedText),
  drop: byTable(PERSONAL, (table) => `DELETE FROM ${table} WHERE id IN (SELECT value FROM {each @ids})`),
}

/** Those of these hashes that erasures have left, or departures from courses that the store does not know. */
export function* keptOf(hashes: readonly string[]): Steps<ReadonlySet<string>> {
  return new Set((yield* all<{ hash: string }>(TEXTS.kept, { hashes })).map(({ hash }) => hash))
}

type Held = { readonly id: string; readonly address: string }

const idsOf = (rows: readonly Held[]) => rows.map(({ id }) => id)

/** The suppression of an address that is erased, kept under its hash: what bounced bounces, and who complained is not mailed. */
function* keepListed(suppression: Suppression | undefined, identity: string, at: number) {
  if (suppression === undefined) return []
  const { known } = yield* mailboxes.lockAll([identity])
  const before = known.get(identity) ?? newMailbox(identity)
  const kept = withoutTraces(before, suppressed(before, suppression).mailbox)
  yield* mailboxes.save([kept])
  return [{ what: 'suppressed', at, identity, suppression: kept.suppression ?? suppression } as const]
}

export function erasure({ write, scrub }: Sql) {
  function* related(table: (typeof RELATED)[number], spellings: readonly string[]): Steps<readonly Held[]> {
    const found = yield* all<Held>(TEXTS.related[table], { spellings })
    const theirs = found.filter(({ address }) =>
      [address, asciiAddress(address)].some((one) => spellings.includes(one.trim().toLowerCase())),
    )
    if (theirs.length > 0) yield* run(TEXTS.drop[table], { ids: idsOf(theirs) })
    return theirs
  }
  return {
    async erase({ identity, spellings, recipients, suppressionHash: hash, now, audit }) {
      const erased = await write(function* () {
        // First, so that feedback about the address waits, and then finds it erased.
        const { known } = yield* mailboxes.lockAll([identity])
        // A mail that is being asked for is erased whole, or asked for afterwards.
        for (const recipient of recipients.toSorted()) yield* lock(SPACE.recipient, recipient)
        yield* run(TEXTS.suppress, { hashes: [hash], now })
        yield* mailboxes.drop([identity])
        const listed = yield* keepListed(known.get(identity)?.suppression, hash, now)
        const subscriptions = yield* all<Held>(TEXTS.subscriptions, { identity })
        const invites = yield* related('organisation_invite', spellings)
        const logins = yield* related('login_request', spellings)
        const unsent = yield* related('message', spellings)
        const sentMail = yield* run(TEXTS.sentMail, { recipients })
        const forgotten = (yield { journal: [], forget: identity }).changes > 0
        const [subscription, ...others] = idsOf(subscriptions)
        const rows = { subscription, others, invites: idsOf(invites), logins: idsOf(logins) }
        yield* journal({ what: 'erased', at: now, hash, rows }, ...listed)
        yield* addAudit(audit)
        return { subscriptions, related: [...invites, ...logins, ...unsent], sentMail, forgotten }
      })
      const { subscriptions, related: others, sentMail, forgotten } = erased
      const texts = [identity, ...[...subscriptions, ...others].map(({ address }) => address)]
      return {
        existed: subscriptions.length > 0,
        related: others.length + sentMail,
        bytesGone: (await scrub(texts)) && forgotten,
      }
    },
  } satisfies Partial<CourseStore>
}
