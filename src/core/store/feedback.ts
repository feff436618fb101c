import type { HistoryEntry } from '../course/history.ts'
import type { SubscriptionRecord } from '../course/subscription.ts'
import { endByFeedback, endedByBounce } from '../course/transitions/leave.ts'
import { newMailbox, withoutTraces } from '../mail/feedback/event.ts'
import type { AppliedChange, FeedbackStore, MailboxChange } from '../mail/feedback/store.ts'
import { countsOf } from '../mail/feedback/store.ts'
import { EVERY_COURSE, keepOut, leaving } from './departures.ts'
import { keptOf } from './erasure.ts'
import type { JournalEntry } from './journal.ts'
import { mailboxes } from './mailboxes.ts'
import { addCounts } from './sending.ts'
import { addAudit, all, deleteInSteps, first, journal, ROWS_A_STEP, type Sql, storableText } from './sql.ts'
import { enrolmentKey, history, subscriptions } from './subscriptions.ts'

const FIRST = { at: Number.MIN_SAFE_INTEGER, identity: '' }

export const TEXTS = {
  note: `INSERT INTO feedback_event (key, received_at) SELECT value, CAST(@now AS bigint) FROM {each @keys} WHERE true
    ON CONFLICT DO NOTHING RETURNING key`,
  subscriptions: `SELECT * FROM subscription
    WHERE identity IN (SELECT value FROM {each @identities}) OR person IN (SELECT value FROM {each @identities})
    ORDER BY id FOR UPDATE`,
  wasSent: `SELECT 1 FROM subscription s JOIN subscription_event e ON e.subscription = s.id
    WHERE (s.identity = @identity OR s.person = @identity) AND e.message_id = @messageId
    UNION ALL SELECT 1 FROM sent_mail
    WHERE recipient IN (SELECT value FROM {each @recipients}) AND sent_id = @messageId LIMIT 1`,
  prune: `DELETE FROM feedback_event WHERE key IN (SELECT key FROM feedback_event WHERE received_at < @before LIMIT ${ROWS_A_STEP})`,
}

/** Feedback from providers and mail servers: a fixed number of statements, however many changes. */
export function feedback(sql: Sql): FeedbackStore {
  const { one, write } = sql
  const note = (keys: readonly string[], now: number) =>
    all<{ key: string }>(TEXTS.note, { keys: [...new Set(keys)].sort(), now })

  function* apply(changes: readonly MailboxChange[], now: number) {
    const keys = changes.flatMap(({ key }) => key ?? [])
    const fresh = new Set((yield* note(keys, now)).map(({ key }) => key))
    const identities = [...new Set(changes.map(({ identity }) => identity))].sort()
    // First, so that two deliveries never wait in a circle, and an erasure under way is waited for and seen.
    const { known, made } = yield* mailboxes.lockAll(identities)
    const erased = yield* keptOf(changes.flatMap(({ erasureHashes }) => erasureHashes))
    const kept = yield* mailboxes.lockAll([...erased].sort())
    for (const [hash, mailbox] of kept.known) known.set(hash, mailbox)
    const hashOf = new Map<string, string>()
    for (const { identity, erasureHashes } of changes) {
      const hashes = erasureHashes.filter((one) => erased.has(one))
      // Of one that was erased under several keys, the one that is on the list.
      const hash = hashes.find((one) => known.get(one)?.suppression) ?? hashes[0]
      if (hash !== undefined) hashOf.set(identity, hash)
    }
    const found = yield* subscriptions.list(TEXTS.subscriptions, { identities })
    const enrolments = new Map(found.map((record) => [record.id, record]))
    const byIdentity = Map.groupBy(found, (record) => record.identity)
    const [saved, ended] = [new Set<string>(), new Set<string>()]
    const entries: (readonly [subscription: string, entry: HistoryEntry])[] = []
    const lines: JournalEntry[] = []
    const left: SubscriptionRecord[] = []
    const keptOut: string[] = []
    const applied = changes.map(({ key, identity, change, at, reason, entry }): AppliedChange => {
      // The second of two equal keys in one delivery finds its key taken.
      if (key !== undefined && !fresh.delete(storableText(key))) return 'repeated'
      const hash = hashOf.get(identity)
      const row = hash ?? identity
      const before = known.get(row) ?? newMailbox(row)
      const { mailbox: after, effect } = change(before)
      const mailbox = hash === undefined ? after : withoutTraces(before, after)
      const { suppression } = mailbox
      const line = { at: now, identity: row }
      let changed = mailbox !== before
      if (changed) {
        known.set(row, mailbox)
        saved.add(row)
      }
      if (suppression !== before.suppression)
        lines.push(suppression ? { what: 'suppressed', ...line, suppression } : { what: 'released', ...line })
      // Also of an address that is off the list again.
      if (hash !== undefined) return changed && suppression === undefined ? 'changed' : 'erased'
      const theirs = (byIdentity.get(identity) ?? []).flatMap(({ id }) => enrolments.get(id) ?? [])
      if (effect === 'unsubscribe' && theirs.every(({ state }) => state === 'unconfirmed'))
        keptOut.push(enrolmentKey(identity, EVERY_COURSE))
      for (const record of theirs) {
        const { id, enrolment, unsubscribedAt } = record
        const after = effect === 'none' ? undefined : endByFeedback(record, effect, { at, reason, now })
        // Who left already may have begun anew in what a restore has lost.
        if (effect === 'unsubscribe' && !after && record.state === 'unsubscribed')
          keptOut.push(enrolmentKey(identity, record.course))
        if (after) {
          enrolments.set(id, after)
          ended.add(id)
          const isFinal = endedByBounce(record) && !endedByBounce(after)
          if (isFinal || after.unsubscribedAt !== unsubscribedAt) left.push(after)
          changed = true
        }
        if (entry) entries.push([id, { at, enrolment, day: 0, reason, ...entry }])
      }
      return changed ? 'changed' : 'unchanged'
    })
    yield* mailboxes.save([...known.values()].filter(({ identity }) => saved.has(identity)))
    // Nothing is kept of an address about which nothing was learned.
    yield* mailboxes.drop([...made, ...kept.made].filter((identity) => !saved.has(identity)))
    yield* subscriptions.save([...enrolments.values()].filter(({ id }) => ended.has(id)))
    yield* history.remember(...entries)
    yield* addCounts(countsOf(changes, applied))
    lines.push(...(yield* leaving(now, ...left)), ...(yield* keepOut(now, [...new Set(keptOut)])))
    return { applied, lines }
  }

  return {
    async apply(changes, now, audit) {
      const isRelease = ({ what }: JournalEntry) => what === 'released'
      const { applied, lines } = await write(function* () {
        const done = yield* apply(changes, now)
        yield* journal(...done.lines.filter((line) => !isRelease(line)))
        yield* addAudit(audit)
        return done
      })
      // After the commit: if the store lost a release, a restore would mail the address all the same.
      await sql.journal(...lines.filter(isRelease))
      return applied
    },
    note: async (key, now) => void (await one(note([key], now))),
    find: (identity, hashes) => one(mailboxes.find(identity, hashes)),
    wasSent: async (asked) => (await one(first(TEXTS.wasSent, asked))) !== undefined,
    listSuppressed: async (limit, after = FIRST) =>
      (await one(mailboxes.suppressed(limit, after))).flatMap(({ identity, suppression }) =>
        suppression ? [{ identity, ...suppression }] : [],
      ),
    prune: (before) => deleteInSteps(sql, TEXTS.prune, { before }),
  }
}
