import { parseMailbox } from '../address.ts'
import type { Clock } from '../clock.ts'
import type { Random } from '../random.ts'
import type { MailAnswer, MailSet } from './definition.ts'
import { type Held, heldReason, streamOf } from './holds.ts'
import { type MailParts, readMailParts } from './mail-parts.ts'
import type { Mailer } from './mailer.ts'
import { type KeptMail, NOT_MADE, notSent, sendOnce } from './send-once.ts'
import { RECIPIENT_CAPS } from './sent-mail.ts'

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
  /**
   * Answers as soon as the mail is stored: it is sent even if the process ends or the provider is down for a day. Without
   * a persistent store, it is sent at once.
   */
  readonly durable?: boolean
}

export interface SendsMail<Templates = unknown> {
  /** As `sendEmail`, with names and slots typed by the definition and by what `platformctl email types` writes. */
  send<const Name extends MailName<Templates>>(
    template: Name,
    mail: MailToSend<MailSlots<Templates, Name>>,
  ): Promise<SendEmailResult>
}

export interface SendEmailInput extends MailToSend {
  readonly template: string
  /** Another name for `key`. One of them is needed. */
  readonly about?: string
  /** The Date header; give the first attempt's with a retry, and the message has the same bytes. Default: now. */
  readonly date?: Date
}

export type SendEmailResult =
  /** `queued`: it is stored, and will be sent; the id is its Message-ID. */
  | { readonly sent: true; readonly id: string; readonly queued?: true }
  /** `conflict`: a mail with another content was sent under this key. */
  | { readonly sent: false; readonly reason: string; readonly code?: 'conflict' }

export type SendEmail = (input: SendEmailInput) => Promise<SendEmailResult>

const NOT_STORED = 'the mail could not be stored now; try again later'
const CONFLICT =
  'another mail was sent under this key: a key never sends two different contents, so give this mail its own'
const SIGN_IN =
  'a sign-in mail is queued by POST /api/email, which names its record: send this one without `durable`'

/** `sendEmail` of CONTRACT §8: whatever goes wrong, in the input, the template or the transport, is a reason. */
export function createSendEmail(
  mailer: Mailer,
  clock: Clock,
  mails: Pick<MailSet, 'definitions' | 'compiled'>,
  {
    held = async () => undefined,
    kept = async () => undefined,
  }: {
    readonly held?: Held
    /** A store that outlives the process. */
    readonly kept?: () => Promise<KeptMail | undefined>
  } = {},
): SendEmail {
  const { compiled } = mails
  async function answer(input: SendEmailInput): Promise<MailAnswer> {
    const { template, to, language, slots, key, about = key, date, durable = false } = input
    if (!Object.hasOwn(await compiled(), template)) return notSent('there is no such template')
    if (typeof about !== 'string') return notSent('a mail needs a key that no other mail has')
    // Callers without types give what they have.
    const parsed = parseMailbox(String(to))
    if (!parsed.ok) return notSent(parsed.reason)
    const parts = readMailParts(input)
    if (typeof parts === 'string') return notSent(parts)
    const now = clock.now()
    const mail = {
      ...parts,
      template,
      ...(language !== undefined && { language }),
      slots,
      to: parsed.mailbox,
      about,
      date: date ?? new Date(now),
    }
    if (!mailer.configured) return notSent(mailer.reason ?? NOT_MADE)
    const store = await kept().catch(() => 'unavailable' as const)
    if (store === 'unavailable' && durable) return notSent(NOT_STORED)
    // What is queued waits; what is sent at once cannot.
    const hold = store && durable ? undefined : await held(streamOf(mails.definitions, template))
    if (hold) return notSent(heldReason(hold))
    const allowance = mails.definitions.find(({ name }) => name === template)?.allowance
    const isStored = store !== undefined && durable
    if (isStored && allowance === 'sign-in') return notSent(SIGN_IN)
    const sending = sendOnce({ mailer, compiled }, store === 'unavailable' ? undefined : store, mail, {
      key: `key ${about}`,
      now,
      identity: parsed.identity,
      // What a program sends at once has no cap, and counts toward none.
      allowance: isStored ? allowance : 'program',
      caps: isStored ? RECIPIENT_CAPS : [],
      isStored,
      date,
    })
    return isStored ? sending.catch(() => notSent(NOT_STORED)) : sending
  }

  return async (input) => {
    const answered = await answer(input).catch(() => notSent(NOT_MADE))
    switch (answered.kind) {
      case 'sent':
        return { sent: true, id: answered.id, ...(answered.queued && { queued: true }) }
      case 'not_sent':
        return { sent: false, reason: answered.reason }
      default:
        return { sent: false, reason: CONFLICT, code: 'conflict' }
    }
  }
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
