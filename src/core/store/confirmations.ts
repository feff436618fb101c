import { TOKEN_LIFE_MS } from '../course/due.ts'
import { lessonsKey } from '../course/host.ts'
import type { CourseStore } from '../course/store.ts'
import type { Preferences, TokenAnswer } from '../course/subscription.ts'
import * as joining from '../course/transitions/enrol.ts'
import { keptOf } from './erasure.ts'
import { mailboxes } from './mailboxes.ts'
import { messageSteps as queue } from './messages.ts'
import { keepPlan } from './plans.ts'
import { deleteInSteps, first, lock, ROWS_A_STEP, run, SPACE, type Sql, type Steps } from './sql.ts'
import { enrolmentKey, history, subscriptions } from './subscriptions.ts'

export const TEXTS = {
  // Rows written by earlier builds get their mailbox key when somebody asks for the course again.
  setMailboxKey: `UPDATE subscription SET mailbox_key = @mailboxKey WHERE id = @id AND mailbox_key IS DISTINCT FROM @mailboxKey`,
  // Counts those of all addresses no further than the budget.
  recent: `SELECT count(*) AS count, max(CASE WHEN s.course = @course THEN c.created_at END) AS newest_at,
      (SELECT count(*) FROM (SELECT 1 FROM confirmation WHERE created_at > @after AND created_at < @before LIMIT @mostADay) AS any_address) AS of_all
    FROM subscription s JOIN confirmation c ON c.subscription = s.id
    WHERE s.mailbox_key = @mailboxKey AND c.created_at > @after AND c.created_at < @before`,
  // A new link keeps the time zone and language of the previous one unless this request names others.
  asked: `SELECT time_zone, language FROM confirmation WHERE subscription = @id ORDER BY created_at DESC LIMIT 1`,
  dropOld: `DELETE FROM confirmation WHERE subscription = @id AND created_at < @before AND used_at IS NULL AND @wanted`,
  replace: 'UPDATE confirmation SET replaced = true WHERE subscription = @id AND used_at IS NULL AND @wanted',
  insert: `INSERT INTO confirmation (token_hash, subscription, created_at, time_zone, language)
    VALUES (@tokenHash, @id, @now, @timeZone, @language)`,
  drop: 'DELETE FROM confirmation WHERE token_hash = @tokenHash AND NOT @wanted',
  dropUnasked: 'DELETE FROM subscription WHERE id = @id',
  lock: 'SELECT 1 FROM confirmation WHERE token_hash = @tokenHash FOR UPDATE',
  // A link that an enrolment overtook is both used and replaced: it answers as a used one while the subscription lasts.
  token: `SELECT created_at, replaced, subscription, time_zone, language,
      CASE WHEN NOT replaced OR EXISTS (SELECT 1 FROM subscription s WHERE s.id = subscription AND s.state = 'confirmed')
        THEN used_at END AS used_at
    FROM confirmation WHERE token_hash = @tokenHash`,
  use: 'UPDATE confirmation SET used_at = @now WHERE token_hash = @tokenHash',
  // Not in place of a newer link: where an older build mailed that, this one's message still waits.
  renew: `UPDATE confirmation SET token_hash = @tokenHash
    WHERE subscription = @id AND used_at IS NULL AND NOT replaced AND created_at > @after
      AND NOT EXISTS (SELECT 1 FROM confirmation o WHERE o.token_hash = @tokenHash)`,
  prune: `DELETE FROM subscription WHERE id IN (
    SELECT id FROM subscription AS old WHERE state = 'unconfirmed' AND created_at < @before AND NOT EXISTS
      (SELECT 1 FROM confirmation WHERE subscription = old.id AND created_at >= @before)
    LIMIT ${ROWS_A_STEP} FOR UPDATE SKIP LOCKED)`,
  // Each dispatch call leaves one (`lessonsKey`); in the order of bytes, in which SQLite has an index.
  pruneNotes: `DELETE FROM sent_mail WHERE key IN (SELECT key FROM sent_mail
    WHERE {byBytes key} > '${lessonsKey('')}' AND {byBytes key} < '${lessonsKey('~')}' AND first_attempt_at < @before LIMIT ${ROWS_A_STEP})`,
}

type Token = joining.Confirmation & Preferences & { readonly subscription: string }

export function confirmations(sql: Sql) {
  const { one, write } = sql
  function* readToken({ tokenHash, now }: { tokenHash: string; now: number }) {
    const found: Token | undefined = yield* first<Token>(TEXTS.token, { tokenHash })
    const token = found && { ...found, replaced: Boolean(found.replaced) }
    return { token, verdict: joining.readConfirmation(token, now) }
  }
  return {
    requestConfirmation: (asked) =>
      write(function* () {
        const { identity, mailboxKey = identity, course, id, tokenHash, now, message } = asked
        const { mostADay = Number.MAX_SAFE_INTEGER, erasureHashes = [], withoutMail = false } = asked
        const suppressed = (yield* mailboxes.suppressedOf([identity])).has(identity)
        const erased = (yield* keptOf(erasureHashes)).size > 0
        // One at a time for a mailbox: two spellings at once would each find room for one more.
        yield* lock(SPACE.mailbox, mailboxKey)
        const created = joining.newSubscription(asked)
        const isNew = yield* subscriptions.insert({ ...created, mailboxKey })
        const current = (yield* subscriptions.lockKey(enrolmentKey(identity, course))) ?? created
        yield* run(TEXTS.setMailboxKey, { mailboxKey, id: current.id })
        // One at a time for the platform from here on: all who ask at once would each find room in its budget.
        yield* lock(SPACE.budget, 'confirmations')
        const window = { ...joining.recentWindow(now), mailboxKey, course, mostADay }
        const recent = yield* first<joining.RecentConfirmations & { ofAll: number }>(TEXTS.recent, window)
        const { count = 0, newestAt, ofAll = 0 } = recent ?? {}
        const exhausted = ofAll >= mostADay
        const isAllowed = !exhausted && !erased && !suppressed && !withoutMail
        const known = yield* mailboxes.cleared(current)
        const wanted = isAllowed && joining.wantsConfirmation(known, { count, newestAt }, now)
        const before = yield* first<Preferences>(TEXTS.asked, { id: current.id })
        const timeZone = asked.timeZone ?? before?.timeZone
        const language = asked.language ?? before?.language
        yield* run(TEXTS.dropOld, { id: current.id, before: now - TOKEN_LIFE_MS, wanted })
        yield* run(TEXTS.replace, { id: current.id, wanted })
        yield* run(TEXTS.insert, { tokenHash, id: current.id, now, timeZone, language })
        const cause = { subscription: current.id, address: current.address, createdAt: now, now }
        const payload = JSON.stringify({ course, language })
        const queued = message && (yield* queue.queue({ ...message, payload }, cause))
        if (queued) yield* wanted ? queue.supersede(queued) : queue.remove(queued)
        // Insert the rows and delete them again if no mail is wanted: both cases then cost the same commit.
        yield* run(TEXTS.drop, { tokenHash, wanted })
        if (!wanted) {
          if (isNew && (erased || exhausted || !withoutMail)) yield* run(TEXTS.dropUnasked, { id })
          return { mail: false, exhausted, ...(suppressed && { suppressed }) }
        }
        yield* subscriptions.sayCourse(course)
        return { mail: true, exhausted, ...(queued && { message: queued }) }
      }),
    checkToken: async (asked) => (await one(readToken(asked))).verdict,
    confirm: ({ begin, tokenHash, now }) =>
      write(function* (): Steps<TokenAnswer | 'no_course'> {
        // In a statement of its own: PostgreSQL then reads what the holder of the lock before has written.
        yield* first(TEXTS.lock, { tokenHash })
        const { token, verdict } = yield* readToken({ tokenHash, now })
        if (verdict !== 'use' || token === undefined) return verdict === 'use' ? 'invalid' : verdict
        const { timeZone, language } = token
        const current = yield* subscriptions.lock(token.subscription)
        const start = current && begin({ course: current.course, confirmedAt: now, timeZone })
        if (current === undefined) return 'invalid'
        if (start === undefined) return 'no_course'
        yield* run(TEXTS.use, { now, tokenHash })
        if (start.pinned) yield* keepPlan(current.course, start.pinned)
        const suppression = (yield* mailboxes.find(current.identity))?.suppression
        const consent = { at: now, how: joining.BY_LINK }
        const enrolled = joining.enrol(current, { now, start, timeZone, language, suppression, consent })
        yield* subscriptions.save([enrolled])
        const { enrolment } = enrolled
        yield* history.remember([enrolled.id, { at: now, kind: 'confirmed', enrolment, day: 0 }])
        return 'confirmed'
      }),
    renewConfirmation: async ({ id, tokenHash, now }) =>
      (await one(run(TEXTS.renew, { tokenHash, id, after: now - TOKEN_LIFE_MS }))) === 1,
    async pruneUnconfirmed(before) {
      await write(() => queue.prune(before))
      await deleteInSteps(sql, TEXTS.prune, { before })
      await deleteInSteps(sql, TEXTS.pruneNotes, { before })
    },
  } satisfies Partial<CourseStore>
}
