import { setImmediate } from 'node:timers/promises'
import type { Directory } from '../../mail/directory.ts'
import type { BegunMail, MailCap, SentMailStore } from '../../mail/sent-mail.ts'
import type { PaymentEventStore } from '../../payments/events.ts'
import type { Guarded, SqliteDatabase } from './connection.ts'

/** A step of pruning holds the writer for a few milliseconds at the most. */
const ROWS_A_STEP = 500

/** better-sqlite3 answers at once; the ports are asynchronous, so a throw becomes a rejection. */
const asynchronous =
  (guarded: Guarded) =>
  async <T>(work: () => T): Promise<T> =>
    guarded(work)

/** The directory on SQLite: each authorisation is in the one statement that finds the record. */
export function sqliteDirectory(database: SqliteDatabase, guarded: Guarded): Directory {
  const run = asynchronous(guarded)
  const invite = database.prepare(`
    SELECT i.address, i.url, o.name AS organisation, o.locked_at
    FROM organisation_invite i
    JOIN organisation o ON o.id = i.organisation
    JOIN organisation_admin a ON a.organisation = i.organisation AND a.subject = ?
    WHERE i.id = ? AND i.closed_at IS NULL`)
  const login = database.prepare('SELECT address, url FROM login_request WHERE id = ? AND expires_at > ?')
  const exam = database.prepare(
    'SELECT exam, score_percent, url FROM exam_attempt WHERE id = ? AND subject = ? AND passed_at IS NOT NULL',
  )
  // The driver types rows as unknown. Casting them is safe: STRICT tables enforce the column types, and each statement
  // names its columns.
  return {
    findInvite: ({ id, admin }) =>
      run(() => {
        const row = invite.get(admin, id) as
          | { address: string; url: string; organisation: string; locked_at: number | null }
          | undefined
        return (
          row && {
            address: row.address,
            url: row.url,
            organisation: row.organisation,
            locked: row.locked_at !== null,
          }
        )
      }),
    findLoginRequest: ({ id, now }) =>
      run(() => login.get(id, now) as { address: string; url: string } | undefined),
    findPassedExam: ({ id, subject }) =>
      run(() => {
        const row = exam.get(id, subject) as { exam: string; score_percent: number; url: string } | undefined
        return row && { exam: row.exam, scorePercent: row.score_percent, url: row.url }
      }),
  }
}

export function sqliteSentMail(database: SqliteDatabase, guarded: Guarded): SentMailStore {
  const run = asynchronous(guarded)
  const put = database.prepare('INSERT INTO sent_mail (key, first_attempt_at, recipient) VALUES (?, ?, ?)')
  const recent = database
    .prepare(
      'SELECT count(*) FROM sent_mail WHERE recipient = ? AND first_attempt_at > ? AND first_attempt_at < ?',
    )
    .pluck()
  const get = database.prepare('SELECT first_attempt_at, sent_id FROM sent_mail WHERE key = ?')
  const sent = database.prepare('UPDATE sent_mail SET sent_id = ? WHERE key = ?')
  return {
    begin: ({ key, now, recipient, caps }) =>
      run(() =>
        database
          .transaction((): BegunMail | 'capped' => {
            const row = get.get(key) as { first_attempt_at: number; sent_id: string | null } | undefined
            if (row) return { firstAttemptAt: row.first_attempt_at, sentId: row.sent_id ?? undefined }
            const full = ({ most, windowMs }: MailCap) =>
              Number(recent.get(recipient, now - windowMs, now + windowMs)) >= most
            if (caps.some(full)) return 'capped'
            put.run(key, now, recipient)
            return { firstAttemptAt: now, sentId: undefined }
          })
          .immediate(),
      ),
    recordSent: ({ key, id }) => run(() => void sent.run(id, key)),
  }
}

export function sqlitePaymentEvents(database: SqliteDatabase, guarded: Guarded): PaymentEventStore {
  const run = asynchronous(guarded)
  const put = database.prepare(
    'INSERT OR IGNORE INTO payment_event (id, type, received_at, claimed_until) VALUES (?, ?, ?, 0)',
  )
  const claim = database.prepare(
    'UPDATE payment_event SET claimed_until = @until WHERE id = @id AND handled_at IS NULL AND claimed_until <= @now',
  )
  const handled = database.prepare('SELECT handled_at IS NOT NULL FROM payment_event WHERE id = ?').pluck()
  const settle = database.prepare(
    'UPDATE payment_event SET claimed_until = 0, handled_at = @handledAt WHERE id = @id AND handled_at IS NULL',
  )
  const prune = database.prepare(
    `DELETE FROM payment_event WHERE id IN (SELECT id FROM payment_event WHERE received_at < ? LIMIT ${ROWS_A_STEP})`,
  )
  return {
    claim: ({ id, type, now, leaseMs }) =>
      run(() => {
        put.run(id, type, now)
        if (claim.run({ id, now, until: now + leaseMs }).changes === 1) return 'claimed'
        return handled.get(id) === 1 ? 'handled' : 'busy'
      }),
    settle: ({ id, handled: done, now }) => run(() => void settle.run({ id, handledAt: done ? now : null })),
    async prune(before) {
      while ((await run(() => prune.run(before).changes)) === ROWS_A_STEP) await setImmediate()
    },
  }
}
