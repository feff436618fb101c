import { NOTICES } from '../course/notices.ts'
import { MINUTE_MS } from '../durations.ts'
import type { LastMail, Pause, StreamQueue } from '../mail/holds.ts'
import { lessonDue } from './counts.ts'
import { SENT_NOTE } from './sent-note.ts'
import { all, type Dialect, first, type Steps } from './sql.ts'

/** What is on its way, by stream; `at` is its next attempt, `since` when it became due. */
export const TEXTS = (dialect: Dialect) => ({
  queue: `SELECT stream,
      CAST(count(*) FILTER (WHERE at <= @now) AS bigint) AS due,
      CAST(count(*) FILTER (WHERE at > @now AND tried) AS bigint) AS waiting,
      CAST(count(*) FILTER (WHERE at IS NULL) AS bigint) AS failed,
      min(since) FILTER (WHERE since <= @now) AS oldest_at, min(at) FILTER (WHERE at > @now) AS next_at
    FROM (
      SELECT stream, CASE WHEN done_at IS NULL THEN next_attempt_at END AS at, attempts > 0 AS tried, created_at AS since FROM message
      UNION ALL SELECT CASE WHEN course = '${NOTICES}' THEN 'notice' ELSE 'course' END,
          next_attempt_at, problem_kind IS NOT NULL, ${lessonDue(dialect)}
        FROM subscription
        WHERE next_attempt_at IS NOT NULL OR (state = 'confirmed' AND problem_kind IN ('parked', 'unknown'))
      UNION ALL SELECT 'alert', NULL, true, m.at
        FROM alert_message m JOIN incident i ON i.id = m.incident
        WHERE m.outcome = 'failed' AND i.closed_at IS NULL) AS queued
    GROUP BY stream`,
  // Lessons by their own note: counts are written once a minute.
  sent: `SELECT max(at) AS at FROM (
      SELECT max(minute) * ${MINUTE_MS} AS at FROM mail_minute WHERE kind = 'sent'
      UNION ALL SELECT CAST(value AS bigint) FROM meta WHERE name = '${SENT_NOTE}') AS sent`,
  refused: newest(dialect, ['bounced', 'parked']),
  failed: newest(dialect, ['failed', 'unknown']),
})

const newest = ({ by }: Dialect, kinds: readonly string[]) =>
  `SELECT problem_since AS at, problem_reason AS reason FROM subscription ${by('subscription_problem')}
    WHERE problem_kind IS NOT NULL AND problem_kind IN (${kinds.map((kind) => `'${kind}'`).join(', ')})
    ORDER BY problem_since DESC LIMIT 1`

/** The last mail that was taken, refused for good, and not delivered otherwise. */
export function* readLastMail(dialect: Dialect): Steps<LastMail> {
  const text = TEXTS(dialect)
  const sent = yield* first<{ readonly at: number | undefined }>(text.sent)
  return {
    sentAt: sent?.at,
    refused: yield* first<Pause>(text.refused),
    failed: yield* first<Pause>(text.failed),
  }
}

export const readQueue = (dialect: Dialect, now: number): Steps<readonly StreamQueue[]> =>
  all<StreamQueue>(TEXTS(dialect).queue, { now })
