/**
 * Which transactional mails were sent. Asked for twice, a mail is sent once; tried again, it has the same bytes,
 * because the Date header is that of the first attempt.
 */
export interface SentMailStore {
  /** Notes the first attempt, and says when that was and (when it was sent) under which id. */
  begin(input: {
    readonly key: string
    readonly now: number
  }): Promise<{ readonly firstAttemptAt: number; readonly sentId: string | undefined }>
  recordSent(input: { readonly key: string; readonly id: string }): Promise<void>
}
