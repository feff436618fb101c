import { setImmediate } from 'node:timers/promises'
import { endByFeedback } from '../../course/subscription.ts'
import { newMailbox } from '../../mail/feedback/mailbox.ts'
import {
  type AppliedChange,
  countsOf,
  type FeedbackStore,
  type MailboxChange,
} from '../../mail/feedback/store.ts'
import type { JournalEntry } from '../journal.ts'
import { type MailboxRow, mailboxOf, mailboxRow, suppressedAddress } from '../mailbox-rows.ts'
import { addAudit } from './audit.ts'
import type { Guarded, SqliteDatabase } from './connection.ts'
import { sqliteHistory } from './course-history.ts'
import type { Journal } from './journal.ts'
import { sqliteCounts } from './sending.ts'
import { recordOfRow, type SqliteRow } from './subscription-rows.ts'

/** A step of pruning holds the writer for a few milliseconds at the most. */
const ROWS_A_STEP = 500
/** Where a list of suppressed addresses starts: before every address. */
const FIRST = { at: Number.MIN_SAFE_INTEGER, identity: '' }

/** Feedback from providers and mail servers, on SQLite. */
export function sqliteFeedback(database: SqliteDatabase, guarded: Guarded, journal: Journal): FeedbackStore {
  const history = sqliteHistory(database)
  const addCounts = sqliteCounts(database)
  const prepare = (sql: string) => database.prepare(sql)
  const sql = {
    note: prepare('INSERT OR IGNORE INTO feedback_event (key, received_at) VALUES (?, ?)'),
    erased: prepare('SELECT 1 FROM suppression WHERE hash = ?'),
    find: prepare('SELECT * FROM mailbox WHERE identity = ?'),
    save: prepare(`
      INSERT OR REPLACE INTO mailbox (identity, soft_bounces, soft_since, soft_until, delivered_at, cause, suppressed_at, source, reason)
      VALUES (@identity, @soft_bounces, @soft_since, @soft_until, @delivered_at, @cause, @suppressed_at, @source, @reason)`),
    subscriptions: prepare('SELECT * FROM subscription WHERE identity = @identity OR person = @identity'),
    end: prepare(`
      UPDATE subscription SET state = ?, unsubscribed_at = ?, next_attempt_at = ?, fence = ?, problem_kind = ?, problem_reason = ?, problem_since = ?
      WHERE id = ?`),
    wasSent: prepare(`
      SELECT 1 FROM subscription s JOIN subscription_event e ON e.subscription = s.id
      WHERE (s.identity = @identity OR s.person = @identity) AND e.message_id = @messageId
      UNION ALL SELECT 1 FROM sent_mail
      WHERE recipient IN (SELECT value FROM json_each(@recipients)) AND sent_id = @messageId LIMIT 1`),
    list: prepare(
      'SELECT * FROM mailbox WHERE cause IS NOT NULL AND (suppressed_at, identity) > (@at, @identity) ORDER BY suppressed_at, identity LIMIT @limit',
    ),
    prune: prepare(
      `DELETE FROM feedback_event WHERE key IN (SELECT key FROM feedback_event WHERE received_at < ? LIMIT ${ROWS_A_STEP})`,
    ),
  }
  // Casts are safe: the tables are STRICT, so SQLite enforces the types of the columns selected above.
  const find = (identity: string) => {
    const row = sql.find.get(identity) as MailboxRow | undefined
    return row && mailboxOf(row)
  }

  function applyOne(one: MailboxChange, now: number, lines: JournalEntry[]): AppliedChange {
    const { key, identity, erasureHashes, change, at, reason, entry } = one
    if (key !== undefined && sql.note.run(key, now).changes === 0) return 'repeated'
    if (erasureHashes.some((hash) => sql.erased.get(hash) !== undefined)) return 'erased'
    const before = find(identity) ?? newMailbox(identity)
    const { mailbox, effect } = change(before)
    if (mailbox !== before) sql.save.run(mailboxRow(mailbox))
    const { suppression } = mailbox
    if (suppression !== before.suppression)
      lines.push(
        suppression
          ? { what: 'suppressed', at: now, identity, suppression }
          : { what: 'released', at: now, identity },
      )
    let changed = mailbox !== before
    for (const row of sql.subscriptions.all({ identity }) as SqliteRow[]) {
      const record = recordOfRow(row)
      const { id, enrolment, state } = record
      const after = effect === 'none' ? undefined : endByFeedback(record, effect, { at, reason, now })
      if (after) {
        const { unsubscribedAt, nextAttemptAt, fence, problem } = after
        sql.end.run(
          after.state,
          unsubscribedAt ?? null,
          nextAttemptAt ?? null,
          fence,
          problem?.kind ?? null,
          problem?.reason ?? null,
          problem?.since ?? null,
          id,
        )
        if (state === 'confirmed') lines.push({ what: 'unsubscribed', at: now, id, enrolment })
        changed = true
      }
      if (entry) history.add(id, { at, enrolment, day: 0, reason, ...entry })
    }
    return changed ? 'changed' : 'unchanged'
  }

  return {
    apply: async (changes, now, audit) => {
      const lines: JournalEntry[] = []
      const ends = (entry: JournalEntry) => entry.what !== 'released'
      const write = <T>(work: () => T): T => guarded(() => database.transaction(work).immediate())
      const outcomes = write(() => {
        const applied = changes.map((one) => applyOne(one, now, lines))
        addCounts(countsOf(changes, applied))
        // Journal a suppression before the commit: a spare line does no harm, but a missing one would be lost
        // in a restore.
        journal.add(...lines.filter(ends))
        addAudit(database, journal, audit)
        return applied
      })
      const releases = lines.filter((entry) => !ends(entry))
      // Journal a release after the commit: if the store lost it, a restore would mail the address all the
      // same.
      if (releases.length > 0) write(() => journal.add(...releases))
      return outcomes
    },
    note: async (key, now) => guarded(() => void sql.note.run(key, now)),
    find: async (identity) => guarded(() => find(identity)),
    wasSent: async ({ identity, recipients, messageId }) =>
      guarded(
        () => sql.wasSent.get({ identity, messageId, recipients: JSON.stringify(recipients) }) !== undefined,
      ),
    listSuppressed: async (limit, after = FIRST) =>
      guarded(() => (sql.list.all({ limit, ...after }) as MailboxRow[]).flatMap(suppressedAddress)),
    async prune(before) {
      while (guarded(() => sql.prune.run(before).changes) === ROWS_A_STEP) await setImmediate()
    },
  }
}
