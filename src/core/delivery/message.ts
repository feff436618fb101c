import type { JobRecord } from './delivery.ts'
import type { Stream } from './streams.ts'

/**
 * What leaves because of something that happened once. Its row is written in the transaction of that cause, so it does
 * not depend on the process that wrote it; what composes it is deleted when nothing more is to be tried.
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
  /** Not sent after this. */
  readonly expiresAt: number
  /** Attempts that did not succeed. */
  readonly attempts: number
  /** Since when an attempt with an unknown outcome may have delivered it. */
  readonly unknownSince: number | undefined
  /** Rises with every claim: an outcome that brings an older number came too late. */
  readonly fence: number
}

/** A message to write together with its cause; the process that writes it holds it for `leaseMs`. */
export interface NewMessage extends Pick<QueuedMessage, 'id' | 'stream' | 'key' | 'payload' | 'expiresAt'> {
  readonly leaseMs: number
}

/** What an attempt leaves behind. */
export interface MessageSettlement {
  readonly claim: QueuedMessage
  /** `sent` counts also if the claim was lost meanwhile. */
  readonly record: JobRecord
  readonly now: number
  /** What became of the attempt, for operators. */
  readonly outcome: string
  readonly reason: string | undefined
  /** The provider's own id of a message that it took. */
  readonly providerId: string | undefined
}

export interface MessageStore<Settlement = MessageSettlement> {
  /** Takes up to `limit` messages that are due, and those whose process did not record an outcome before its lease ended. */
  claimMessages(input: {
    readonly stream: Stream['name']
    readonly now: number
    readonly limit: number
    /** Measured by the store's own clock. */
    readonly leaseMs: number
  }): Promise<readonly QueuedMessage[]>
  /** Renews the leases of messages that are out. */
  keepMessages(input: {
    readonly messages: readonly QueuedMessage[]
    readonly leaseMs: number
  }): Promise<void>
  settleMessages(settlements: readonly Settlement[]): Promise<void>
}
