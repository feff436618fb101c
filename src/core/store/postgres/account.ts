import type { Directory } from '../../mail/directory.ts'
import type { SentMailStore } from '../../mail/sent-mail.ts'
import type { PaymentEventStore } from '../../payments/events.ts'
import { guarded, type Pool, transaction } from './connection.ts'
import { ROWS_A_STEP, statements } from './statements.ts'

/** The directory on PostgreSQL: each authorisation is in the one statement that finds the record. */
export function postgresDirectory(pool: Pool): Directory {
  const statement = statements(pool)
  return {
    findInvite: ({ id, admin }) =>
      statement.first(
        (row: { address: string; url: string; organisation: string; locked: boolean }) => row,
        `SELECT i.address, i.url, o.name AS organisation, o.locked_at IS NOT NULL AS locked
           FROM platformctl.organisation_invite i
           JOIN platformctl.organisation o ON o.id = i.organisation
           JOIN platformctl.organisation_admin a ON a.organisation = i.organisation AND a.subject = $1
           WHERE i.id = $2 AND i.closed_at IS NULL`,
        [admin, id],
      ),
    findLoginRequest: ({ id, now }) =>
      statement.first(
        (row: { address: string; url: string }) => row,
        'SELECT address, url FROM platformctl.login_request WHERE id = $1 AND expires_at > $2',
        [id, now],
      ),
    findPassedExam: ({ id, subject }) =>
      statement.first(
        (row: { exam: string; scorePercent: number; url: string }) => row,
        `SELECT exam, score_percent AS "scorePercent", url FROM platformctl.exam_attempt
           WHERE id = $1 AND subject = $2 AND passed_at IS NOT NULL`,
        [id, subject],
      ),
  }
}

export function postgresSentMail(pool: Pool): SentMailStore {
  const statement = statements(pool)
  return {
    begin: ({ key, now, recipient, caps }) =>
      guarded(() =>
        transaction(pool, async (on) => {
          // One at a time for a recipient: two counts at once would each find room for one more.
          await on.query('SELECT pg_advisory_xact_lock(hashtextextended($1, 0))', [recipient])
          const { rows } = await on.query<{ first_attempt_at: number; sent_id: string | null }>(
            'SELECT first_attempt_at, sent_id FROM platformctl.sent_mail WHERE key = $1',
            [key],
          )
          const [row] = rows
          if (row) return { firstAttemptAt: row.first_attempt_at, sentId: row.sent_id ?? undefined }
          for (const { most, windowMs } of caps) {
            const recent = await on.query<{ count: number }>(
              'SELECT count(*) AS count FROM platformctl.sent_mail WHERE recipient = $1 AND first_attempt_at > $2 AND first_attempt_at < $3',
              [recipient, now - windowMs, now + windowMs],
            )
            if ((recent.rows[0]?.count ?? 0) >= most) return 'capped'
          }
          await on.query(
            'INSERT INTO platformctl.sent_mail (key, first_attempt_at, recipient) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING',
            [key, now, recipient],
          )
          return { firstAttemptAt: now, sentId: undefined }
        }),
      ),
    recordSent: ({ key, id }) =>
      statement.run('UPDATE platformctl.sent_mail SET sent_id = $1 WHERE key = $2', [id, key]),
  }
}

export function postgresPaymentEvents(pool: Pool): PaymentEventStore {
  const statement = statements(pool)
  return {
    claim: ({ id, type, now, leaseMs }) =>
      guarded(async () => {
        await pool.query(
          `INSERT INTO platformctl.payment_event (id, type, received_at, claimed_until) VALUES ($1, $2, $3, 0)
           ON CONFLICT DO NOTHING`,
          [id, type, now],
        )
        const claimed = await pool.query(
          'UPDATE platformctl.payment_event SET claimed_until = $1 WHERE id = $2 AND handled_at IS NULL AND claimed_until <= $3',
          [now + leaseMs, id, now],
        )
        if (claimed.rowCount === 1) return 'claimed'
        const { rows } = await pool.query<{ handled: boolean }>(
          'SELECT handled_at IS NOT NULL AS handled FROM platformctl.payment_event WHERE id = $1',
          [id],
        )
        return rows[0]?.handled === true ? 'handled' : 'busy'
      }),
    settle: ({ id, handled, now }) =>
      statement.run(
        'UPDATE platformctl.payment_event SET claimed_until = 0, handled_at = $1 WHERE id = $2 AND handled_at IS NULL',
        [handled ? now : null, id],
      ),
    prune: (before) =>
      statement.inSteps(
        `DELETE FROM platformctl.payment_event WHERE id IN
             (SELECT id FROM platformctl.payment_event WHERE received_at < $1 LIMIT ${ROWS_A_STEP})`,
        [before],
      ),
  }
}
