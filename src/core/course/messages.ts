import type { HistoryEntry } from './history.ts'

/**
 * A mail that leaves because of something that happened once. Its row is written in the transaction of that cause, so
 * it does not depend on the process that wrote it, and is deleted when nothing more is to be tried.
 */
export interface QueuedMessage {
  readonly id: string
  /** The same for every attempt: the idempotency key and the Message-ID derive from it. */
  readonly key: string
  readonly subscription: string
  readonly address: string
  readonly course: string
  /** A language tag; undefined: the platform's. */
  readonly language: string | undefined
  /** UTC milliseconds. The Date header of every attempt. */
  readonly createdAt: number
  /** Not mailed after this. */
  readonly expiresAt: number
  /** Attempts that did not succeed. */
  readonly attempts: number
  /** Since when an attempt with an unknown outcome may have delivered it. */
  readonly unknownSince: number | undefined
  /** Rises with every claim: an outcome that brings an older number came too late. */
  readonly fence: number
}

/** A message to write together with its cause; the process that writes it holds it for `leaseMs`. */
export interface NewMessage extends Pick<QueuedMessage, 'id' | 'expiresAt'> {
  readonly leaseMs: number
}

/** What an attempt leaves behind. */
export interface MessageSettlement {
  readonly message: QueuedMessage
  /** `sent` counts also if the claim was lost meanwhile; `over`: nothing more is tried. */
  readonly result: 'sent' | 'over' | Retry
  /** Written into the history of its subscription in the same transaction. */
  readonly entry?: HistoryEntry | undefined
}

export interface Retry extends Pick<QueuedMessage, 'attempts' | 'unknownSince'> {
  readonly nextAttemptAt: number
  readonly outcome: string
}

export interface MessageStore {
  /** Takes up to `limit` messages that are due, and those whose process did not record an outcome before its lease ended. */
  claimMessages(input: {
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
  settleMessage(settlement: MessageSettlement): Promise<void>
}
