import { NOTICES_KEPT, type NoticeStore } from '../../course/notices.ts'
import { factsText, type NoticeRow, noticeOf } from '../notice-rows.ts'
import { guarded, type Pool, transaction } from './connection.ts'
import { statements } from './statements.ts'

/** How many notices there were when an enrolment began; of a row that a hand has damaged, too many to be due one. */
const BASE = `CASE WHEN course_version ~ '^[0-9]{1,9}$' THEN course_version::bigint ELSE 2000000000 END`

/** The notices in a PostgreSQL that several machines share. */
export function postgresNotices(pool: Pool): NoticeStore {
  const statement = statements(pool)
  const headOf = async () => {
    const { rows } = await pool.query<{ head: number }>(
      'SELECT coalesce(max(seq), 0) AS head FROM platformctl.notice',
    )
    return rows[0]?.head ?? 0
  }
  return {
    publish: ({ subject, kind, at, facts }) =>
      guarded(() =>
        transaction(pool, async (on) => {
          // One transaction at a time, so that numbers become visible in their order.
          await on.query("SELECT pg_advisory_xact_lock(hashtextextended('notice', 3))")
          const { rowCount } = await on.query(
            `INSERT INTO platformctl.notice (seq, subject, kind, at, facts)
             SELECT coalesce(max(seq), 0) + 1, $1, $2, $3, $4 FROM platformctl.notice
             ON CONFLICT (subject, kind) DO NOTHING`,
            [subject, kind, at, factsText(facts)],
          )
          return rowCount === 1
        }),
      ),
    head: () => guarded(headOf),
    after: (seq) =>
      guarded(async () => {
        const { rows } = await pool.query<NoticeRow>(
          'SELECT * FROM platformctl.notice WHERE seq > $1 ORDER BY seq DESC LIMIT $2',
          [seq, NOTICES_KEPT],
        )
        return rows.reverse().map(noticeOf)
      }),
    wake: ({ now, limit }) =>
      guarded(async () => {
        const { rowCount } = await pool.query(
          `UPDATE platformctl.subscription SET lessons = $1 - ${BASE}, due_at = $2, next_attempt_at = $2 WHERE id IN (
             SELECT id FROM platformctl.subscription
             WHERE course = 'status' AND next_attempt_at IS NULL AND state = 'confirmed' AND claimed_at IS NULL
               AND (problem_kind IS NULL OR problem_kind IN ('parked', 'unknown')) AND lessons < $1 - ${BASE}
             LIMIT $3 FOR UPDATE SKIP LOCKED)`,
          [await headOf(), now, limit],
        )
        return rowCount ?? 0
      }),
    isDue: (now) =>
      statement.hits(
        `SELECT 1 FROM platformctl.subscription WHERE course = 'status' AND next_attempt_at <= $1 LIMIT 1`,
        [now],
      ),
    prune: (before) =>
      statement.run(
        `DELETE FROM platformctl.notice WHERE at < $1 AND seq < (SELECT max(seq) FROM platformctl.notice)
             AND NOT (kind = 'announced' AND subject IN (SELECT id FROM platformctl.announcement))`,
        [before],
      ),
  }
}
