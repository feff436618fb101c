import type { Random } from '../random.ts'
import type { MailParts } from './mail-parts.ts'
import type { SendEmail, SendEmailResult } from './send-email.ts'

declare global {
  /** Your mails and their slots: `platformctl email types` writes the declaration that fills it. */
  interface PlatformMails {}
}

type Declared<Templates> = (keyof PlatformMails | keyof Templates) & string

/** The names that mails have; any text while nothing declares the mails of the folder. */
export type MailName<Templates> = [keyof PlatformMails] extends [never]
  ? Declared<Templates> | (string & {})
  : Declared<Templates>

type AnySlots = Readonly<Record<string, string>>

/** The values that a mail is filled with; `Templates` are those of the definition. */
export type MailSlots<Templates, Name> = Name extends keyof PlatformMails
  ? PlatformMails[Name]
  : Name extends keyof Templates
    ? Templates[Name] extends { readonly slots: infer Slots }
      ? { readonly [Slot in keyof Slots]: string }
      : AnySlots
    : AnySlots

export interface MailToSend<Slots = AnySlots> extends MailParts {
  /** One address, with or without a display name. */
  readonly to: string
  readonly slots: Slots
  /** A language tag: the template's translation is sent if there is one. Default: the platform's. */
  readonly language?: string
  /** Unique name of the mail: the same value never sends two different mails. Default: a new one for each call. */
  readonly key?: string
  /** Answers as soon as the mail is stored: it is sent even if the process ends or the provider is down for a day. */
  readonly durable?: boolean
}

export interface SendsMail<Templates = unknown> {
  /** As `sendEmail`, with names and slots typed by the definition and by what `platformctl email types` writes. */
  send<const Name extends MailName<Templates>>(
    template: Name,
    mail: MailToSend<MailSlots<Templates, Name>>,
  ): Promise<SendEmailResult>
}

export function createSendMail(sendEmail: SendEmail, random: Random): SendsMail {
  return {
    // Callers without types may leave the second argument out; what is missing is then a reason.
    send: (template, mail) =>
      sendEmail({
        ...mail,
        template,
        about: mail?.key ?? Buffer.from(random.bytes(18)).toString('base64url'),
      }),
  }
}
