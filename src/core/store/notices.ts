import { NOTICES } from '../course/definition.ts'
import { NOTICE_LIFE_MS } from '../course/notices.ts'
import type { CourseStore } from '../course/store.ts'
import type { Notice, NoticeMail } from '../incidents/incident.ts'
import { first, lock, run, SPACE, type Sql, type Steps } from './sql.ts'

export const TEXTS = {
  publish: `INSERT INTO notice (seq, subject, kind, at, facts)
    SELECT coalesce(max(seq), 0) + 1, @subject, @kind, @at, @facts FROM notice WHERE true
    ON CONFLICT (subject, kind) DO NOTHING`,
  // A subscription that an older build confirmed says how many notices there were before it. Numbers begin again after
  // a restore, and keys must not.
  queue: `INSERT INTO message (id, stream, key, subscription, subject, channel, payload, created_at, expires_at, next_attempt_at)
    SELECT r.id, 'notice', r.key, r.subscription, r.subject, r.kind, '{}', r.at, r.at + ${NOTICE_LIFE_MS}, r.at FROM (
      SELECT 'notice.' || n.seq || '.' || s.id AS id, 'notice.' || n.subject || '.' || n.kind || '.' || s.id AS key,
        s.id AS subscription, n.subject, n.kind, n.at
      FROM notice n JOIN subscription s ON s.course = '${NOTICES}' AND s.state = 'confirmed'
        AND (s.course_version IS NULL OR {integer s.course_version} < n.seq)
      WHERE NOT n.queued) AS r WHERE true
    ON CONFLICT DO NOTHING`,
  queued: 'UPDATE notice SET queued = true WHERE NOT queued',
  dropOpened: `DELETE FROM message
    WHERE stream = 'notice' AND subject = @subject AND channel = 'opened' AND lease_until IS NULL AND done_at IS NULL`,
  mail: `SELECT n.subject, n.kind, n.at, n.facts, s.id, s.enrolment, s.language
    FROM message m JOIN notice n ON n.subject = m.subject AND n.kind = m.channel
      JOIN subscription s ON s.id = m.subscription AND s.state = 'confirmed'
      LEFT JOIN status_update u ON u.id = n.subject
      LEFT JOIN incident i ON i.id = coalesce(u.subject, n.subject)
      LEFT JOIN announcement a ON a.id = coalesce(u.subject, n.subject) AND (a.until_at IS NULL OR a.until_at > @now)
    WHERE m.id = @id AND (a.id IS NOT NULL
      OR (i.id IS NOT NULL AND (n.kind = 'closed' OR i.closed_at IS NULL OR i.closed_at < n.at)))`,
  prune: `DELETE FROM notice WHERE at < @before AND seq < (SELECT max(seq) FROM notice)
    AND NOT (kind = 'announced' AND subject IN (SELECT id FROM announcement))`,
}

/** Publishes notices in the transaction of their causes. */
export const noticeSteps = {
  /** Queues a mail to each subscriber, unless its subject has a notice of its kind. */
  *publish({ facts, ...notice }: Notice): Steps<void> {
    yield* lock(SPACE.notice, 'notice')
    yield* run(TEXTS.publish, { ...notice, facts: JSON.stringify(facts) })
    yield* noticeSteps.queue()
    // Nobody wants to read that something failed which works again.
    if (notice.kind === 'closed') yield* run(TEXTS.dropOpened, notice)
  },
  /** Queues the mails of notices that have none yet; an older build publishes such. */
  *queue(): Steps<void> {
    // One transaction at a time, so that none is numbered or queued twice.
    yield* lock(SPACE.notice, 'notice')
    yield* run(TEXTS.queue)
    yield* run(TEXTS.queued)
  },
  prune: (before: number) => run(TEXTS.prune, { before }),
}

/** A row of `mail`: the facts of a notice are JSON. */
type Row = Omit<Notice, 'facts'> & { readonly facts: string } & Omit<NoticeMail, 'notice'>

export const notices = ({ one }: Sql): Pick<CourseStore, 'noticeMail'> => ({
  async noticeMail(asked) {
    const row = await one(first<Row>(TEXTS.mail, asked))
    if (row === undefined) return undefined
    const { id, enrolment, language, facts, ...notice } = row
    return { id, enrolment, language, notice: { ...notice, facts: JSON.parse(facts) } }
  },
})
