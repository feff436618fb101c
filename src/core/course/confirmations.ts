import { isOutcome } from '../delivery/delivery.ts'
import { LEASE_MS } from '../delivery/lease.ts'
import type { NewMessage, QueuedMessage } from '../delivery/message.ts'
import { messageEngine } from '../delivery/messages.ts'
import { CONFIRMATION } from '../delivery/streams.ts'
import { DAY_MS } from '../durations.ts'
import type { Mail } from '../mail/mailer.ts'
import type { Secret } from '../secret.ts'
import { outcomeFields } from './history.ts'
import { confirmationToken, confirmUrl, hashToken } from './links.ts'
import { NOTICE_CONFIRMATION_MAIL, NOTICES } from './notices.ts'
import { TOKEN_LIFE_MS } from './schedule.ts'
import type { CourseHost } from './store.ts'
import { isUnderWay } from './subscription.ts'

/** A confirmation is mailed only while its link works for at least another day. */
const CONFIRMATION_LIFE_MS = TOKEN_LIFE_MS - DAY_MS

/**
 * Mails confirmations from the rows that requests for them leave behind: a process that is killed, or a provider that
 * is down, delays one and loses none.
 */
export function createConfirmations(
  host: CourseHost,
  {
    siteUrl,
    firstCourse,
    keys,
  }: {
    readonly siteUrl: string
    readonly firstCourse: string
    /** Keys of links: tokens are made with the first, and found again with any. */
    readonly keys: readonly [Secret, ...Secret[]]
  },
) {
  const [key] = keys
  const { clock, store, mailer } = host

  /** The token of a message, made again; undefined: it was used or replaced, or its reader has left or is enrolled. */
  async function tokenOf(
    { id, subscription = '', createdAt }: QueuedMessage,
    now: number,
  ): Promise<string | undefined> {
    const found = await store.findById(subscription)
    if (found === undefined || isUnderWay(found) || (found.unsubscribedAt ?? 0) > createdAt) return undefined
    for (const one of keys) {
      const token = confirmationToken(one.reveal(), id)
      const verdict = await store.checkToken({ tokenHash: hashToken(token), now })
      if (verdict === 'use') return token
      if (verdict !== 'invalid') return undefined
    }
    const token = confirmationToken(key.reveal(), id)
    const renewed = await store.renewConfirmation({ id: subscription, tokenHash: hashToken(token), now })
    return renewed ? token : undefined
  }

  function mailOf({ payload, address, key: about, createdAt }: QueuedMessage, token: string): Mail {
    // Written by the store with the request, or by the migration that made the table.
    const { course, language } = JSON.parse(payload) as { course: string; language?: string | null }
    return {
      stream: 'confirmation',
      template: course === NOTICES ? NOTICE_CONFIRMATION_MAIL : 'subscription-confirmation',
      language: language ?? undefined,
      slots: {
        confirmUrl: confirmUrl(siteUrl, token, {
          course: course === firstCourse ? undefined : course,
          language: language ?? undefined,
        }),
      },
      to: { name: undefined, address },
      about,
      date: new Date(createdAt),
    }
  }

  const messageIdOf = (message: QueuedMessage) => mailer.messageId(mailOf(message, ''))

  const engine = messageEngine(host, {
    stream: CONFIRMATION,
    async mailOf(message) {
      const token = await tokenOf(message, clock.now())
      return token === undefined ? undefined : mailOf(message, token)
    },
    expired: 'it could not be mailed before its link was about to expire',
    settlementOf(settlement, { claim, delivery, now: at }) {
      const entry = { at, kind: 'confirmation', enrolment: 0, day: 0 } as const
      const { reason } = settlement
      if (isOutcome(delivery)) {
        const messageId = messageIdOf(claim)
        return { ...settlement, entry: { ...entry, messageId, ...outcomeFields(delivery) } }
      }
      return delivery.kind === 'over' && reason !== undefined
        ? { ...settlement, entry: { ...entry, outcome: 'permanent', reason } }
        : settlement
    },
  })

  return {
    /** A message to store with the request for it, and the hash of its token. */
    create(id: string): { readonly tokenHash: string; readonly message: Omit<NewMessage, 'payload'> } {
      const expiresAt = clock.now() + CONFIRMATION_LIFE_MS
      return {
        tokenHash: hashToken(confirmationToken(key.reveal(), id)),
        message: { id, stream: 'confirmation', key: `confirmation.${id}`, expiresAt, leaseMs: LEASE_MS },
      }
    },
    engine,
    messageIdOf,
  }
}
