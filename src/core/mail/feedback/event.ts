import { DEAD_ADDRESS } from '../outcome.ts'

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

const ENHANCED = /(?<![\d.])([245])\.(\d{1,3})\.(\d{1,3})(?![\d.])/

/** The first enhanced status code (RFC 3463) in a text, such as `5.1.1`; undefined when there is none. */
export function enhancedCode(text: string): string | undefined {
  const found = ENHANCED.exec(text)
  return found === null ? undefined : `${Number(found[1])}.${Number(found[2])}.${Number(found[3])}`
}

/**
 * The kind of a bounce with this status. Hard only for codes that say the mailbox or domain does not exist: a 5.7.1
 * is about the sender, a 5.2.2 about a full mailbox. Five soft bounces over three days count as hard anyway.
 */
export function bounceKind(status: string | undefined): FeedbackKind {
  return status !== undefined && DEAD_ADDRESS.test(status) ? 'hard-bounce' : 'soft-bounce'
}

/** RFC 3463 §3, by subject, in words for an operator. */
const SUBJECTS: Readonly<Record<string, string>> = {
  '1': 'the address was refused',
  '2': 'the mailbox does not accept mail',
  '3': 'the receiving mail system could not take the message',
  '4': 'the message could not be routed or timed out',
  '5': 'the mail servers did not understand each other',
  '6': 'the content could not be converted',
  '7': 'a policy of the receiver refused the message',
}

/** A sentence about an event, made of its kind and code alone: the remote server's text can hold anything. */
export function reasonFor(kind: FeedbackKind, status: string | undefined): string {
  if (kind === 'complaint') return 'the recipient reported the message as spam'
  if (kind === 'unsubscribed') return 'the recipient unsubscribed at the mail provider'
  if (kind === 'delivered') return 'the receiving server accepted the message'
  if (status === undefined)
    return kind === 'hard-bounce' ? 'the address does not exist' : 'the message was returned'
  const sentence = DEAD_ADDRESS.test(status)
    ? 'the address does not exist'
    : (SUBJECTS[status.split('.')[1] ?? ''] ?? 'the message was returned')
  return `${sentence} (${status})`
}
