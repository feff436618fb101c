import { mayExceed } from '../../course/history.ts'
import { attemptEntry } from '../../course/transitions/claim.ts'
import { forSqlite } from '../dialect.ts'
import type { RowByRow } from '../dispatch.ts'
import { TEXTS as HISTORY } from '../history.ts'
import { storableText } from '../sql.ts'
import { dueColumn } from '../subscriptions.ts'
import type { SqliteDatabase } from './connection.ts'

/** What a dispatcher writes for every lesson. Statements take their values by position: by name they take twice as long. */
export function rowByRow(database: SqliteDatabase): RowByRow {
  // By its row number: this saves looking up a key.
  const claim = database.prepare(`
    UPDATE subscription SET next_attempt_at = ?, first_attempt_at = ?, claimed_at = ?, lease_until = ?, claimed_by = ?, fence = ?
    WHERE rowid = ?`)
  const markSent = database.prepare(`
    UPDATE subscription SET sent_days = ?, sent_lessons = coalesce(?, sent_lessons), needs = coalesce(?, needs), next_attempt_at = ?, due_at = ?, lessons = coalesce(?, max(lessons, coalesce(?, 0))), last_sent_at = ?, first_attempt_at = NULL, claimed_at = NULL, lease_until = NULL,
      failures = 0, problem_kind = NULL, problem_reason = NULL, problem_since = NULL, fence = fence + 1
    WHERE id = ? AND fence = ?`)
  const addAttempt = database.prepare(`
    INSERT OR IGNORE INTO subscription_event (subscription, at, kind, enrolment, day, outcome, reason, message_id, provider_id, source, attempt)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?,
      (SELECT count(*) + 1 FROM subscription_event WHERE subscription = ? AND kind = 'attempt' AND enrolment = ? AND day = ?))`)
  const bound = database.prepare(forSqlite(HISTORY.bound).text)
  return {
    claim({ nextAttemptAt, firstAttemptAt, claimedAt, leaseUntil, claimedBy, fence }, { rowid }) {
      claim.run(nextAttemptAt, firstAttemptAt, claimedAt, leaseUntil, claimedBy, fence, rowid)
    },
    markSent(settlement) {
      const { nextAttemptAt, lessons, progress, now } = settlement
      const { id, day, fence, confirmedAt } = settlement.claim
      // Lowest unsent day first, so a claim of day N implies that exactly the days before it were sent.
      const sentDays = Array.from({ length: day }, (_, index) => index + 1)
      const { changes } = markSent.run(
        JSON.stringify(sentDays),
        progress === undefined ? null : JSON.stringify(progress.sentLessons),
        progress?.needs ?? null,
        nextAttemptAt ?? null,
        dueColumn({ dueAt: nextAttemptAt, confirmedAt, sentDays }) ?? null,
        // As `record` does: a shorter course is noted when it ends the enrolment.
        nextAttemptAt === undefined ? (lessons ?? null) : null,
        lessons ?? null,
        now,
        id,
        fence,
      )
      const entry = attemptEntry(settlement)
      if (changes !== 1 || entry === undefined) return changes === 1
      const { at, kind, enrolment, outcome, reason, messageId, providerId, source } = entry
      const [said, provider] = [reason, providerId].map((text) =>
        text === undefined ? null : storableText(text),
      )
      addAttempt.run(
        ...[id, at, kind, enrolment, day, outcome ?? null, said, messageId ?? null, provider, source ?? null],
        ...[id, enrolment, day],
      )
      if (mayExceed(entry)) bound.run({ subscription: id })
      return true
    },
  }
}
