import { createHash } from 'node:crypto'
import { parseAddress } from '../../address.ts'
import type { Pause } from '../holds.ts'
import type { Feedback, FeedbackEvent, FeedbackKind } from './event.ts'
import { afterFeedback, released, type Suppression, suppressed } from './mailbox.ts'
import { countedDomain, type SendingStore } from './sending.ts'
import type { AppliedChange, FeedbackStore, MailboxChange } from './store.ts'

/** Gives the hashes that an erasure of the address would leave in the store. */
export type ErasureHashes = (identity: string) => readonly string[]

/** Hashed, because the provider's id may have any length and any characters. */
function keyOf(source: string, id: string): string {
  return createHash('sha256').update(`${source}:${id}`).digest('base64url')
}

/** The change that an event makes; undefined when its address cannot be parsed. */
function eventChange(
  event: FeedbackEvent,
  { source, erasureHashes, now }: Pick<FeedbackInput, 'source' | 'erasureHashes' | 'now'>,
): MailboxChange | undefined {
  const address = parseAddress(event.address)
  if (!address.ok) return undefined
  const { identity } = address
  const { id, kind, at, reason, messageId } = event
  return {
    key: keyOf(source, id),
    identity,
    erasureHashes: erasureHashes(identity),
    change: (mailbox) => afterFeedback(mailbox, event, source),
    at,
    reason,
    // The history leaves out deliveries, which would only repeat the attempts.
    entry: kind === 'delivered' ? undefined : { kind, source, messageId },
    // Counted when it is heard, however late: it still says how receivers see us now.
    counted: { at: now, kind, source, domain: countedDomain(identity), count: 1 },
  }
}

/** Suppresses an address, as an operator or an import asks. */
export function suppressionChange(
  identity: string,
  suppression: Suppression,
  erasureHashes: ErasureHashes,
): MailboxChange {
  const change: MailboxChange['change'] = (mailbox) => suppressed(mailbox, suppression)
  return { ...decided('suppressed', identity, suppression), erasureHashes: erasureHashes(identity), change }
}

/** Takes an address off the suppression list. */
export function releaseChange(identity: string, why: Omit<Suppression, 'cause'>): MailboxChange {
  return { ...decided('released', identity, why), erasureHashes: [], change: released }
}

const decided = (
  kind: 'suppressed' | 'released',
  identity: string,
  { at, reason, source }: Omit<Suppression, 'cause'>,
) => ({
  key: undefined,
  identity,
  at,
  reason,
  entry: { kind, source, messageId: undefined },
  counted: undefined,
})

/** How many events of one delivery had each result. */
export type FeedbackCounts = Readonly<Record<AppliedChange | 'ignored', number>>

export interface FeedbackInput {
  readonly feedback: Feedback
  readonly source: string
  readonly store: FeedbackStore
  readonly sending: Pick<SendingStore, 'check'>
  readonly erasureHashes: ErasureHashes
  readonly now: number
}

/**
 * Applies all events of one delivery in one durable commit. After bad news the breaker is looked at, and its pause is
 * given.
 */
export async function applyFeedback(input: FeedbackInput): Promise<{
  readonly counts: FeedbackCounts
  /** The kinds of the events that were heard for the first time. */
  readonly recorded: readonly FeedbackKind[]
  readonly pause: Pause | undefined
}> {
  const { feedback, source, store, sending, now } = input
  const read = feedback.events.flatMap(({ kind, ...event }) => {
    const change = eventChange({ kind, ...event }, input)
    return change === undefined ? [] : [{ kind, change }]
  })
  const changes = read.map(({ change }) => change)
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
    recorded: read.flatMap(({ kind }, n) =>
      applied[n] === 'changed' || applied[n] === 'unchanged' ? [kind] : [],
    ),
    pause: bad ? await sending.check(now) : undefined,
  }
}
