import type { FeedbackEvent } from '../../src/core/mail/feedback/event.ts'
import { applyFeedback } from '../../src/core/mail/feedback/store.ts'
import type { Store } from '../../src/core/store/store.ts'

let events = 0

/** A provider's event about one message to `name@example.com`, unlike any other event. */
export function eventOf(
  kind: FeedbackEvent['kind'],
  now: number,
  { name = 'ada', at = now, id }: { readonly name?: string; readonly at?: number; readonly id?: string } = {},
): FeedbackEvent {
  events += 1
  return {
    id: id ?? `event-${events}`,
    kind,
    address: `${name}@example.com`,
    messageId: 'm-1@example.com',
    at,
    reason: `a ${kind} in a test`,
  }
}

/** Takes what a provider says in one webhook. */
export function hear(
  { feedback, sending }: Pick<Store, 'feedback' | 'sending'>,
  heard: readonly FeedbackEvent[],
  {
    now,
    source = 'postmark',
    token,
    erasureHashes = () => [],
  }: {
    readonly now: number
    readonly source?: string
    readonly token?: string
    readonly erasureHashes?: (identity: string) => readonly string[]
  },
) {
  const told = { events: heard, ignored: 0, ...(token !== undefined && { token }) }
  return applyFeedback({ feedback: told, source, store: feedback, sending, erasureHashes, now })
}
