import type { MessageSettlement, MessageStore, NewMessage, QueuedMessage } from '../course/messages.ts'
import { DAY_MS } from '../durations.ts'
import type { CourseParts } from './parts.ts'
import { all, first, run, type Sql, type Steps } from './sql.ts'

/** An attempt planned further ahead was dated by a wrong clock. */
const FAR_MS = DAY_MS

export const TEXTS = {
  queue: `INSERT INTO message (id, stream, key, subscription, payload, created_at, expires_at, next_attempt_at, fence, lease_until)
    VALUES (@id, 'confirmation', @key, @subscription, @payload, @now, @expiresAt, @now, 1, @leaseNow + @leaseMs)`,
  supersede: `DELETE FROM message WHERE subscription = @subscription AND stream = 'confirmation' AND id <> @id`,
  due: `SELECT id FROM message
    WHERE CASE WHEN lease_until IS NULL THEN next_attempt_at <= @now OR next_attempt_at > @far
      ELSE lease_until <= @leaseNow OR lease_until > @leaseNow + @leaseMs END
    ORDER BY next_attempt_at LIMIT @limit FOR UPDATE SKIP LOCKED`,
  // Found with a lease that has ended: the attempt before was lost, and may have delivered it.
  claim: `UPDATE message SET fence = fence + 1, lease_until = @leaseNow + @leaseMs,
      unknown_since = CASE WHEN lease_until IS NULL THEN unknown_since ELSE coalesce(unknown_since, @now) END
    WHERE id = @id`,
  claimed: `SELECT m.id, m.key, m.subscription, s.address, m.payload, m.created_at, m.expires_at, m.attempts, m.unknown_since, m.fence
    FROM message m JOIN subscription s ON s.id = m.subscription WHERE m.id = @id`,
  keep: 'UPDATE message SET lease_until = @leaseNow + @leaseMs WHERE id = @id AND fence = @fence',
  retry: `UPDATE message SET next_attempt_at = @nextAttemptAt, attempts = @attempts, outcome = @outcome, unknown_since = @unknownSince, lease_until = NULL
    WHERE id = @id AND fence = @fence`,
  remove: 'DELETE FROM message WHERE id = @id AND (fence = @fence OR @sent = 1)',
}

type Due = Parameters<MessageStore['claimMessages']>[0]
type Row = Omit<QueuedMessage, 'course' | 'language'> & { readonly payload: string }

/** The statements about messages. */
export const messageSteps = {
  /** Writes the confirmation of a subscription, already claimed by the process that writes it. */
  *queue(
    { id, expiresAt, leaseMs }: NewMessage,
    cause: Pick<QueuedMessage, 'subscription' | 'address' | 'course' | 'language'> & {
      readonly now: number
    },
  ): Steps<QueuedMessage> {
    const { now, ...about } = cause
    const { subscription, course, language } = about
    const key = `confirmation.${id}`
    const payload = JSON.stringify({ course, language })
    yield* run(TEXTS.queue, { id, key, subscription, payload, now, expiresAt, leaseMs })
    return { id, key, ...about, createdAt: now, expiresAt, attempts: 0, unknownSince: undefined, fence: 1 }
  },
  /** Removes a queued confirmation if none is wanted, and otherwise the one before it that has not left. */
  *decide({ id, fence, subscription }: QueuedMessage, wanted: boolean): Steps<void> {
    if (wanted) yield* run(TEXTS.supersede, { id, subscription })
    else yield* run(TEXTS.remove, { id, fence, sent: 0 })
  },
  *due(input: Due): Steps<readonly { readonly id: string }[]> {
    const far = input.now + FAR_MS
    return yield* all<{ readonly id: string }>(TEXTS.due, { ...input, far })
  },
  *claim(input: Due): Steps<readonly QueuedMessage[]> {
    const claimed: QueuedMessage[] = []
    for (const { id } of yield* this.due(input)) {
      yield* run(TEXTS.claim, { id, ...input })
      const row = yield* first<Row>(TEXTS.claimed, { id })
      if (row) claimed.push(messageOf(row))
    }
    return claimed
  },
  *keep({ id, fence }: QueuedMessage, leaseMs: number): Steps<void> {
    yield* run(TEXTS.keep, { id, fence, leaseMs })
  },
  *settle({ message: { id, fence }, result }: MessageSettlement): Steps<void> {
    if (typeof result === 'string') yield* run(TEXTS.remove, { id, fence, sent: Number(result === 'sent') })
    else yield* run(TEXTS.retry, { id, fence, ...result })
  },
}

/** The queue of messages. */
export const messages = ({ one, write }: Sql, { history }: Pick<CourseParts, 'history'>): MessageStore => ({
  // Look before beginning a transaction: nearly always, none is due.
  claimMessages: async (input) =>
    (await one(messageSteps.due(input))).length === 0 ? [] : write(() => messageSteps.claim(input)),
  keepMessages: ({ messages: held, leaseMs }) =>
    write(function* () {
      for (const message of held) yield* messageSteps.keep(message, leaseMs)
    }),
  settleMessage: (settlement) =>
    write(function* () {
      yield* messageSteps.settle(settlement)
      const { message, entry } = settlement
      if (entry) yield* history.remember([message.subscription, entry])
    }),
})

function messageOf({ payload, ...row }: Row): QueuedMessage {
  // Written by `queue`, or by the migration that made the table.
  const { course, language } = JSON.parse(payload) as { course: string; language?: string | null }
  return { ...row, course, language: language ?? undefined, unknownSince: row.unknownSince }
}
