import { NOTICES_KEPT, type Notice, type NoticeFacts, type NoticeStore } from '../course/notices.ts'
import { all, type Dialect, first, lock, run, type Sql, type Steps } from './sql.ts'

const PUBLISH = `INSERT INTO notice (seq, subject, kind, at, facts)
  SELECT coalesce(max(seq), 0) + 1, @subject, @kind, @at, @facts FROM notice WHERE true
  ON CONFLICT (subject, kind) DO NOTHING`

/** Publishes a notice; false if its subject has one of its kind. */
export function* publishNotice({ facts, ...notice }: Omit<Notice, 'seq'>): Steps<boolean> {
  // One transaction at a time, so that numbers become visible in their order.
  yield* lock(3, 'notice')
  return (yield* run(PUBLISH, { ...notice, facts: JSON.stringify(facts) })) === 1
}

export const TEXTS = ({ integer, by }: Dialect) => {
  /** How many notices there were when an enrolment began. */
  const base = integer('course_version')
  return {
    publish: PUBLISH,
    head: 'SELECT coalesce(max(seq), 0) AS head FROM notice',
    after: 'SELECT * FROM notice WHERE seq > @seq ORDER BY seq DESC LIMIT @limit',
    wake: `UPDATE subscription SET lessons = @head - ${base}, due_at = @now, next_attempt_at = @now WHERE id IN (
      SELECT id FROM subscription ${by('subscription_notice')}
      WHERE course = 'status' AND next_attempt_at IS NULL AND state = 'confirmed' AND claimed_at IS NULL
        AND (problem_kind IS NULL OR problem_kind IN ('parked', 'unknown')) AND lessons < @head - ${base}
      LIMIT @limit FOR UPDATE SKIP LOCKED)`,
    isDue: `SELECT 1 FROM subscription ${by('subscription_notice')} WHERE course = 'status' AND next_attempt_at <= @now LIMIT 1`,
    prune: `DELETE FROM notice WHERE at < @before AND seq < (SELECT max(seq) FROM notice)
      AND NOT (kind = 'announced' AND subject IN (SELECT id FROM announcement))`,
  }
}

/** A notice as its table has it: its facts are JSON. */
type Row = Omit<Notice, 'facts'> & { readonly facts: string }

/** The notices that are mailed to subscribers of incidents. */
export function notices({ dialect, one, write }: Sql): NoticeStore {
  const text = TEXTS(dialect)
  function* headNow(): Steps<number> {
    return (yield* first<{ head: number }>(text.head))?.head ?? 0
  }
  return {
    publish: (notice) => write(() => publishNotice(notice)),
    head: () => one(headNow()),
    after: async (seq) => {
      const newest = await one(all<Row>(text.after, { seq, limit: NOTICES_KEPT }))
      return newest.toReversed().map((row) => ({ ...row, facts: JSON.parse(row.facts) as NoticeFacts }))
    },
    wake: ({ now, limit }) =>
      write(function* () {
        return yield* run(text.wake, { head: yield* headNow(), now, limit })
      }),
    isDue: async (now) => (await one(first(text.isDue, { now }))) !== undefined,
    prune: async (before) => void (await one(run(text.prune, { before }))),
  }
}
