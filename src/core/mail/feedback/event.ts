/**
 * Kinds of report that a provider or a receiving mail server gives about one message to one recipient (CONTRACT §12).
 */
export const FEEDBACK_KINDS = [
  'hard-bounce',
  'soft-bounce',
  'complaint',
  'unsubscribed',
  'delivered',
] as const

export type FeedbackKind = (typeof FEEDBACK_KINDS)[number]

export interface FeedbackEvent {
  /** The same each time the provider delivers this event: the event takes effect once. */
  readonly id: string
  readonly kind: FeedbackKind
  /** As the provider spelled it; not parsed yet. */
  readonly address: string
  /** Without angle brackets; undefined when the provider doesn't say. */
  readonly messageId: string | undefined
  /** UTC milliseconds. */
  readonly at: number
  /** One of our own sentences, with the status code where there is one. Never the sender's text. */
  readonly reason: string
}

/** The events in one webhook or one message. `ignored` counts valid items that say nothing about a recipient. */
export interface Feedback {
  readonly events: readonly FeedbackEvent[]
  readonly ignored: number
  /** Set by a provider that signs a token and not the body: the token is used up, whatever the body says. */
  readonly token?: string | undefined
}

/** A provider's answer that is signed correctly but has another form than its documentation says. */
export class FeedbackFormatError extends Error {
  override readonly name = 'FeedbackFormatError'
}
