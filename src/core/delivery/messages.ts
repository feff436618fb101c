import type { Host } from '../host.ts'
import { type Held, heldReason } from '../mail/holds.ts'
import type { Mail, Mailer } from '../mail/mailer.ts'
import type { MailPayload } from '../mail/sent-mail.ts'
import type { TransactionalMail } from '../mail/transactional.ts'
import { type Delivery, KEY_LIFE_MS } from './delivery.ts'
import { createEngine, type Engine } from './engine.ts'
import type { MessageSettlement, MessageStore, QueuedMessage } from './message.ts'
import type { Attempted, Source } from './source.ts'
import { MAIL, SIGN_IN, type Stream } from './streams.ts'

/** What all that sends messages of one process shares. */
export interface MessageHost extends Host {
  /** Whether an operator holds a stream. */
  readonly held?: Held | undefined
}

/** The messages of one stream that are mails, as jobs. */
export function messageSource<Settlement extends MessageSettlement>(
  { clock, log, held = async () => undefined }: MessageHost,
  {
    stream,
    store,
    mailer,
    mailOf,
    gone,
    expired,
    settlementOf,
    about,
  }: {
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
  },
): Source<QueuedMessage> {
  const { name } = stream
  const event = name.replaceAll('-', '_')
  return {
    stream,
    lines: mailer.lines,
    patienceMs: mailer.patienceMs,
    async held() {
      const hold = await held(name)
      return hold && heldReason(hold)
    },
    jobOf: messageJob,
    claim: (asked) => store.claimMessages({ stream: name, ...asked }),
    keep: (messages, leaseMs) => store.keepMessages({ messages, leaseMs }),
    async prepare(message) {
      const now = clock.now()
      const { expiresAt, unknownSince } = message
      if (now >= expiresAt) return { kind: 'over', reason: expired }
      if (mailer.transport === 'api' && unknownSince !== undefined && now - unknownSince >= KEY_LIFE_MS)
        return { kind: 'over', reason: 'the provider may have it, and no longer knows its key' }
      const mail = await mailOf(message)
      if (mail === undefined) return { kind: 'over', reason: gone }
      return { handOver: (signal, recorded) => mailer.send(mail, signal, recorded) }
    },
    settle: (attempted) =>
      store.settleMessages(attempted.map((one) => settlementOf(messageSettlement(one), one))),
    tell({ claim, delivery }) {
      const reason = reasonOf(delivery)
      if (delivery.kind === 'sent')
        log.info(`${event}_sent`, `a message of the stream ${name} was sent`, about(claim))
      else if (delivery.kind !== 'untried' && reason !== undefined)
        log.warn(`${event}_not_sent`, `a message of the stream ${name} was not sent`, {
          ...{ ...about(claim), outcome: delivery.kind, reason },
        })
    },
  }
}

const reasonOf = (delivery: Delivery) => ('reason' in delivery ? delivery.reason : undefined)

export const messageJob = ({ createdAt: dueAt, attempts: failures, unknownSince }: QueuedMessage) => ({
  ...{ dueAt, failures, unknownSince },
  wasTried: failures > 0,
})

/** What is written of an attempt at a message. */
export const messageSettlement = <Claim extends QueuedMessage>({
  claim,
  record,
  now,
  delivery,
}: Attempted<Claim>) => ({
  ...{ claim, record, now, outcome: delivery.kind, reason: reasonOf(delivery) },
  providerId: delivery.kind === 'sent' ? delivery.id : undefined,
})

/**
 * Sends the mails that are stored to be sent for certain: sign-in mails by an engine of their own, so that they wait for
 * no other.
 */
export function createMails(
  host: MessageHost,
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
): readonly Engine<QueuedMessage>[] {
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
  return [SIGN_IN, MAIL].map((stream) => {
    const source = messageSource(host, {
      stream,
      store,
      mailer,
      mailOf,
      gone: 'its record is gone',
      expired: 'it could not be mailed in time',
      settlementOf: (settlement) => settlement,
      about: ({ id }) => ({ mail: id }),
    })
    return createEngine(host, source, signal)
  })
}
