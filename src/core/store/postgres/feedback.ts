import { endByFeedback, type SubscriptionRecord } from '../../course/subscription.ts'
import { newMailbox } from '../../mail/feedback/mailbox.ts'
import { type AppliedChange, countsOf, type FeedbackStore } from '../../mail/feedback/store.ts'
import { type MailboxRow, mailboxOf, mailboxRow, suppressedAddress } from '../mailbox-rows.ts'
import { columnsOf, type Row, recordOf } from '../rows.ts'
import { addAudit } from './audit.ts'
import { guarded, type Pool, type Queryable, transaction } from './connection.ts'
import { remember } from './course-history.ts'
import { addCounts } from './sending.ts'
import { ROWS_A_STEP, statements } from './statements.ts'

/** Where a list of suppressed addresses starts: before every address. */
const FIRST = { at: Number.MIN_SAFE_INTEGER, identity: '' }

const SAVE = `
  UPDATE platformctl.mailbox m SET soft_bounces = r.soft_bounces, soft_since = r.soft_since, soft_until = r.soft_until,
    delivered_at = r.delivered_at, cause = r.cause, suppressed_at = r.suppressed_at, source = r.source, reason = r.reason
  FROM jsonb_to_recordset($1::jsonb) AS r (identity text, soft_bounces integer, soft_since bigint, soft_until bigint,
    delivered_at bigint, cause text, suppressed_at bigint, source text, reason text)
  WHERE m.identity = r.identity`

const END = `
  UPDATE platformctl.subscription s SET state = r.state, unsubscribed_at = r.unsubscribed_at, next_attempt_at = r.next_attempt_at,
    fence = r.fence, problem_kind = r.problem_kind, problem_reason = r.problem_reason, problem_since = r.problem_since
  FROM jsonb_to_recordset($1::jsonb) AS r (id text, state text, unsubscribed_at bigint, next_attempt_at bigint, fence integer,
    problem_kind text, problem_reason text, problem_since bigint)
  WHERE s.id = r.id`

/** Feedback from providers and mail servers, on PostgreSQL: a fixed number of statements, however many changes. */
export function postgresFeedback(pool: Pool): FeedbackStore {
  const statement = statements(pool)
  return {
    apply: (changes, now, audit) =>
      guarded(() =>
        transaction(pool, async (on) => {
          const keys = [...new Set(changes.flatMap(({ key }) => key ?? []))].sort()
          const noted = await on.query<{ key: string }>(
            `INSERT INTO platformctl.feedback_event (key, received_at) SELECT key, $2 FROM unnest($1::text[]) AS key
             ON CONFLICT DO NOTHING RETURNING key`,
            [keys, now],
          )
          const fresh = new Set(noted.rows.map(({ key }) => key))
          const hashes = await on.query<{ hash: string }>(
            'SELECT hash FROM platformctl.suppression WHERE hash = ANY ($1)',
            [changes.flatMap(({ erasureHashes }) => erasureHashes)],
          )
          const erased = new Set(hashes.rows.map(({ hash }) => hash))
          const kept = changes.filter(({ erasureHashes }) => !erasureHashes.some((hash) => erased.has(hash)))
          const identities = [...new Set(kept.map(({ identity }) => identity))].sort()
          const { mailboxes, added } = await lockMailboxes(on, identities)
          const subscriptions = await lockSubscriptions(on, identities)
          const savedMailboxes = new Set<string>()
          const ended = new Set<string>()
          const entries: Parameters<typeof remember>[1][number][] = []
          const applied = changes.map((one): AppliedChange => {
            const { key, identity, change, at, reason, entry } = one
            // The second of two equal keys in one delivery finds its key taken.
            if (key !== undefined && !fresh.delete(key)) return 'repeated'
            if (!mailboxes.has(identity)) return 'erased'
            const before = mailboxes.get(identity) ?? newMailbox(identity)
            const { mailbox, effect } = change(before)
            let changed = mailbox !== before
            if (changed) {
              mailboxes.set(identity, mailbox)
              savedMailboxes.add(identity)
            }
            for (const [id, record] of subscriptions) {
              if (record.identity !== identity) continue
              const after = effect === 'none' ? undefined : endByFeedback(record, effect, { at, reason, now })
              if (after) {
                subscriptions.set(id, after)
                ended.add(id)
                changed = true
              }
              if (entry) entries.push([id, { at, enrolment: record.enrolment, day: 0, reason, ...entry }])
            }
            return changed ? 'changed' : 'unchanged'
          })
          await on.query(SAVE, [
            JSON.stringify(
              [...mailboxes.values()].filter((one) => savedMailboxes.has(one.identity)).map(mailboxRow),
            ),
          ])
          // Nothing is kept of an address about which nothing was learned.
          const unused = added.filter((identity) => !savedMailboxes.has(identity))
          if (unused.length > 0)
            await on.query('DELETE FROM platformctl.mailbox WHERE identity = ANY ($1)', [unused])
          await on.query(END, [
            JSON.stringify([...subscriptions.values()].filter(({ id }) => ended.has(id)).map(columnsOf)),
          ])
          await remember(on, entries)
          await addAudit(on, audit)
          await addCounts(on, countsOf(changes, applied))
          return applied
        }),
      ),
    note: (key, now) =>
      statement.run(
        'INSERT INTO platformctl.feedback_event (key, received_at) VALUES ($1, $2) ON CONFLICT DO NOTHING',
        [key, now],
      ),
    find: (identity) =>
      statement.first(mailboxOf, 'SELECT * FROM platformctl.mailbox WHERE identity = $1', [identity]),
    wasSent: ({ identity, recipients, messageId }) =>
      statement.hits(
        `SELECT 1 FROM platformctl.subscription s JOIN platformctl.subscription_event e ON e.subscription = s.id
           WHERE (s.identity = $1 OR s.person = $1) AND e.message_id = $2
           UNION ALL SELECT 1 FROM platformctl.sent_mail WHERE recipient = ANY ($3) AND sent_id = $2 LIMIT 1`,
        [identity, messageId, recipients],
      ),
    listSuppressed: (limit, { at, identity } = FIRST) =>
      guarded(async () => {
        const { rows } = await pool.query<MailboxRow>(
          'SELECT * FROM platformctl.mailbox WHERE cause IS NOT NULL AND (suppressed_at, identity) > ($2, $3) ORDER BY suppressed_at, identity LIMIT $1',
          [limit, at, identity],
        )
        return rows.flatMap(suppressedAddress)
      }),
    prune: (before) =>
      statement.inSteps(
        `DELETE FROM platformctl.feedback_event WHERE key IN
             (SELECT key FROM platformctl.feedback_event WHERE received_at < $1 LIMIT ${ROWS_A_STEP})`,
        [before],
      ),
  }
}

/** In the order of their identities, and before their subscriptions, so that two deliveries never wait in a circle. */
async function lockMailboxes(on: Queryable, identities: readonly string[]) {
  const { rows: made } = await on.query<Pick<MailboxRow, 'identity'>>(
    `INSERT INTO platformctl.mailbox (identity) SELECT identity FROM unnest($1::text[]) AS identity
     ON CONFLICT DO NOTHING RETURNING identity`,
    [identities],
  )
  const { rows } = await on.query<MailboxRow>(
    'SELECT * FROM platformctl.mailbox WHERE identity = ANY ($1) ORDER BY identity FOR UPDATE',
    [identities],
  )
  return {
    mailboxes: new Map(rows.map((row) => [row.identity, mailboxOf(row)])),
    added: made.map(({ identity }) => identity),
  }
}

async function lockSubscriptions(on: Queryable, identities: readonly string[]) {
  const { rows } = await on.query<Row>(
    'SELECT * FROM platformctl.subscription WHERE identity = ANY ($1) OR person = ANY ($1) ORDER BY id FOR UPDATE',
    [identities],
  )
  return new Map<string, SubscriptionRecord>(rows.map((row) => [row.id, recordOf(row)]))
}
