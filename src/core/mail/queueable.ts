import type { Mail, Mailer } from './mailer.ts'
import type { MailPayload, QueuedMail } from './sent-mail.ts'
import type { SuppressingMailer } from './suppressing-mailer.ts'
import { type CompiledMails, mailIn } from './template.ts'

/** Where mails that must not be lost are stored to be sent. */
export interface MailQueue extends Pick<SuppressingMailer, 'refusal'> {
  /** Starts sending what is stored. */
  readonly wake: () => void
}

/** The largest mail that is queued, as it is stored. */
const LARGEST_BYTES = 1_000_000

/**
 * A mail as it is stored, or why it cannot be sent: its slots do not fit its template, its recipient is suppressed, or
 * it is too large. With a `record`, as for sign-in, its slots are not stored.
 */
export async function queueable(
  { record, ...mail }: Mail & { readonly record?: MailPayload['record'] | undefined },
  {
    mailer,
    refusal,
    compiled,
    isStored = true,
  }: Pick<MailQueue, 'refusal'> & {
    readonly mailer: Mailer
    readonly compiled: () => Promise<CompiledMails>
    /** False: it is checked, and sent at once. */
    readonly isStored?: boolean
  },
): Promise<QueuedMail | string> {
  const refused = await refusal(mail)
  if (refused && refused.kind !== 'sent') return refused.reason
  const { template, language, slots, to, about, from, headers, attachments } = mail
  const pinned = mailIn(await compiled(), template, language)
  if (pinned === undefined) return 'there is no such template'
  try {
    await mailer.compose({ ...mail, compiled: pinned })
  } catch (error) {
    return error instanceof Error && error.name === 'SlotError'
      ? error.message
      : 'the message could not be made'
  }
  const payload: MailPayload = {
    template,
    about,
    compiled: pinned,
    name: to.name,
    from,
    headers,
    attachments: attachments?.map((one) => ({ ...one, content: one.content.toString('base64') })),
    ...(record ? { record } : { slots }),
  }
  const stored = isStored ? JSON.stringify(payload) : ''
  if (Buffer.byteLength(stored) > LARGEST_BYTES) return 'the mail is larger than 1 MB: link to what it brings'
  return { stream: record ? 'sign-in' : 'mail', address: to.address, payload: stored }
}
