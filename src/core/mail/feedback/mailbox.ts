import { DAY_MS } from '../../durations.ts'
import type { FeedbackEvent } from './event.ts'

/** Why no mail goes to an address. */
export const SUPPRESSION_CAUSES = ['hard-bounce', 'complaint', 'manual'] as const

export type SuppressionCause = (typeof SUPPRESSION_CAUSES)[number]

export interface Suppression {
  readonly cause: SuppressionCause
  /** UTC milliseconds. */
  readonly at: number
  /** A provider's name, `pipe`, `import` or `operator`. */
  readonly source: string
  readonly reason: string
}

/** Stored state of the mailbox behind an address; an address without feedback has no record. */
export interface MailboxRecord {
  /** Compares addresses; see `parseAddress`. */
  readonly identity: string
  /** Soft bounces since the last delivery. */
  readonly softBounces: number
  /** When the first and the last of them happened. */
  readonly softSince: number | undefined
  readonly softUntil: number | undefined
  readonly deliveredAt: number | undefined
  readonly suppression: Suppression | undefined
}

/** Five soft bounces over at least three days, with no delivery between them, count as a hard bounce (CONTRACT §12). */
export const SOFT_BOUNCES = { most: 5, overMs: 3 * DAY_MS } as const

const NO_SOFT_BOUNCES = { softBounces: 0, softSince: undefined, softUntil: undefined }

export function newMailbox(identity: string): MailboxRecord {
  return { identity, ...NO_SOFT_BOUNCES, deliveredAt: undefined, suppression: undefined }
}

/** The effect of an event on the subscriptions of its address. */
export type SubscriptionEffect = 'none' | 'unsubscribe' | 'end-dead' | 'end-suppressed' | 'release'

export interface ChangedMailbox {
  readonly mailbox: MailboxRecord
  readonly effect: SubscriptionEffect
}

/**
 * The record after an event, and what becomes of the address's subscriptions. Events may come late and in any order:
 * a soft bounce from before the last delivery counts for nothing, and of two causes for a suppression the one that
 * stops more mail stays.
 */
export function afterFeedback(
  mailbox: MailboxRecord,
  event: Pick<FeedbackEvent, 'kind' | 'at' | 'reason'>,
  source: string,
): ChangedMailbox {
  const { kind, at, reason } = event
  switch (kind) {
    case 'delivered': {
      const latest = Math.max(at, mailbox.deliveredAt ?? at)
      const cleared = mailbox.softSince !== undefined && at >= mailbox.softSince
      return {
        mailbox: {
          ...mailbox,
          deliveredAt: latest,
          ...(cleared && NO_SOFT_BOUNCES),
        },
        effect: 'none',
      }
    }
    case 'soft-bounce': {
      if (mailbox.deliveredAt !== undefined && at <= mailbox.deliveredAt) return { mailbox, effect: 'none' }
      const softBounces = mailbox.softBounces + 1
      const softSince = Math.min(at, mailbox.softSince ?? at)
      const softUntil = Math.max(at, mailbox.softUntil ?? at)
      const counted = { ...mailbox, softBounces, softSince, softUntil }
      if (softBounces < SOFT_BOUNCES.most || softUntil - softSince < SOFT_BOUNCES.overMs)
        return { mailbox: counted, effect: 'none' }
      const days = Math.floor((softUntil - softSince) / DAY_MS)
      return suppressed(counted, {
        cause: 'hard-bounce',
        at: softUntil,
        source,
        reason: `${softBounces} soft bounces in ${days} days; the last: ${reason}`,
      })
    }
    case 'hard-bounce':
      return suppressed(mailbox, { cause: 'hard-bounce', at, source, reason })
    case 'complaint':
      return suppressed(mailbox, { cause: 'complaint', at, source, reason })
    case 'unsubscribed':
      return { mailbox, effect: 'unsubscribe' }
  }
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

/** May this mail go to this mailbox? Sign-in mail stops only for an address that does not exist (CONTRACT §12). */
export function mayMail(
  suppression: Pick<Suppression, 'cause'> | undefined,
  mail: { readonly signIn: boolean },
): boolean {
  return suppression === undefined || (mail.signIn && suppression.cause !== 'hard-bounce')
}
