import { NOTICES } from '../course/definition.ts'
import { UNCONFIRMED_KEPT_MS } from '../course/due.ts'
import { NOTICE_LIFE_MS } from '../course/notices.ts'
import type { CourseMessageSettlement, CourseStore } from '../course/store.ts'
import { endByFeedback } from '../course/transitions/leave.ts'
import { EXPIRED, type MessageStore, type NewMessage, type QueuedMessage } from '../delivery/messages.ts'
import { DAY_MS, FAR_MS, HOUR_MS } from '../durations.ts'
import type { Notice, NoticeMail } from '../incidents/incident.ts'
import { LEASE_MS } from '../lease.ts'
import { STREAM_SENT_NOTE } from './counts.ts'
import { leaving } from './departures.ts'
import { all, first, journal, lock, run, SPACE, type Sql, type Steps, scalar, setMeta } from './sql.ts'
import { history, subscriptions } from './subscriptions.ts'

export const TEXTS = {
  // What was given up is queued again by whoever asks again.
  queue: `INSERT INTO message (id, stream, key, subscription, address, payload, created_at, expires_at, next_attempt_at, fence, lease_until)
    VALUES (@id, @stream, @key, @subscription, @address, @payload, @createdAt, @expiresAt, @now, 1, CASE WHEN @leaseMs > 0 THEN @leaseNow + @leaseMs END)
    ON CONFLICT (id) DO UPDATE SET address = excluded.address, payload = excluded.payload, expires_at = excluded.expires_at,
      next_attempt_at = excluded.next_attempt_at, fence = message.fence + 1, lease_until = excluded.lease_until, attempts = 0,
      outcome = NULL, reason = NULL, unknown_since = NULL, done_at = NULL
    WHERE message.done_at IS NOT NULL RETURNING fence`,
  supersede: `DELETE FROM message WHERE subscription = @subscription AND stream = 'confirmation' AND id <> @id`,
  // A program with a directory of its own finds the records of its own sign-in mails, and all others those in the tables.
  due: dueText(
    `stream = @stream AND (@stream <> 'sign-in' OR expires_at + ${HOUR_MS} <= @now
      OR payload NOT LIKE CASE WHEN CAST(@ownDirectory AS boolean) IS TRUE THEN '%"own":false%' ELSE '%"own":true%' END)`,
    "channel = 'announced'",
  ),
  // Found with a lease that has ended: the attempt before was lost, and may have delivered it since it was claimed. An
  // alert keeps the time that it is planned for.
  claim: `UPDATE message SET fence = fence + 1, lease_until = @leaseNow + @leaseMs,
      next_attempt_at = CASE WHEN stream = 'alert' THEN next_attempt_at ELSE @now END,
      unknown_since = CASE WHEN lease_until IS NULL THEN unknown_since ELSE coalesce(unknown_since,
        CASE WHEN stream = 'alert' OR next_attempt_at > @now THEN @now ELSE next_attempt_at END) END
    WHERE id = @id`,
  claimed: `SELECT m.id, m.stream, m.key, m.subscription, m.subject, m.channel, coalesce(m.address, s.address) AS address, m.payload, m.created_at, m.expires_at, m.attempts, m.unknown_since, m.fence,
      CASE WHEN m.stream IN ('sign-in', 'mail') AND NOT EXISTS (SELECT 1 FROM sent_mail n WHERE n.key = m.id AND n.sent_id IS NULL) THEN 1 ELSE 0 END AS is_gone
    FROM message m LEFT JOIN subscription s ON s.id = m.subscription WHERE m.id = @id`,
  keep: 'UPDATE message SET lease_until = @leaseNow + @leaseMs WHERE id = @id AND fence = @fence',
  retry: `UPDATE message SET next_attempt_at = @nextAttemptAt, attempts = @attempts, outcome = @outcome, reason = @reason, unknown_since = @unknownSince, lease_until = NULL
    WHERE id = @id AND fence = @fence`,
  // What composed it is deleted; that it was given up stays for its operator.
  giveUp: `UPDATE message SET address = NULL, payload = '', outcome = @outcome, reason = @reason, done_at = @now, lease_until = NULL
    WHERE id = @id AND fence = @fence`,
  remove: 'DELETE FROM message WHERE id = @id AND (fence = @fence OR @sent = 1)',
  sent: 'UPDATE sent_mail SET sent_id = @providerId WHERE key = @id',
  prune: 'DELETE FROM message WHERE done_at < @before OR (expires_at < @before AND subject IS NOT NULL)',
  // What no process of this configuration sends, or a pause held, stays due, however long ago it expired. `+` keeps SQLite from an index, by which it would read large rows many times.
  expire: `UPDATE message SET address = NULL, payload = '', outcome = 'over', reason = @reason, done_at = @now, lease_until = NULL
    WHERE +done_at IS NULL AND expires_at < @before`,
  // A confirmation that an older build beside, which names no source, has not tried for two hours: it has ended.
  adopt: `INSERT INTO message (id, stream, key, subscription, payload, created_at, expires_at, next_attempt_at, attempts, outcome)
    SELECT s.id || '-' || e.at, 'confirmation', 'confirmation.' || s.id || '-' || e.at, s.id,
      {object 'course', s.course, 'language', (SELECT language FROM confirmation WHERE subscription = s.id ORDER BY created_at DESC LIMIT 1)},
      e.at, e.at + ${DAY_MS}, @now, 1, e.outcome
    FROM subscription s JOIN subscription_event e ON e.subscription = s.id AND e.kind = 'confirmation' AND e.outcome = 'transient'
    WHERE e.at > @from AND e.at <= @to AND e.source IS NULL
      AND NOT EXISTS (SELECT 1 FROM subscription_event l WHERE l.subscription = s.id AND l.kind = 'confirmation' AND l.at > e.at)
      AND NOT EXISTS (SELECT 1 FROM message m WHERE m.subscription = s.id AND m.stream = 'confirmation' AND (m.done_at IS NULL OR m.done_at >= e.at))
      AND EXISTS (SELECT 1 FROM confirmation c WHERE c.subscription = s.id AND c.used_at IS NULL AND NOT c.replaced)
    ON CONFLICT DO NOTHING`,
  publish: `INSERT INTO notice (seq, subject, kind, at, facts)
    SELECT coalesce(max(seq), 0) + 1, @subject, @kind, @at, @facts FROM notice WHERE true
    ON CONFLICT (subject, kind) DO NOTHING`,
  // A subscription of an older build says how many notices there were before it. A restore resets numbers, but no keys.
  queueNotices: `INSERT INTO message (id, stream, key, subscription, subject, channel, payload, created_at, expires_at, next_attempt_at)
    SELECT r.id, 'notice', r.key, r.subscription, r.subject, r.kind, '{}', r.at, r.at + ${NOTICE_LIFE_MS}, r.at FROM (
      SELECT 'notice.' || n.seq || '.' || s.id AS id, 'notice.' || n.subject || '.' || n.kind || '.' || s.id AS key,
        s.id AS subscription, n.subject, n.kind, n.at
      FROM notice n JOIN subscription s ON s.course = '${NOTICES}' AND s.state = 'confirmed'
        AND (s.course_version IS NULL OR {integer s.course_version} < n.seq)
      WHERE NOT n.queued) AS r WHERE true
    ON CONFLICT DO NOTHING`,
  noticesQueued: 'UPDATE notice SET queued = true WHERE NOT queued',
  dropOpened: `DELETE FROM message
    WHERE stream = 'notice' AND subject = @subject AND channel = 'opened' AND lease_until IS NULL AND done_at IS NULL`,
  noticeMail: `SELECT n.subject, n.kind, n.at, n.facts, s.id, s.enrolment, s.language
    FROM message m JOIN notice n ON n.subject = m.subject AND n.kind = m.channel
      JOIN subscription s ON s.id = m.subscription AND s.state = 'confirmed'
      LEFT JOIN status_update u ON u.id = n.subject
      LEFT JOIN incident i ON i.id = coalesce(u.subject, n.subject)
      LEFT JOIN announcement a ON a.id = coalesce(u.subject, n.subject) AND (a.until_at IS NULL OR a.until_at > @now)
    WHERE m.id = @id AND (a.id IS NOT NULL
      OR (i.id IS NOT NULL AND (n.kind = 'closed' OR i.closed_at IS NULL OR i.closed_at < n.at)))`,
  pruneNotices: `DELETE FROM notice WHERE at < @before AND seq < (SELECT max(seq) FROM notice)
    AND NOT (kind = 'announced' AND subject IN (SELECT id FROM announcement))`,
}

/** The messages of a kind that are due, or whose lease ended without an outcome; to one subscription one after the other. While it is quiet, those that leave all the same. A range of times keeps those that wait from being read, and `|| ''` the whole stream from being searched for each. */
export function dueText(which: string, isLoud: string): string {
  const leaves = `(CAST(@quiet AS boolean) IS NOT TRUE OR ${isLoud})`
  return `SELECT id FROM message
    WHERE ${which} AND done_at IS NULL AND ${leaves} AND next_attempt_at BETWEEN @from AND @to
      AND (lease_until IS NULL OR lease_until <= @leaseNow OR lease_until > @leaseNow + 2 * @leaseMs)
      AND NOT EXISTS (SELECT 1 FROM message o
        WHERE o.subscription = message.subscription AND o.stream || '' = message.stream AND o.done_at IS NULL AND ${leaves}
          AND (o.created_at, length(o.id), o.id) < (message.created_at, length(message.id), message.id))
    ORDER BY next_attempt_at LIMIT @limit FOR UPDATE SKIP LOCKED`
}

type Due = Omit<Parameters<MessageStore['claimMessages']>[0], 'stream'>

export const messageSteps = {
  /** Writes a message, already claimed by the process that writes it; undefined: it is queued already. */
  *queue(
    { leaseMs = LEASE_MS, ...message }: NewMessage,
    cause: Pick<QueuedMessage, 'subscription' | 'address' | 'createdAt'> & { readonly now: number },
  ): Steps<QueuedMessage | undefined> {
    const { now, ...about } = cause
    // The address of a confirmation is its subscription's.
    const address = about.subscription === undefined ? about.address : undefined
    const fence = yield* scalar<number>(TEXTS.queue, { ...message, ...about, now, address, leaseMs })
    return fence === undefined
      ? undefined
      : { ...message, ...about, attempts: 0, unknownSince: undefined, fence }
  },
  /** Removes the confirmations before this one that have not left. */
  supersede: ({ id, subscription }: QueuedMessage) => run(TEXTS.supersede, { id, subscription }),
  remove: ({ id, fence }: Pick<QueuedMessage, 'id' | 'fence'>) => run(TEXTS.remove, { id, fence, sent: 0 }),
  *due(input: Due, text = TEXTS.due): Steps<readonly { readonly id: string }[]> {
    const due = yield* all<{ id: string }>(text, { ...input, from: 0, to: input.now })
    const limit = input.limit - due.length
    if (limit === 0 || text !== TEXTS.due) return due
    // Planned by a clock that was ahead.
    const ahead = { from: input.now + FAR_MS + 1, to: Number.MAX_SAFE_INTEGER }
    return [...due, ...(yield* all<{ id: string }>(text, { ...input, ...ahead, limit }))]
  },
  *claim<Message extends QueuedMessage>(input: Due, text?: string): Steps<readonly Message[]> {
    const claimed: Message[] = []
    for (const { id } of yield* messageSteps.due(input, text)) {
      yield* run(TEXTS.claim, { id, ...input })
      claimed.push(...(yield* all<Message>(TEXTS.claimed, { id })))
    }
    return claimed
  },
  *keep({ messages: held, leaseMs }: Parameters<MessageStore['keepMessages']>[0]): Steps<void> {
    for (const { id, fence } of held) yield* run(TEXTS.keep, { id, fence, leaseMs })
  },
  *settle({ claim, record, now, outcome, reason, providerId }: CourseMessageSettlement): Steps<void> {
    const { id, fence } = claim
    const { result, problem, failures: attempts, nextAttemptAt } = record
    const unknownSince = problem?.kind === 'unknown' ? problem.since : claim.unknownSince
    if (result === 'waits')
      yield* run(TEXTS.retry, { id, fence, attempts, nextAttemptAt, outcome, reason, unknownSince })
    else if (problem) yield* run(TEXTS.giveUp, { id, fence, now, outcome, reason })
    else yield* run(TEXTS.remove, { id, fence, sent: Number(result === 'sent') })
    if (result === 'sent') yield* run(TEXTS.sent, { id, providerId })
  },
  /** What has expired since is recorded, and deleted as late as anything else that was given up. Confirmations that an older build left are queued. */
  *prune(before: number): Steps<void> {
    const now = before + UNCONFIRMED_KEPT_MS
    yield* run(TEXTS.prune, { before })
    yield* run(TEXTS.expire, { before, now, reason: EXPIRED })
    yield* run(TEXTS.adopt, { now, from: now - DAY_MS, to: now - 2 * HOUR_MS })
  },
}

type NoticeRow = Omit<Notice, 'facts'> & { readonly facts: string } & Omit<NoticeMail, 'notice'>

export const messages = ({ one, write }: Sql): Pick<CourseStore, keyof MessageStore | 'noticeMail'> => ({
  // Look before beginning a transaction: nearly always, none is due.
  claimMessages: async (input) =>
    (await one(messageSteps.due(input))).length === 0 ? [] : write(() => messageSteps.claim(input)),
  keepMessages: (input) => write(() => messageSteps.keep(input)),
  settleMessages: (settlements) =>
    write(function* () {
      const sent = settlements.findLast(({ record }) => record.result === 'sent')
      if (sent) yield* setMeta(STREAM_SENT_NOTE + sent.claim.stream, String(sent.now))
      for (const settlement of settlements) {
        yield* messageSteps.settle(settlement)
        const { claim, entry, record, now } = settlement
        const { subscription: id } = claim
        if (id === undefined) continue
        if (entry) yield* history.remember([id, entry])
        if (record.problem?.kind !== 'bounced') continue
        const current = yield* subscriptions.lock(id)
        const { since: at, reason } = record.problem
        const ended = current && endByFeedback(current, 'end-dead', { at, reason, now })
        if (ended === undefined) continue
        yield* journal(...(yield* leaving(now, ended)))
        yield* subscriptions.save([ended])
      }
    }),
  async noticeMail(asked) {
    const row = await one(first<NoticeRow>(TEXTS.noticeMail, asked))
    if (row === undefined) return undefined
    const { id, enrolment, language, facts, ...notice } = row
    return { id, enrolment, language, notice: { ...notice, facts: JSON.parse(facts) } }
  },
})

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
    yield* run(TEXTS.queueNotices)
    yield* run(TEXTS.noticesQueued)
  },
  prune: (before: number) => run(TEXTS.pruneNotices, { before }),
}
