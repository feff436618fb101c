import { NOTICES_KEPT, type NoticeStore } from '../../course/notices.ts'
import { factsText, type NoticeRow, noticeOf } from '../notice-rows.ts'
import type { Guarded, SqliteDatabase } from './connection.ts'

/** How many notices there were when an enrolment began. */
const BASE = 'CAST(course_version AS INTEGER)'

/** The notices in an SQLite file. */
export function sqliteNotices(database: SqliteDatabase, guarded: Guarded): NoticeStore {
  const sql = {
    publish: database.prepare(`
      INSERT INTO notice (seq, subject, kind, at, facts)
      SELECT (SELECT coalesce(max(seq), 0) + 1 FROM notice), @subject, @kind, @at, @facts WHERE true
      ON CONFLICT (subject, kind) DO NOTHING`),
    head: database.prepare('SELECT coalesce(max(seq), 0) FROM notice').pluck(),
    after: database.prepare('SELECT * FROM notice WHERE seq > ? ORDER BY seq DESC LIMIT ?'),
    wake: database.prepare(`
      UPDATE subscription SET lessons = @head - ${BASE}, due_at = @now, next_attempt_at = @now WHERE id IN (
        SELECT id FROM subscription INDEXED BY subscription_notice
        WHERE course = 'status' AND next_attempt_at IS NULL AND state = 'confirmed' AND claimed_at IS NULL
          AND (problem_kind IS NULL OR problem_kind IN ('parked', 'unknown')) AND lessons < @head - ${BASE}
        LIMIT @limit)`),
    isDue: database
      .prepare(`
        SELECT EXISTS (SELECT 1 FROM subscription INDEXED BY subscription_notice
          WHERE course = 'status' AND next_attempt_at <= ?)`)
      .pluck(),
    prune: database.prepare(`
      DELETE FROM notice WHERE at < ? AND seq < (SELECT max(seq) FROM notice)
        AND NOT (kind = 'announced' AND subject IN (SELECT id FROM announcement))`),
  }
  const headNow = () => Number(sql.head.get())
  return {
    publish: async ({ facts, ...notice }) =>
      guarded(() => sql.publish.run({ ...notice, facts: factsText(facts) }).changes === 1),
    head: async () => guarded(headNow),
    after: async (seq) =>
      guarded(() => (sql.after.all(seq, NOTICES_KEPT) as NoticeRow[]).reverse().map(noticeOf)),
    wake: async ({ now, limit }) => guarded(() => sql.wake.run({ head: headNow(), now, limit }).changes),
    isDue: async (now) => guarded(() => sql.isDue.get(now) === 1),
    prune: async (before) => void guarded(() => sql.prune.run(before)),
  }
}
