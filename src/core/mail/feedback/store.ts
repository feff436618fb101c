import { hash } from 'node:crypto'
import { parseMailbox } from '../../address.ts'
import type { AuditEntry } from '../../audit.ts'
import { DAY_MS } from '../../durations.ts'
import {
  afterFeedback,
  type ChangedMailbox,
  type Feedback,
  type FeedbackEvent,
  type FeedbackKind,
  type MailboxRecord,
  released,
  type Suppression,
  suppressed,
} from './event.ts'
import { countedDomain, type MailCount, type SendingStore } from './sending.ts'

/** The kinds of feedback and of operators' decisions that a subscription's history keeps. */
export type MailboxEventKind = Exclude<FeedbackKind, 'delivered'> | 'suppressed' | 'released'

/** No provider delivers an event again after this time. */
export const FEEDBACK_EVENTS_KEPT_MS = 90 * DAY_MS

export interface MailboxChange extends Pick<Suppression, 'at' | 'reason'> {
  /** Takes effect once for each key; without one, each time. */
  readonly key?: string | undefined
  readonly identity: string
  /** Hashes that an erasure of the address would leave: if one is stored, only a suppression is kept, under it. */
  readonly erasureHashes: readonly string[]
  /** Pure, so that all stores behave alike. */
  readonly change: (mailbox: MailboxRecord) => ChangedMailbox
  /** Entry for the histories of the address's subscriptions; undefined if nothing is recorded. */
  readonly entry:
    | { readonly kind: MailboxEventKind; readonly source: string; readonly messageId?: string | undefined }
    | undefined
  /** Added to the counts in the same commit, if there is one. */
  readonly counted?: MailCount
}

/** `repeated`: its key took effect before. `erased`: its address is one that was erased. */
export type AppliedChange = 'changed' | 'unchanged' | 'repeated' | 'erased'

export const countsOf = (changes: readonly MailboxChange[], applied: readonly AppliedChange[]): MailCount[] =>
  changes.flatMap(({ counted }, n) =>
    counted && applied[n] !== 'repeated' ? [{ ...counted, known: applied[n] !== 'changed' }] : [],
  )

export interface SuppressedAddress extends Suppression {
  readonly identity: string
}

/** Stores what providers and mail servers report, and which addresses may not be mailed. */
export interface FeedbackStore {
  /** Applies changes in order, in one commit with the subscriptions: one of a suppressed address is never due. */
  apply(changes: readonly MailboxChange[], now: number, audit?: AuditEntry): Promise<readonly AppliedChange[]>
  /** Uses up the key of a delivery without a change: a later change with this key is `repeated`. */
  note(key: string, now: number): Promise<void>
  /** The record of an address, or what an erasure left of it under one of these hashes. */
  find(identity: string, hashes?: readonly string[]): Promise<MailboxRecord | undefined>
  /** Was this message sent to the address? `recipients` are the hashes under which mail to it is recorded. */
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

/** Gives the hashes that an erasure of the address would leave in the store. */
export type ErasureHashes = (identity: string) => readonly string[]

/** Hashed, because the provider's id may have any length and any characters. */
const keyOf = (source: string, id: string) => hash('sha256', `${source}:${id}`, 'base64url')

/** The change that an event makes; none when its address, which may have a display name, cannot be parsed. */
function eventChange(event: FeedbackEvent, { source, erasureHashes, now }: FeedbackInput) {
  const address = parseMailbox(event.address)
  if (!address.ok) return []
  const { identity } = address
  const { id, kind, at, reason, messageId } = event
  const change = {
    key: keyOf(source, id),
    identity,
    erasureHashes: erasureHashes(identity),
    change: (mailbox: MailboxRecord) => afterFeedback(mailbox, event, source),
    at,
    reason,
    // The history leaves out deliveries, which would only repeat the attempts.
    entry: kind === 'delivered' ? undefined : { kind, source, messageId },
    // Counted when it is heard, however late: it still says how receivers see us now.
    counted: { at: now, kind, source, domain: countedDomain(identity), count: 1 },
  }
  return [change]
}

export function suppressionChange(
  identity: string,
  suppression: Suppression,
  erasureHashes: ErasureHashes,
): MailboxChange {
  const { at, reason, source } = suppression
  return {
    identity,
    at,
    reason,
    erasureHashes: erasureHashes(identity),
    change: (mailbox) => suppressed(mailbox, suppression),
    entry: { kind: 'suppressed', source },
  }
}

export function releaseChange(
  identity: string,
  { source, ...when }: Omit<Suppression, 'cause'>,
  erasureHashes: readonly string[] = [],
): MailboxChange {
  return { identity, ...when, erasureHashes, change: released, entry: { kind: 'released', source } }
}

export interface FeedbackInput {
  readonly feedback: Feedback
  readonly source: string
  readonly store: FeedbackStore
  readonly sending: Pick<SendingStore, 'check'>
  readonly erasureHashes: ErasureHashes
  readonly now: number
}

/** Applies all events of one delivery in one durable commit. After bad news, gives the pause of the breaker. */
export async function applyFeedback(input: FeedbackInput) {
  const { feedback, source, store, sending, now } = input
  const changes = feedback.events.flatMap((event) => eventChange(event, input))
  if (changes.length === 0 && feedback.token !== undefined)
    await store.note(keyOf(source, feedback.token), now)
  const applied = changes.length === 0 ? [] : await store.apply(changes, now)
  const count = (outcome: AppliedChange) => applied.filter((one) => one === outcome).length
  const bad = feedback.events.some(({ kind }) => kind === 'hard-bounce' || kind === 'complaint')
  return {
    counts: {
      changed: count('changed'),
      unchanged: count('unchanged'),
      repeated: count('repeated'),
      erased: count('erased'),
      ignored: feedback.ignored + feedback.events.length - changes.length,
    },
    /** The kinds of the events that were heard for the first time. */
    recorded: changes.flatMap(({ counted }, n) =>
      applied[n] === 'changed' || applied[n] === 'unchanged' ? [counted.kind] : [],
    ),
    pause: bad ? await sending.check(now) : undefined,
  }
}
