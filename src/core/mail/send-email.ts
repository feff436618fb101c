import { parseMailbox } from '../address.ts'
import type { Clock } from '../clock.ts'
import { type Hold, heldReason } from './holds.ts'
import type { Mailer } from './mailer.ts'
import type { CompiledMails } from './template.ts'

export interface SendEmailInput {
  readonly template: string
  /** One address, with or without a display name. */
  readonly to: string
  readonly slots: Readonly<Record<string, string>>
  /** Unique name of the mail: the same value never sends two different mails (it becomes the idempotency key). */
  readonly about: string
  /** The Date header; give the first attempt's with a retry, and the message has the same bytes. Default: now. */
  readonly date?: Date
}

export type SendEmailResult =
  | { readonly sent: true; readonly id: string }
  | { readonly sent: false; readonly reason: string }

export type SendEmail = (input: SendEmailInput) => Promise<SendEmailResult>

/** `sendEmail` of CONTRACT §8: whatever goes wrong, in the input, the template or the transport, is a reason. */
export function createSendEmail(
  mailer: Mailer,
  clock: Clock,
  compiled: () => Promise<CompiledMails>,
  /** The hold on mails of a template. */
  heldOf: (template: string) => Promise<Hold | undefined> = async () => undefined,
): SendEmail {
  return async (input) => {
    try {
      const { template, to, slots, about, date } = input
      if (!Object.hasOwn(await compiled(), template))
        return { sent: false, reason: 'there is no such template' }
      // Callers without types give what they have.
      const parsed = parseMailbox(String(to))
      if (!parsed.ok) return { sent: false, reason: parsed.reason }
      const hold = mailer.configured ? await heldOf(template) : undefined
      if (hold) return { sent: false, reason: heldReason(hold) }
      const outcome = await mailer.send({
        template,
        slots,
        to: parsed.mailbox,
        about,
        date: date ?? new Date(clock.now()),
      })
      return outcome.kind === 'sent'
        ? { sent: true, id: outcome.id }
        : { sent: false, reason: outcome.reason }
    } catch {
      // The error may quote an address or a slot, so it is not passed on.
      return { sent: false, reason: 'the message could not be made' }
    }
  }
}
