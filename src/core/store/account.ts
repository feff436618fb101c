import { EXPIRES_MS } from '../delivery/retries.ts'
import { HOUR_MS } from '../durations.ts'
import { LEASE_MS } from '../lease.ts'
import type { Directory, Invite, LoginRequest, PassedExam } from '../mail/definition.ts'
import type { BegunMail, SentMailStore } from '../mail/send-once.ts'
import { messageSteps as queue } from './messages.ts'
import { deleteInSteps, first, lock, ROWS_A_STEP, run, SPACE, type Sql, scalar } from './sql.ts'

/** Who holds a mail, by when it began: renewing moves `first_attempt_at`. */
const HOLDER = 'CAST(CAST(@now AS bigint) AS text)'

export const TEXTS = {
  invite: `SELECT i.address, i.url, o.name AS organisation, o.locked_at IS NOT NULL AS locked
    FROM organisation_invite i
    JOIN organisation o ON o.id = i.organisation
    JOIN organisation_admin a ON a.organisation = i.organisation AND a.subject = @admin
    WHERE i.id = @id AND i.closed_at IS NULL`,
  login: 'SELECT address, url FROM login_request WHERE id = @id AND expires_at > @now',
  exam: 'SELECT exam, score_percent, url FROM exam_attempt WHERE id = @id AND subject = @subject AND passed_at IS NOT NULL',
  begun: 'SELECT first_attempt_at, sent_id, content FROM sent_mail WHERE key = @key FOR UPDATE',
  recent: `SELECT count(*) AS count FROM sent_mail WHERE recipient = @recipient AND first_attempt_at > @after AND first_attempt_at < @before`,
  begin: `INSERT INTO sent_mail (key, first_attempt_at, recipient, content) VALUES (@key, @now, @recipient, @content) ON CONFLICT DO NOTHING`,
  queued: 'SELECT 1 AS found FROM message WHERE id = @key AND done_at IS NULL',
  // Under a key that no mail has.
  hold: `INSERT INTO sent_mail (key, first_attempt_at, content) VALUES ('sending ' || CAST(@key AS text), @now, ${HOLDER})
    ON CONFLICT (key) DO UPDATE SET first_attempt_at = excluded.first_attempt_at, content = excluded.content
    WHERE abs(excluded.first_attempt_at - sent_mail.first_attempt_at) >= ${LEASE_MS}`,
  keep: `UPDATE sent_mail SET first_attempt_at = @at WHERE key = 'sending ' || CAST(@key AS text) AND content = ${HOLDER}`,
  // Another process may hold it by now.
  release: `DELETE FROM sent_mail WHERE key = 'sending ' || CAST(@key AS text) AND content = ${HOLDER}`,
  adopt: 'UPDATE sent_mail SET content = @content WHERE key = @key AND content IS NULL',
  // What was sent at once is counted under a hash that an erasure by an older build does not know.
  readdress: 'UPDATE sent_mail SET recipient = @recipient WHERE key = @key',
  sent: 'UPDATE sent_mail SET sent_id = @id WHERE key = @key',
  // A claim ends a lease from now; one that ends hours later was made by a process whose clock was ahead.
  claimEvent: `INSERT INTO payment_event (id, type, received_at, claimed_until) VALUES (@id, @type, @now, @until)
    ON CONFLICT (id) DO UPDATE SET claimed_until = excluded.claimed_until
    WHERE payment_event.handled_at IS NULL AND (payment_event.claimed_until <= @now OR payment_event.claimed_until > @until + ${HOUR_MS})`,
  kept: 'SELECT content FROM sent_mail WHERE key = @key',
  isHandled: 'SELECT 1 FROM payment_event WHERE id = @id AND handled_at IS NOT NULL',
  settleEvent: `UPDATE payment_event SET claimed_until = 0, handled_at = @handledAt WHERE id = @id AND handled_at IS NULL`,
  keepEvent: 'UPDATE payment_event SET claimed_until = @until WHERE id = @id AND handled_at IS NULL',
  pruneEvents: `DELETE FROM payment_event WHERE id IN (SELECT id FROM payment_event WHERE received_at < @before LIMIT ${ROWS_A_STEP})`,
}

/** The directory in the store's tables: each authorization is in the one statement that finds the record. */
export const directory = ({ one }: Sql): Directory => ({
  findInvite: async (query) => {
    const found = await one(first<Invite>(TEXTS.invite, query))
    return found && { ...found, locked: Boolean(found.locked) }
  },
  findLoginRequest: (query) => one(first<LoginRequest>(TEXTS.login, query)),
  findPassedExam: (query) => one(first<PassedExam>(TEXTS.exam, query)),
})

export const sentMail = ({ one, write }: Sql): SentMailStore => ({
  begin: ({ key, now, recipient, caps, content, mail }) =>
    write(function* () {
      // One at a time for a mail, and for a recipient: two counts at once would each find room for one more.
      yield* lock(SPACE.mail, key)
      yield* lock(SPACE.recipient, recipient)
      type Begun = Omit<BegunMail, 'isQueued'> & { content: string | undefined }
      const known = yield* first<Begun>(TEXTS.begun, { key })
      if ((known?.content ?? content) !== content) return 'conflict'
      if (known) yield* run(TEXTS.adopt, { key, content })
      else {
        for (const { most, windowMs } of caps) {
          const window = { recipient, after: now - windowMs, before: now + windowMs }
          if (((yield* scalar<number>(TEXTS.recent, window)) ?? 0) >= most) return 'capped'
        }
        yield* run(TEXTS.begin, { key, now, recipient, content })
      }
      const { firstAttemptAt, sentId } = known ?? { firstAttemptAt: now, sentId: undefined }
      const isQueued = known !== undefined && (yield* first(TEXTS.queued, { key })) !== undefined
      const begun = { firstAttemptAt, sentId, isQueued }
      if (sentId !== undefined || isQueued) return begun
      if ((yield* run(TEXTS.hold, { key, now })) === 0) return 'sending'
      if (mail === undefined) return begun
      const { stream, address, payload } = mail
      const expiresAt = now + EXPIRES_MS[stream]
      const message = { id: key, stream, key: `${stream}.${key}`, payload, expiresAt, leaseMs: 0 }
      yield* queue.queue(message, { subscription: undefined, address, createdAt: firstAttemptAt, now })
      yield* run(TEXTS.release, { key, now })
      if (known) yield* run(TEXTS.readdress, { key, recipient })
      return begun
    }),
  keep: async (held) => void (await one(run(TEXTS.keep, held))),
  release: async (held) => void (await one(run(TEXTS.release, held))),
  recordSent: ({ key, id, now }) =>
    write(function* () {
      yield* run(TEXTS.sent, { key, id })
      yield* run(TEXTS.release, { key, now })
    }),
  keepTexts: (texts, now) =>
    write(function* () {
      for (const [key, content] of Object.entries(texts)) yield* run(TEXTS.begin, { key, now, content })
    }),
  keptText: (key) => one(scalar(TEXTS.kept, { key })),
})

/** Records which payment events were handled. A claim is a lease: what a crash left behind is claimed again. */
export const paymentEvents = (sql: Sql) => ({
  claim: ({ id, type, now, leaseMs }: { id: string; type: string; now: number; leaseMs: number }) =>
    sql.write(function* () {
      if ((yield* run(TEXTS.claimEvent, { id, type, now, until: now + leaseMs })) === 1) return 'claimed'
      return (yield* first(TEXTS.isHandled, { id })) === undefined ? 'busy' : 'handled'
    }),
  /** Goes on holding a claimed event. */
  keep: async (claim: { id: string; until: number }) => void (await sql.one(run(TEXTS.keepEvent, claim))),
  settle: async ({ id, handled, now }: { id: string; handled: boolean; now: number }) =>
    void (await sql.one(run(TEXTS.settleEvent, { id, handledAt: handled ? now : null }))),
  prune: (before: number) => deleteInSteps(sql, TEXTS.pruneEvents, { before }),
})
