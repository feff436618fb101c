import { PlatformError } from '../errors.ts'
import type { Host } from '../host.ts'
import { type Held, heldReason } from '../mail/holds.ts'
import { composeFault, type Mail, type Mailer } from '../mail/mailer.ts'
import { type Keeps, type MailPayload, sendAgain, triedBefore } from '../mail/send-once.ts'
import type { TransactionalMail } from '../mail/transactional.ts'
import { createEngine, type Engine } from './engine.ts'
import { type Delivery, isForgotten, type JobRecord, MAIL, SIGN_IN, type Stream } from './retries.ts'
import type { Asked, Attempted, Source } from './source.ts'

/**
 * What leaves because of something that happened once. Its row is written in the transaction of that cause; what
 * composes it is deleted when nothing more is to be tried.
 */
export interface QueuedMessage {
  readonly id: string
  readonly stream: Stream['name']
  /** The same for every attempt: the idempotency key and the Message-ID derive from it. */
  readonly key: string
  /** Of a confirmation. */
  readonly subscription: string | undefined
  readonly address: string
  /** JSON: what composes it, as its stream writes and reads it. */
  readonly payload: string
  /** UTC milliseconds. The Date header of every attempt. */
  readonly createdAt: number
  readonly expiresAt: number
  readonly attempts: number
  /** Since when an attempt with an unknown outcome may have delivered it. */
  readonly unknownSince: number | undefined
  /** 1: an older build has sent this stored mail meanwhile, or erased its recipient. */
  readonly isGone?: number
  /** Rises with every claim: an outcome that brings an older number came too late. */
  readonly fence: number
}

/** A message to write together with its cause. */
export interface NewMessage extends Pick<QueuedMessage, 'id' | 'stream' | 'key' | 'payload' | 'expiresAt'> {
  /** How long the process that writes it holds it; default: as long as any claim. */
  readonly leaseMs?: number
}

export interface MessageSettlement extends Pick<Attempted<QueuedMessage>, 'claim' | 'now'> {
  /** `sent` counts also if the claim was lost meanwhile. */
  readonly record: JobRecord
  readonly outcome: string
  readonly reason: string | undefined
  /** The provider's own id of a message that it took. */
  readonly providerId: string | undefined
}

export interface MessageStore<Settlement = MessageSettlement> {
  /** Takes up to `limit` messages that are due, and those whose process did not record an outcome before its lease ended; while it is `quiet`, of notices only what operators say. */
  claimMessages(
    input: Omit<Asked, 'retries'> &
      Pick<QueuedMessage, 'stream'> & { readonly quiet?: boolean } & Pick<MessageHost, 'ownDirectory'>,
  ): Promise<readonly QueuedMessage[]>
  keepMessages(input: {
    readonly messages: readonly QueuedMessage[]
    readonly leaseMs: number
  }): Promise<void>
  settleMessages(settlements: readonly Settlement[]): Promise<void>
}

/** What all that sends messages of one process shares. */
export interface MessageHost<Settlement extends MessageSettlement = MessageSettlement> extends Host {
  readonly store: MessageStore<Settlement> & Keeps
  readonly mailer: Mailer
  readonly held: Held
  /** Ends a run after the mails in hand. */
  readonly signal: AbortSignal
  /** Sign-in mails about records of a program's own directory are for its process, and those about others for the rest. */
  readonly ownDirectory?: boolean | undefined
}

export function messageEngine<Settlement extends MessageSettlement>(
  host: MessageHost<Settlement>,
  input: Pick<Source<QueuedMessage>, 'stream' | 'pace' | 'lastLook'> & {
    readonly isQuiet?: () => Promise<boolean>
    /** The mail that a message is; undefined: there is no reason to send it any more. */
    readonly mailOf: (message: QueuedMessage) => Promise<Mail | undefined>
    /** Why one without a mail is given up; undefined: nobody needs to know. */
    readonly gone?: string
    readonly expired: string
    readonly settlementOf: (settlement: MessageSettlement, attempted: Attempted<QueuedMessage>) => Settlement
  },
): Engine<QueuedMessage> {
  const { clock, log, store, mailer, signal, ownDirectory } = host
  const { mailOf, gone, expired, settlementOf, pace, lastLook, isQuiet = async () => false } = input
  const { name } = input.stream
  const event = name.replaceAll('-', '_')
  const source: Source<QueuedMessage> = {
    pace,
    lastLook,
    stream: { ...input.stream, repeatsRarely: mailer.transport !== 'api' },
    lines: mailer.lines,
    patienceMs: mailer.patienceMs,
    async held() {
      const hold = await host.held(name)
      return hold && heldReason(hold)
    },
    jobOf: messageJob,
    claim: async (asked) =>
      store.claimMessages({ stream: name, quiet: await isQuiet(), ownDirectory, ...asked }),
    keep: (messages, leaseMs) => store.keepMessages({ messages, leaseMs }),
    async prepare(message) {
      const now = clock.now()
      if (now >= message.expiresAt) return { kind: 'over', reason: expired }
      if (isForgotten(message, mailer, now))
        return { kind: 'over', reason: 'the provider may have it, and no longer knows its key' }
      try {
        const mail = await mailOf(message)
        if (mail === undefined) return { kind: 'over', reason: gone }
        const { key, unknownSince } = message
        const tried = unknownSince === undefined ? undefined : await triedBefore(store, key)
        return {
          handOver: (...how) => sendAgain(host, mail, { key, tried }, (one) => mailer.send(one, ...how)),
        }
      } catch (error) {
        // A store that fails holds up all; a definition's own code that fails for one mail holds up that one.
        if (error instanceof PlatformError && error.code === 'store_unavailable') throw error
        return { kind: 'not_composed', reason: composeFault(error) }
      }
    },
    settle: (attempted) =>
      store.settleMessages(attempted.map((one) => settlementOf(messageSettlement(one), one))),
    tell({ claim: { id, subscription } }, delivery) {
      const reason = reasonOf(delivery)
      const about = subscription === undefined ? { mail: id } : { subscription }
      if (delivery.kind === 'sent')
        log.info(`${event}_sent`, `a message of the stream ${name} was sent`, about)
      else if (delivery.kind !== 'untried' && reason !== undefined)
        log.warn(`${event}_not_sent`, `a message of the stream ${name} was not sent`, {
          ...about,
          outcome: delivery.kind,
          reason,
        })
    },
  }
  return createEngine(host, source, signal)
}

const reasonOf = (delivery: Delivery) => ('reason' in delivery ? delivery.reason : undefined)

export const EXPIRED = 'it could not be mailed in time'

export const messageJob = ({ attempts: failures, unknownSince }: QueuedMessage) => ({
  // A message is due at once; the clock may have been ahead when it was written.
  dueAt: 0,
  failures,
  unknownSince,
  wasTried: failures > 0,
})

export const messageSettlement = <Claim extends QueuedMessage>(attempted: Attempted<Claim>) => {
  const { claim, record, now, delivery } = attempted
  const providerId = delivery.kind === 'sent' ? delivery.id : undefined
  return { claim, record, now, outcome: delivery.kind, reason: reasonOf(delivery), providerId }
}

/** Sends the stored mails: those for signing in by an engine of their own, so that they wait for no other. */
export function createMails(
  host: MessageHost,
  /** Resolves the record of a sign-in mail anew. */
  again: TransactionalMail['again'],
): readonly Engine<QueuedMessage>[] {
  async function mailOf({ payload, address, createdAt, isGone }: QueuedMessage): Promise<Mail | undefined> {
    if (isGone === 1) return undefined
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
  const gone = 'its record is gone'
  const settlementOf = (settlement: MessageSettlement) => settlement
  return [SIGN_IN, MAIL].map((stream) =>
    messageEngine(host, { stream, mailOf, gone, expired: EXPIRED, settlementOf }),
  )
}
