import type { MailboxEventKind } from '../mail/feedback/store.ts'
import type { Outcome } from '../mail/mailer.ts'

/** One thing that happened to a subscription: what is to be written of it, in UTC milliseconds. */
export interface HistoryEntry {
  readonly at: number
  readonly kind:
    | MailboxEventKind
    | 'confirmation'
    | 'confirmed'
    | 'attempt'
    | 'notice'
    | 'undone'
    | 'set'
    | 'resolved'
  readonly enrolment: number
  /** The lesson of an attempt or a decision; 0 for what concerns none. */
  readonly day: number
  /** `sent`, `transient`, `permanent`, `bounced` or `unknown` of a message; `retry` or `sent` of a decision. */
  readonly outcome?: string | undefined
  readonly reason?: string | undefined
  /** Without angle brackets. */
  readonly messageId?: string | undefined
  /** The provider's own id of a message that it took. */
  readonly providerId?: string | undefined
  /** Source of the feedback: a provider's name, `pipe`, `import`, `operator` or `send`; `queue` of a confirmation. */
  readonly source?: string | undefined
}

/** An entry as it is read back, with the attempts of a lesson numbered from 1. */
export interface PastEntry extends HistoryEntry {
  readonly attempt: number | undefined
}

/** A subscription keeps this many entries, and a few more for a while; the oldest go first. */
export const MOST_ENTRIES = 200

/** Whether to look for entries beyond the limit after this one: after sent messages only now and then. */
export const mayExceed = ({ outcome, day }: HistoryEntry): boolean => outcome !== 'sent' || day % 50 === 0

export function outcomeFields(outcome: Outcome): Pick<HistoryEntry, 'outcome' | 'reason' | 'providerId'> {
  if (outcome.kind === 'sent') return { outcome: 'sent', providerId: outcome.id }
  const bounced = outcome.kind === 'permanent' && outcome.hardBounce
  return { outcome: bounced ? 'bounced' : outcome.kind, reason: outcome.reason }
}
