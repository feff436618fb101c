import { attemptEntry, type HistoryEntry, mayExceed } from '../../course/history.ts'
import type { Claim, Settlement } from '../../course/store.ts'
import {
  claimOf,
  compareClaims,
  lostAttempt,
  record,
  type SubscriptionRecord,
  sentBy,
  setAside,
  take,
} from '../../course/subscription.ts'
import { batchPerTick } from '../../per-tick.ts'
import { gently } from '../counts.ts'
import { TEXTS as historyTexts } from '../history.ts'
import type { Dispatch } from '../operations.ts'
import type { CourseParts } from '../parts.ts'
import { createSentNote, SENT_NOTE } from '../sent-note.ts'
import { forSqlite, type Steps, storableText } from '../sql.ts'
import {
  COURSES,
  claimedAs,
  dueColumn,
  ROW_COLUMNS,
  type Row,
  recordOf,
  TEXTS as subscriptionTexts,
} from '../subscriptions.ts'
import { DIALECT, performer, type SqliteParts } from './sql.ts'

const DUE = 'next_attempt_at IS NOT NULL AND next_attempt_at'

/**
 * What a dispatcher does for every lesson, on SQLite. A claim moves the row's next attempt to the end of its lease, so
 * that the one index on `next_attempt_at` finds what is due, hides what is claimed and brings back what a crash left
 * behind. Statements are prepared here, and take their values by position: by name they take twice as long.
 */
export function sqliteDispatch(parts: SqliteParts, { subscriptions }: CourseParts): Dispatch {
  const { database, guarded, leaseClock, journal } = parts
  const perform = performer(parts)
  const leaseNow = () => Math.floor(leaseClock())
  const sentNote = createSentNote()
  const prepare = (text: string) => database.prepare(forSqlite(text).text)
  const due = (index: string, which: string) =>
    prepare(`
      SELECT rowid, ${ROW_COLUMNS} FROM subscription INDEXED BY ${index}
      WHERE ${which} (failures > 0) = @failed AND ${DUE} <= @now AND claimed_at IS NULL AND claimed_by IS NOT @call
      ORDER BY next_attempt_at LIMIT @limit`)
  const insertEvent = (attempt: string) =>
    prepare(`
      INSERT OR IGNORE INTO subscription_event (subscription, at, kind, enrolment, day, outcome, reason, message_id, provider_id, source, attempt)
      VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ${attempt})`)
  const sql = {
    due: due('subscription_due', ''),
    dueGently: due('subscription_due', `${gently(DIALECT)} AND`),
    dueNotices: due('subscription_notice', `course = 'status' AND`),
    interrupted: prepare(`
      SELECT rowid, ${ROW_COLUMNS} FROM subscription INDEXED BY subscription_claimed
      WHERE claimed_at IS NOT NULL AND next_attempt_at IS NOT NULL AND claimed_by IS NOT @call
        AND (@notices = 0 OR course = 'status')
        AND CASE WHEN lease_until IS NULL THEN next_attempt_at <= @now
          ELSE lease_until <= @lease OR lease_until > @lease + @leaseMs END
      ORDER BY first_attempt_at LIMIT @limit`),
    claim: prepare(`
      UPDATE subscription SET next_attempt_at = ?, first_attempt_at = ?, claimed_at = ?, lease_until = ?, claimed_by = ?, fence = ?
      WHERE rowid = ?`),
    markSent: prepare(`
      UPDATE subscription SET sent_days = ?, sent_lessons = coalesce(?, sent_lessons), needs = coalesce(?, needs), next_attempt_at = ?, due_at = ?, lessons = coalesce(?, max(lessons, coalesce(?, 0))), last_sent_at = ?, first_attempt_at = NULL, claimed_at = NULL, lease_until = NULL,
        failures = 0, problem_kind = NULL, problem_reason = NULL, problem_since = NULL, fence = fence + 1
      WHERE id = ? AND fence = ?`),
    // Without a next attempt the subscriber has left: don't give them a new one.
    keep: prepare(`
      UPDATE subscription SET next_attempt_at = iif(next_attempt_at IS NULL, NULL, @nextAttemptAt), lease_until = @leaseUntil
      WHERE id = @id AND enrolment = @enrolment AND claimed_by = @call AND claimed_at IS NOT NULL`),
    holds: prepare(`SELECT 1 FROM subscription WHERE id = ? AND fence = ? AND state = 'confirmed'`).pluck(),
    noteSent: prepare(
      `INSERT INTO meta (name, value) VALUES ('${SENT_NOTE}', ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value`,
    ),
    attempt: insertEvent(
      "(SELECT count(*) + 1 FROM subscription_event WHERE subscription = ? AND kind = 'attempt' AND enrolment = ? AND day = ?)",
    ),
    bound: prepare(historyTexts(DIALECT).bound),
    sayNames: prepare(subscriptionTexts(DIALECT).sayNames),
  }
  /** IMMEDIATE: takes the write lock first, so that a transaction never fails half-way for want of it. */
  const write = async <T>(work: () => T): Promise<T> => guarded(() => database.transaction(work).immediate())

  /** Writes a claimed row by its row number: a claim changes only these columns, and this saves looking up a key. */
  const saveTaken = (taken: SubscriptionRecord, rowid: number) =>
    sql.claim.run(
      taken.nextAttemptAt,
      taken.firstAttemptAt,
      taken.claimedAt,
      taken.leaseUntil,
      taken.claimedBy,
      taken.fence,
      rowid,
    )
  /** Records a sent lesson without reading its row first; false if the claim no longer holds. */
  function markSent(settlement: Settlement): boolean {
    const { sentDays, nextAttemptAt, dueAt, lessons, progress, lastSentAt } = sentBy(settlement)
    const { subscription, fence, confirmedAt } = settlement.claim
    const { changes } = sql.markSent.run(
      JSON.stringify(sentDays),
      progress === undefined ? null : JSON.stringify(progress.sentLessons),
      progress?.needs ?? null,
      nextAttemptAt ?? null,
      dueColumn({ dueAt, confirmedAt, sentDays }) ?? null,
      // As `record` does: a shorter course is noted when it ends the enrolment.
      nextAttemptAt === undefined ? (lessons ?? null) : null,
      lessons ?? null,
      lastSentAt,
      subscription,
      fence,
    )
    if (progress !== undefined && progress.needs > COURSES) sql.sayNames.run()
    return changes === 1
  }
  /** Adds an attempt to the history of a subscription that exists. */
  function addAttempt(id: string, { at, kind, enrolment, day, ...entry }: HistoryEntry): void {
    const { outcome, reason, messageId, providerId, source } = entry
    sql.attempt.run(
      id,
      at,
      kind,
      enrolment,
      day,
      outcome ?? null,
      reason === undefined ? null : storableText(reason),
      messageId ?? null,
      providerId === undefined ? null : storableText(providerId),
      source ?? null,
      id,
      enrolment,
      day,
    )
    if (mayExceed({ outcome, day })) sql.bound.run({ subscription: id })
  }
  function* settleRead(settlement: Settlement, entry: HistoryEntry | undefined): Steps<void> {
    const { claim, now } = settlement
    const id = claim.subscription
    const current = yield* subscriptions.find(id)
    if (current === undefined) return
    // An outcome that came too late to change the row still belongs in the history.
    if (entry) addAttempt(id, entry)
    const changed = record(current, settlement)
    if (changed === undefined) return
    if (changed.state === 'unsubscribed' && current.state === 'confirmed')
      journal?.add({ what: 'unsubscribed', at: now, id, enrolment: changed.enrolment })
    yield* subscriptions.save([changed])
  }

  return {
    async claimDue({ now, limit, retries, leaseMs, call: name, notices = false, gentle = false }) {
      const call = claimedAs(name)
      const lines = notices ? sql.dueNotices : gentle ? sql.dueGently : sql.due
      // The casts are safe: the table is STRICT and the queries select its columns.
      const due = (failed: 0 | 1, most: number) =>
        most > 0 ? (lines.all({ now, call, failed, limit: most }) as DueRow[]) : []
      const lease = leaseNow()
      const leaseUntil = lease + leaseMs
      const interrupted = (most: number) =>
        sql.interrupted.all({ now, call, lease, leaseMs, notices: Number(notices), limit: most }) as DueRow[]
      // Look before asking for the write lock, so that a call with nothing to do holds up no writer.
      const nothing = () => interrupted(1).length === 0 && due(0, 1).length === 0 && due(1, 1).length === 0
      if (guarded(nothing)) return []
      return write(() => {
        const first = interrupted(limit)
        const left = limit - first.length
        const failed = due(1, Math.min(retries, left))
        const fresh = due(0, left - failed.length)
        const rest = left - failed.length - fresh.length
        const more = rest > 0 ? due(1, rest + failed.length).slice(failed.length) : []
        return [...first, ...failed, ...fresh, ...more]
          .flatMap((row) => {
            const found = recordOf(row)
            if (found.unreadableDays !== undefined) {
              perform(subscriptions.save([setAside(found, now)]))
              return []
            }
            const taken = take(found, { now, leaseMs, leaseUntil, call })
            if (taken.problem === found.problem) saveTaken(taken, row.rowid)
            else {
              perform(subscriptions.save([taken]))
              const lost = lostAttempt(found, taken)
              if (lost) addAttempt(taken.id, lost)
            }
            return claimOf(taken) ?? []
          })
          .sort(compareClaims)
      })
    },
    keep: ({ claims, call, now, leaseMs }) =>
      write(() => {
        const [nextAttemptAt, leaseUntil] = [now + leaseMs, leaseNow() + leaseMs]
        for (const { subscription: id, enrolment } of claims)
          sql.keep.run({ id, enrolment, call: claimedAs(call), nextAttemptAt, leaseUntil })
      }),
    stillHolds: batchPerTick<Claim, boolean>(async (claims) =>
      // One read transaction for all: each statement alone would take and give back the file's lock.
      guarded(
        database.transaction(() =>
          claims.map((claim) => sql.holds.get(claim.subscription, claim.fence) !== undefined),
        ),
      ),
    ),
    async settle(settlements) {
      const sentAt = sentNote.of(settlements)
      await write(() => {
        if (sentAt !== undefined) sql.noteSent.run(String(sentAt))
        for (const settlement of settlements) {
          const entry = attemptEntry(settlement)
          if (!settlement.sent || !markSent(settlement)) perform(settleRead(settlement, entry))
          else if (entry) addAttempt(settlement.claim.subscription, entry)
        }
      })
      sentNote.written(sentAt)
    },
  }
}

/** A due row with its row number, which is valid only within the transaction that read it. */
interface DueRow extends Row {
  readonly rowid: number
}
