import { DAY_MS } from '../durations.ts'
/** At most `most` different mails to one recipient within `windowMs`. */
export interface MailCap {
  readonly most: number
  readonly windowMs: number
}

/**
 * The caps for each class of transactional mail (sign-in, invites, all others). They keep anybody from
 * filling an inbox by asking in its owner's name: neither another route, process or client address nor a
 * restart gets around them.
 */
export const RECIPIENT_CAPS: readonly MailCap[] = [
  { most: 5, windowMs: 60 * 60 * 1000 },
  { most: 20, windowMs: DAY_MS },
]

export interface BegunMail {
  readonly firstAttemptAt: number
  readonly sentId: string | undefined
}

/**
 * Record of the transactional mails sent, so that a mail requested twice is sent once. A retry has the same bytes,
 * because it keeps the Date header of the first attempt.
 */
export interface SentMailStore {
  /**
   * Notes the first attempt. Gives its time and, if the mail was sent, the provider's id. A mail not begun
   * before is refused if its recipient has reached a cap; the check and the note are one transaction.
   */
  begin(input: {
    readonly key: string
    readonly now: number
    /** A hash of the class of mail and the recipient's mailbox. */
    readonly recipient: string
    readonly caps: readonly MailCap[]
  }): Promise<BegunMail | 'capped'>
  recordSent(input: { readonly key: string; readonly id: string }): Promise<void>
}
