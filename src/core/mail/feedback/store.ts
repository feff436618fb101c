import type { AuditEntry } from '../../audit.ts'
import { DAY_MS } from '../../durations.ts'
import type { FeedbackKind } from './event.ts'
import type { ChangedMailbox, MailboxRecord, Suppression } from './mailbox.ts'
import type { MailCount } from './sending.ts'

/**
 * The kinds of feedback and of operators' decisions that a subscription's history keeps; deliveries are left
 * out.
 */
export type MailboxEventKind = Exclude<FeedbackKind, 'delivered'> | 'suppressed' | 'released'

/** No provider delivers an event again after this time. */
export const FEEDBACK_EVENTS_KEPT_MS = 90 * DAY_MS

/**
 * A change to what is known about a mailbox. `change` is a pure function, so that all stores behave alike.
 */
export interface MailboxChange {
  /** Takes effect once for each key; undefined: each time. */
  readonly key: string | undefined
  readonly identity: string
  /**
   * The hashes that an erasure of the address would leave. If one is stored, the person was erased and
   * nothing is kept.
   */
  readonly erasureHashes: readonly string[]
  readonly change: (mailbox: MailboxRecord) => ChangedMailbox
  /** UTC milliseconds at which it happened. */
  readonly at: number
  readonly reason: string
  /** Entry for the histories of the address's subscriptions; undefined if nothing is recorded. */
  readonly entry:
    | { readonly kind: MailboxEventKind; readonly source: string; readonly messageId: string | undefined }
    | undefined
  /** Added to the counts in the same commit; undefined: not counted. */
  readonly counted: MailCount | undefined
}

/** `repeated`: its key took effect before. `erased`: its address is one that was erased. */
export type AppliedChange = 'changed' | 'unchanged' | 'repeated' | 'erased'

/** What the changes of one commit add to the counts of mail. */
export function countsOf(
  changes: readonly MailboxChange[],
  applied: readonly AppliedChange[],
): readonly MailCount[] {
  return changes.flatMap(({ counted }, n) =>
    counted === undefined || applied[n] === 'repeated'
      ? []
      : [{ ...counted, known: applied[n] !== 'changed' }],
  )
}

export interface SuppressedAddress extends Suppression {
  readonly identity: string
}

/** Stores what providers and mail servers report, and which addresses may not be mailed. */
export interface FeedbackStore {
  /**
   * Applies changes in order and updates the subscriptions of their addresses, in one durable commit: a
   * subscription of a suppressed address is never due. Gives one answer for each change.
   */
  apply(
    changes: readonly MailboxChange[],
    now: number,
    /** Written in the same commit. */
    audit?: AuditEntry,
  ): Promise<readonly AppliedChange[]>
  /** Uses up the key of a delivery without a change: a later change with this key is `repeated`. */
  note(key: string, now: number): Promise<void>
  find(identity: string): Promise<MailboxRecord | undefined>
  /**
   * Was a message with this Message-ID sent to the address? `recipients` are the hashes under which mail to
   * it is recorded.
   */
  wasSent(input: {
    readonly identity: string
    readonly recipients: readonly string[]
    readonly messageId: string
  }): Promise<boolean>
  /** Suppressed addresses, oldest first, those after one that was listed before. */
  listSuppressed(
    limit: number,
    after?: { readonly at: number; readonly identity: string },
  ): Promise<readonly SuppressedAddress[]>
  /** Forgets the keys of events received before that moment, a few hundred a transaction. */
  prune(before: number): Promise<void>
}
