import type { Mail, Mailer } from '../mail/mailer.ts'
import type { MailPayload } from '../mail/sent-mail.ts'
import type { TransactionalMail } from '../mail/transactional.ts'
import { KEY_LIFE_MS } from './delivery.ts'
import { type Attempted, createLane, type Lane, type LaneHost } from './lane.ts'
import { LEASE_MS } from './lease.ts'
import type { MessageSettlement, MessageStore, QueuedMessage } from './message.ts'
import { MAIL, SIGN_IN, type Stream } from './streams.ts'

/** A lane for the messages of one stream, which are mails. */
export function createMessageLane<Settlement extends MessageSettlement>(
  host: LaneHost,
  options: {
    readonly stream: Stream
    readonly store: MessageStore<Settlement>
    readonly mailer: Pick<Mailer, 'send' | 'lines' | 'patienceMs' | 'transport'>
    /** The mail that a message is; undefined: there is no reason to send it any more. */
    readonly mailOf: (message: QueuedMessage) => Promise<Mail | undefined>
    /** Why one without a mail is given up; undefined: nobody needs to know. */
    readonly gone?: string
    /** Why one that expired is given up. */
    readonly expired: string
    readonly settlementOf: (settlement: MessageSettlement, attempted: Attempted<QueuedMessage>) => Settlement
    readonly about: (message: QueuedMessage) => Readonly<Record<string, string | undefined>>
    readonly signal?: AbortSignal | undefined
  },
): Lane<QueuedMessage> {
  const { stream, store, mailer, mailOf, settlementOf } = options
  const { name } = stream
  const event = name.replaceAll('-', '_')
  return createLane<QueuedMessage>(host, {
    stream,
    lines: mailer.lines,
    patienceMs: mailer.patienceMs,
    jobOf: ({ createdAt: dueAt, attempts: failures, unknownSince }) => ({
      dueAt,
      failures,
      unknownSince,
      wasTried: failures > 0,
    }),
    claim: (input) => store.claimMessages({ stream: name, ...input }),
    keep: (messages) => store.keepMessages({ messages, leaseMs: LEASE_MS }),
    async prepare(message) {
      const now = host.clock.now()
      const { expiresAt, unknownSince } = message
      if (now >= expiresAt) return { kind: 'over', reason: options.expired }
      if (mailer.transport === 'api' && unknownSince !== undefined && now - unknownSince >= KEY_LIFE_MS)
        return { kind: 'over', reason: 'the provider may have it, and no longer knows its key' }
      const mail = await mailOf(message)
      if (mail === undefined) return { kind: 'over', reason: options.gone }
      return { handOver: (signal, recorded) => mailer.send(mail, signal, recorded) }
    },
    settle: (attempted) =>
      store.settleMessages(
        attempted.map((one) => {
          const { claim, record, now, delivery } = one
          const reason = 'reason' in delivery ? delivery.reason : undefined
          const providerId = delivery.kind === 'sent' ? delivery.id : undefined
          return settlementOf({ claim, record, now, outcome: delivery.kind, reason, providerId }, one)
        }),
      ),
    tell({ claim, delivery }) {
      const about = options.about(claim)
      if (delivery.kind === 'sent')
        host.log.info(`${event}_sent`, `a message of the stream ${name} was sent`, about)
      else if (delivery.kind !== 'untried' && 'reason' in delivery && delivery.reason !== undefined)
        host.log.warn(`${event}_not_sent`, `a message of the stream ${name} was not sent`, {
          ...about,
          outcome: delivery.kind,
          reason: delivery.reason,
        })
    },
    signal: options.signal,
  })
}

/**
 * Sends the mails that are stored to be sent for certain; gives how many left. Sign-in mails have a lane of their own,
 * so that they wait for no other.
 */
export function createMails(
  host: LaneHost,
  {
    store,
    mailer,
    again,
    signal,
  }: {
    readonly store: MessageStore
    readonly mailer: Mailer
    /** Resolves the record of a sign-in mail anew. */
    readonly again: TransactionalMail['again']
    readonly signal: AbortSignal
  },
): () => Promise<number> {
  async function mailOf({ payload, address, createdAt }: QueuedMessage): Promise<Mail | undefined> {
    // Written by `sendOnce`, as JSON.
    const { name, slots = {}, record, attachments, ...mail } = JSON.parse(payload) as MailPayload
    const found = record && (await again(record.asker, { template: mail.template, inputs: record.inputs }))
    if (record && !found) return undefined
    return {
      ...mail,
      attachments: attachments?.map((one) => ({ ...one, content: Buffer.from(one.content, 'base64') })),
      to: { name, address },
      slots,
      ...found,
      date: new Date(createdAt),
    }
  }
  const lanes = [SIGN_IN, MAIL].map((stream) =>
    createMessageLane(host, {
      stream,
      store,
      mailer,
      mailOf,
      gone: 'its record is gone',
      expired: 'it could not be mailed in time',
      settlementOf: (settlement) => settlement,
      about: ({ id }) => ({ mail: id }),
      signal,
    }),
  )
  return async () => {
    const sent = await Promise.all(lanes.map((lane) => lane.wake()))
    return sent.reduce((sum, one) => sum + one, 0)
  }
}
