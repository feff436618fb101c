import { parseMailbox } from '../address.ts'
import type { Clock } from '../host.ts'
import type { MailAnswer, MailSet } from './definition.ts'
import { type Held, heldReason, streamOf } from './holds.ts'
import { composeFault, type Mail, type Mailer, NOT_CONFIGURED } from './mailer.ts'
import { type KeptMail, notSent, sendOnce } from './send-once.ts'

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
   * Answers as soon as the mail is stored: it is sent even if the process ends or the provider is down, for up to
   * three days. Without a persistent store, it is sent at once.
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
  held: Held = async () => undefined,
  /** A store that outlives the process. */
  kept: () => Promise<KeptMail | undefined> = async () => undefined,
): SendEmail {
  const { compiled } = mails
  /** The last call under each key: the next one waits to hear whether the mail was sent. */
  const calls = new Map<string, Promise<unknown>>()
  async function answer(input: SendEmailInput): Promise<MailAnswer> {
    const { template, to, language, slots, key, about = key, date, durable = false } = input
    if (!Object.hasOwn(await compiled(), template)) return notSent('there is no such template')
    if (typeof about !== 'string' || !about.trim()) return notSent('a mail needs a key of its own')
    // Callers without types give what they have.
    const parsed = parseMailbox(String(to))
    if (!parsed.ok) return notSent(parsed.reason)
    if (language !== undefined && typeof language !== 'string')
      return notSent('the language is a tag, such as de')
    if (date !== undefined && Number.isNaN(+date)) return notSent('the date is not a valid Date')
    const parts = readMailParts(input)
    if (typeof parts === 'string') return notSent(parts)
    const { allowance, lesson } = mails.definitions.find(({ name }) => name === template) ?? {}
    const mail = {
      ...parts,
      template,
      slots,
      to: parsed.mailbox,
      about,
      date: date ?? new Date(clock.now()),
      ...(language !== undefined && { language }),
      // As its subscribers get it.
      ...(lesson && slots.unsubscribeUrl !== undefined && { unsubscribeUrl: slots.unsubscribeUrl }),
    }
    if (!mailer.configured) return notSent(NOT_CONFIGURED)
    const store = await kept().catch(() => 'unavailable' as const)
    if (store === 'unavailable' && durable) return notSent(NOT_STORED)
    // What is queued waits; what is sent at once cannot.
    const hold = store && durable ? undefined : await held(streamOf(mails.definitions, template))
    if (hold) return notSent(heldReason(hold))
    const isStored = store !== undefined && durable
    if (isStored && allowance === 'sign-in') return notSent(SIGN_IN)
    const send = () =>
      sendOnce({ mailer, compiled }, store === 'unavailable' ? undefined : store, mail, {
        key: `key ${about}`,
        now: clock.now(),
        identity: parsed.identity,
        // What a program sends at once has no cap, and counts toward none.
        allowance: isStored ? allowance : 'program',
        isStored,
        date,
      })
    const sending = (calls.get(about) ?? Promise.resolve()).then(send)
    const settled = sending.catch(() => {})
    calls.set(about, settled)
    void settled.then(() => calls.get(about) === settled && calls.delete(about))
    return isStored ? sending.catch(() => notSent(NOT_STORED)) : sending
  }

  return async (input) => {
    const answered = await answer(input).catch((error) => notSent(composeFault(error)))
    if (answered.kind === 'sent')
      return { sent: true, id: answered.id, ...(answered.queued && { queued: true }) }
    if (answered.kind === 'not_sent') return { sent: false, reason: answered.reason }
    return { sent: false, reason: CONFLICT, code: 'conflict' }
  }
}

/** A file to attach, as code gives it. */
export interface AttachmentInput {
  /** File name, without a path. */
  readonly name: string
  /** Media type, as `application/pdf`. */
  readonly type: string
  /** Bytes, or text to write in UTF-8. */
  readonly content: Uint8Array | string
}

/** What code may add to one mail. */
export interface MailParts {
  /** Sender in place of MAILER_FROM; the provider has to know it. */
  readonly from?: string
  /** Further headers, as `X-PM-Message-Stream`. Those that carry or sign the mail are not yours to set. */
  readonly headers?: Readonly<Record<string, string>>
  /** At most 20, of 7 MB together. */
  readonly attachments?: readonly AttachmentInput[]
}

const MOST = 20
const LARGEST_BYTES = 7_000_000
const LONGEST_NAME = 200
const LONGEST_VALUE = 900

/** Fields that the engine writes, that name other recipients, or that servers add on the way. */
const RESERVED =
  /^(?:from|sender|to|cc|bcc|reply-to|subject|date|message-id|return-path|errors-to|mime-version|content-.*|resent-.*|received.*|dkim-.*|domainkey-.*|arc-.*|authentication-results|auto-submitted|feedback-id|list-.*|x-smtpapi|.*-b?cc|x-pm-keepid)$/i
const FIELD_NAME = /^[A-Za-z][A-Za-z0-9-]{0,75}$/
const FIELD_VALUE = new RegExp(`^[\\x20-\\x7e]{1,${LONGEST_VALUE}}$`)
/** A media type with simple parameters (RFC 2045 §5.1). Those of parts and messages are not sent in base64. */
const MEDIA_TYPE =
  /^(?!multipart|message)[\w!#$&^.+-]{1,60}\/[\w!#$&^.+-]{1,80}(?:; ?[\w-]{1,30}=[\w.+-]{1,60}){0,4}$/i
/** Separators of paths, control characters, and characters that turn the direction of text. */
const UNSAFE_IN_NAME = /[/\\\p{Cc}\u200e\u200f\u202a-\u202e\u2066-\u2069]/u

/** Reads what is added to a mail; a text says why it cannot be. Callers without types give what they have. */
function readMailParts(parts: MailParts): Pick<Mail, 'from' | 'headers' | 'attachments'> | string {
  const { from, headers = {}, attachments = [] } = parts
  const sender = from === undefined ? undefined : parseMailbox(String(from))
  if (sender?.ok === false) return `from: ${sender.reason}`
  const fault = headerFault(headers) ?? attachmentFault(attachments)
  if (fault !== undefined) return fault
  const files = attachments.map(({ name, type, content }) => ({
    name,
    type,
    content: typeof content === 'string' ? Buffer.from(content, 'utf8') : Buffer.from(content),
  }))
  if (files.reduce((all, { content }) => all + content.length, 0) > LARGEST_BYTES)
    return 'the attachments are larger than 7 MB together: link to them instead'
  return {
    ...(sender && { from: sender.mailbox }),
    ...(Object.keys(headers).length > 0 && { headers: { ...headers } }),
    ...(files.length > 0 && { attachments: files }),
  }
}

function headerFault(headers: Readonly<Record<string, string>>): string | undefined {
  const entries: [string, unknown][] = Object.entries(headers)
  if (entries.length > MOST) return `a mail has at most ${MOST} headers of its own`
  for (const [name, value] of entries) {
    if (!FIELD_NAME.test(name)) return 'the name of a header has letters, digits and hyphens, at most 76'
    if (RESERVED.test(name))
      return `the header ${name} cannot be set: it is written for every mail, or misdirects it`
    if (typeof value !== 'string' || !FIELD_VALUE.test(value))
      return `the value of the header ${name} is not one line of at most ${LONGEST_VALUE} printable ASCII characters`
  }
  return undefined
}

function attachmentFault(attachments: readonly AttachmentInput[]): string | undefined {
  if (attachments.length > MOST) return `a mail has at most ${MOST} attachments`
  const isName = (name: unknown) =>
    typeof name === 'string' && !/^\s*$|^\.+$/.test(name) && name.isWellFormed() && !UNSAFE_IN_NAME.test(name)
  for (const { name, type, content } of attachments) {
    if (!isName(name) || name.length > LONGEST_NAME)
      return `the name of an attachment is a file name of at most ${LONGEST_NAME} characters, without a path`
    if (typeof type !== 'string' || !MEDIA_TYPE.test(type))
      return 'the type of an attachment is a media type, as application/pdf'
    if (typeof content !== 'string' && !(content instanceof Uint8Array))
      return 'the content of an attachment is text or bytes'
  }
  return undefined
}
