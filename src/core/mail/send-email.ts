import { createHash } from 'node:crypto'
import { parseMailbox } from '../address.ts'
import type { Clock } from '../clock.ts'
import { type Hold, heldReason } from './holds.ts'
import { type MailParts, readMailParts } from './mail-parts.ts'
import type { Mail, Mailer } from './mailer.ts'
import { type MailQueue, queueable } from './queueable.ts'
import { type Allowance, recipientHash } from './recipient.ts'
import { CAPPED, contentHash, RECIPIENT_CAPS, type SentMailStore } from './sent-mail.ts'
import type { CompiledMails } from './template.ts'

export interface SendEmailInput extends MailParts {
  readonly template: string
  /** One address, with or without a display name. */
  readonly to: string
  /** A language tag: the template's translation is sent if there is one. Default: the platform's. */
  readonly language?: string
  readonly slots: Readonly<Record<string, string>>
  /** Unique name of the mail: the same value never sends two different mails (it becomes the idempotency key). */
  readonly about?: string
  /** Another name for `about`. One of them is needed. */
  readonly key?: string
  /**
   * Answers as soon as the mail is stored: it is sent even if the process ends or the provider is down for a day. Without
   * a persistent store, it is sent at once.
   */
  readonly durable?: boolean
  /** The Date header; give the first attempt's with a retry, and the message has the same bytes. Default: now. */
  readonly date?: Date
}

export type SendEmailResult =
  /** `queued`: it is stored, and will be sent; the id is its Message-ID. */
  | { readonly sent: true; readonly id: string; readonly queued?: true }
  /** `conflict`: a mail with another content was sent under this key. */
  | { readonly sent: false; readonly reason: string; readonly code?: 'conflict' }

export type SendEmail = (input: SendEmailInput) => Promise<SendEmailResult>

/** What a store that outlives the process knows of mails. */
export interface KeptMail extends MailQueue {
  readonly sentMail: SentMailStore
  /** Hashes recipients and contents. */
  readonly addressKey: string
  readonly allowanceOf: (template: string) => Allowance | undefined
}

/** The reason of whatever is not to be quoted: an error may hold an address or a slot. */
const NOT_MADE = 'the message could not be made'
const NOT_STORED = 'the mail could not be stored now; try again later'
const CONFLICT =
  'another mail was sent under this key: a key never sends two different contents, so give this mail its own'
const SIGN_IN =
  'a sign-in mail is queued by POST /api/email, which names its record: send this one without `durable`'

/** `sendEmail` of CONTRACT §8: whatever goes wrong, in the input, the template or the transport, is a reason. */
export function createSendEmail(
  mailer: Mailer,
  clock: Clock,
  compiled: () => Promise<CompiledMails>,
  {
    heldOf = async () => undefined,
    kept = async () => undefined,
  }: {
    /** The hold on mails of a template. */
    readonly heldOf?: (template: string) => Promise<Hold | undefined>
    readonly kept?: () => Promise<KeptMail | undefined>
  } = {},
): SendEmail {
  const notSent = (reason: string) => ({ sent: false, reason }) as const

  async function sendNow(mail: Mail): Promise<SendEmailResult> {
    const outcome = await mailer.send(mail)
    return outcome.kind === 'sent' ? { sent: true, id: outcome.id } : notSent(outcome.reason)
  }

  async function sendKept(
    mail: Mail,
    { queue, identity, date }: { queue: KeptMail; identity: string; date: Date | undefined },
    durable: boolean,
  ): Promise<SendEmailResult> {
    const { sentMail, addressKey, allowanceOf } = queue
    const allowance = allowanceOf(mail.template)
    if (durable && allowance === 'sign-in') return notSent(SIGN_IN)
    const ready = await queueable(mail, { mailer, refusal: queue.refusal, compiled, isStored: durable })
    if (typeof ready === 'string') return notSent(ready)
    const key = createHash('sha256').update(`key ${mail.about}`).digest('base64url')
    const noted = sentMail.begin({
      key,
      now: clock.now(),
      // What a program sends at once has no cap, and counts toward none.
      recipient: recipientHash({ key: addressKey, identity, allowance: durable ? allowance : 'program' }),
      caps: durable ? RECIPIENT_CAPS : [],
      content: contentHash(addressKey, { ...mail, identity }),
      mail: durable ? ready : undefined,
    })
    const begun = await noted.catch(() => undefined)
    if (begun === undefined) return durable ? notSent(NOT_STORED) : sendNow(mail)
    if (begun === 'capped') return notSent(CAPPED)
    if (begun === 'conflict') return { sent: false, reason: CONFLICT, code: 'conflict' }
    if (begun.sentId !== undefined) return { sent: true, id: begun.sentId }
    if (durable) {
      queue.wake()
      return { sent: true, id: mailer.messageId(mail) ?? key, queued: true }
    }
    const result = await sendNow({ ...mail, date: date ?? new Date(begun.firstAttemptAt) })
    // What was sent is sent, even if that cannot be noted.
    if (result.sent) await sentMail.recordSent({ key, id: result.id }).catch(() => {})
    return result
  }

  return async (input) => {
    try {
      const { template, to, language, slots, key, about = key, date, durable = false } = input
      if (!Object.hasOwn(await compiled(), template)) return notSent('there is no such template')
      if (typeof about !== 'string') return notSent('a mail needs a key that no other mail has')
      // Callers without types give what they have.
      const parsed = parseMailbox(String(to))
      if (!parsed.ok) return notSent(parsed.reason)
      const parts = readMailParts(input)
      if (typeof parts === 'string') return notSent(parts)
      const mail = {
        ...parts,
        template,
        ...(language !== undefined && { language }),
        slots,
        to: parsed.mailbox,
        about,
        date: date ?? new Date(clock.now()),
      }
      if (!mailer.configured) return notSent(mailer.reason ?? NOT_MADE)
      const queue = await kept().catch(() => 'unavailable' as const)
      if (queue === 'unavailable' && durable) return notSent(NOT_STORED)
      // What is queued waits; what is sent at once cannot.
      const hold = queue && durable ? undefined : await heldOf(template)
      if (hold) return notSent(heldReason(hold))
      return await (queue === undefined || queue === 'unavailable'
        ? sendNow(mail)
        : sendKept(mail, { queue, identity: parsed.identity, date }, durable))
    } catch {
      return notSent(NOT_MADE)
    }
  }
}
