import { DAY_MS } from '../durations.ts'
/** At most this many different mails to one recipient in this time. */
export interface MailCap {
  readonly most: number
  readonly windowMs: number
}

/**
 * For each class of transactional mail (sign-in, invites, all others): somebody who asks in another's name fills no inbox, whichever route, process or
 * client address they use, and a restart forgets nothing.
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
 * Which transactional mails were sent. Asked for twice, a mail is sent once; tried again, it has the same bytes,
 * because the Date header is that of the first attempt.
 */
export interface SentMailStore {
  /**
   * Notes the first attempt, and says when that was and (when it was sent) under which id. A mail that was not begun
   * before is refused when its recipient has had enough by one of the caps; looked at and noted in one transaction.
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
