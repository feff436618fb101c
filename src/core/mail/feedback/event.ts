import { DAY_MS } from '../../durations.ts'
import { DEAD_ADDRESS } from '../outcome.ts'

/** What a provider or a receiving mail server reports about one message to one recipient (CONTRACT §12). */
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

const ENHANCED = /(?<![\d.])([245])\.(\d{1,3})\.(\d{1,3})(?!\.?\d)/

/**
 * The enhanced status code (RFC 3463) in these texts, such as `5.1.1`: the first one of a text, and of several texts the
 * first that is precise. Some servers put a vague 5.0.0 beside a precise reply.
 */
export function enhancedCode(...texts: readonly unknown[]): string | undefined {
  const found = texts.map((text) => typeof text === 'string' && ENHANCED.exec(text))
  const codes = found.flatMap((match) => (match ? [match.slice(1).map(Number).join('.')] : []))
  return codes.find((code) => !code.endsWith('.0.0')) ?? codes[0]
}

/**
 * Hard only for codes that say the mailbox or domain does not exist: a 5.7.1 is about the sender, a 5.2.2 about a full
 * mailbox. Five soft bounces over three days count as hard anyway.
 */
export const bounceKind = (status: string | undefined): FeedbackKind =>
  status !== undefined && DEAD_ADDRESS.test(status) ? 'hard-bounce' : 'soft-bounce'

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
export function reasonFor(kind: FeedbackKind, status?: string): string {
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

export const SUPPRESSION_CAUSES = ['hard-bounce', 'complaint', 'manual'] as const
export type SuppressionCause = (typeof SUPPRESSION_CAUSES)[number]

export interface Suppression {
  readonly cause: SuppressionCause
  readonly at: number
  /** A provider's name, `pipe`, `import` or `operator`. */
  readonly source: string
  readonly reason: string
}

/** Stored state of the mailbox behind an address; an address without feedback has no record. */
export interface MailboxRecord {
  /** Compares addresses; see `parseAddress`. */
  readonly identity: string
  readonly softBounces: number
  /** When the first and the last of them happened. */
  readonly softSince: number | undefined
  readonly softUntil: number | undefined
  readonly deliveredAt: number | undefined
  readonly suppression: Suppression | undefined
}

/**
 * Five soft bounces over at least three days, with no delivery between them, count as a hard bounce (CONTRACT §12). Where
 * nobody reports deliveries, a month without one is taken for one.
 */
export const SOFT_BOUNCES = { most: 5, overMs: 3 * DAY_MS, forgottenMs: 30 * DAY_MS } as const

const NO_SOFT_BOUNCES = { softBounces: 0, softSince: undefined, softUntil: undefined }

export const newMailbox = (identity: string): MailboxRecord => ({
  identity,
  ...NO_SOFT_BOUNCES,
  deliveredAt: undefined,
  suppression: undefined,
})

export type SubscriptionEffect = 'none' | 'unsubscribe' | 'end-dead' | 'end-suppressed' | 'release'

export interface ChangedMailbox {
  readonly mailbox: MailboxRecord
  readonly effect: SubscriptionEffect
}

/**
 * The record after an event, and what becomes of the address's subscriptions. Events may come late and in any order: a
 * soft bounce from before the last delivery counts for nothing, and the suppression that stops more mail stays.
 */
export function afterFeedback(
  mailbox: MailboxRecord,
  event: Pick<FeedbackEvent, 'kind' | 'at' | 'reason'>,
  source: string,
): ChangedMailbox {
  const { kind, at, reason } = event
  if (kind === 'unsubscribed') return { mailbox, effect: 'unsubscribe' }
  if (kind === 'delivered') {
    const deliveredAt = Math.max(at, mailbox.deliveredAt ?? at)
    const cleared = mailbox.softSince !== undefined && at >= mailbox.softSince
    return { mailbox: { ...mailbox, deliveredAt, ...(cleared && NO_SOFT_BOUNCES) }, effect: 'none' }
  }
  if (kind !== 'soft-bounce') return suppressed(mailbox, { cause: kind, at, source, reason })
  if (mailbox.deliveredAt !== undefined && at <= mailbox.deliveredAt) return { mailbox, effect: 'none' }
  const isNew = at - (mailbox.softUntil ?? at) > SOFT_BOUNCES.forgottenMs
  const before = isNew ? NO_SOFT_BOUNCES : mailbox
  const softBounces = before.softBounces + 1
  const softSince = Math.min(at, before.softSince ?? at)
  const softUntil = Math.max(at, before.softUntil ?? at)
  const counted = { ...mailbox, softBounces, softSince, softUntil }
  if (softBounces < SOFT_BOUNCES.most || softUntil - softSince < SOFT_BOUNCES.overMs)
    return { mailbox: counted, effect: 'none' }
  const days = Math.floor((softUntil - softSince) / DAY_MS)
  const why = `${softBounces} soft bounces in ${days} days; the last: ${reason}`
  return suppressed(counted, { cause: 'hard-bounce', at: softUntil, source, reason: why })
}

/** A hard bounce weighs most: it is the only cause that stops sign-in mail. */
const WEIGHT: Readonly<Record<SuppressionCause, number>> = { manual: 0, complaint: 1, 'hard-bounce': 2 }

/** The record with this suppression, unless it already has one that stops at least as much mail. */
export function suppressed(mailbox: MailboxRecord, suppression: Suppression): ChangedMailbox {
  const effect = suppression.cause === 'hard-bounce' ? 'end-dead' : 'end-suppressed'
  const known = mailbox.suppression
  const stays = known !== undefined && WEIGHT[known.cause] >= WEIGHT[suppression.cause]
  return { mailbox: stays ? mailbox : { ...mailbox, suppression }, effect }
}

/** The record of an address that may be mailed again: what bounced before counts no more. */
export function released(mailbox: MailboxRecord): ChangedMailbox {
  return mailbox.suppression === undefined
    ? { mailbox, effect: 'none' }
    : { mailbox: { ...mailbox, ...NO_SOFT_BOUNCES, suppression: undefined }, effect: 'release' }
}

/** The record under the hash of an erased address: whether it is suppressed is kept, and no text about that. */
export function withoutTraces(before: MailboxRecord, { suppression }: MailboxRecord): MailboxRecord {
  if (suppression === before.suppression) return before
  const reason = 'the address was erased'
  return { ...newMailbox(before.identity), suppression: suppression && { ...suppression, reason } }
}

const WITHOUT_ZONE = /^(\d{4}-\d{2}-\d{2})[ T](\d{2}:\d{2}(?::\d{2}(?:\.\d+)?)?)$/

/** UTC milliseconds of Unix seconds or a date; a date without a zone is taken as UTC. Undefined: it is none. */
export function instantOf(text: string): number | undefined {
  const trimmed = text.trim()
  if (/^\d{9,11}$/.test(trimmed)) return Number(trimmed) * 1000
  const at = Date.parse(trimmed.replace(WITHOUT_ZONE, '$1T$2Z'))
  return Number.isNaN(at) ? undefined : at
}
