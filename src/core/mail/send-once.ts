import { hash } from 'node:crypto'
import type { MailAnswer } from './definition.ts'
import type { Mail, Mailer, SendOutcome } from './mailer.ts'
import {
  type Allowance,
  contentHash,
  type MailCap,
  type MailPayload,
  type QueuedMail,
  recipientHash,
  type SentMailStore,
} from './sent-mail.ts'
import type { SuppressingMailer } from './suppressing-mailer.ts'
import { type CompiledMails, mailIn } from './template.ts'

/** Where mails that must not be lost are stored to be sent. */
export interface MailQueue extends Pick<SuppressingMailer, 'refusal'> {
  /** Starts sending what is stored. */
  readonly wake: () => void
}

/** A store of mails that were asked for. */
export interface KeptMail {
  readonly sentMail: SentMailStore
  /** Hashes recipients and contents. */
  readonly addressKey: string
  /** Undefined where the store ends with the process. */
  readonly queue: MailQueue | undefined
}

/** The largest mail that is queued, as it is stored. */
const LARGEST_BYTES = 1_000_000
/** The reason of whatever is not to be quoted: an error may hold an address or a slot. */
export const NOT_MADE = 'the message could not be made'

/**
 * Sends a mail that a program or a person asks for, at most once under its key: stored first, to be sent for certain,
 * or at once. Lessons, confirmations and alerts are rows of the engine and do not pass here.
 */
export async function sendOnce(
  { mailer, compiled }: { readonly mailer: Mailer; readonly compiled: () => Promise<CompiledMails> },
  kept: KeptMail | undefined,
  mail: Mail,
  how: {
    readonly key: string
    readonly now: number
    /** The recipient's, for its caps. */
    readonly identity: string
    readonly allowance: Allowance | undefined
    readonly caps: readonly MailCap[]
    readonly isStored: boolean
    /** For sign-in: its slots are not stored, but resolved again. */
    readonly record?: MailPayload['record'] | undefined
    /** The Date header of a repeat. */
    readonly date?: Date | undefined
  },
): Promise<MailAnswer> {
  if (kept === undefined) return answerOf(await mailer.send(mail))
  const { now, identity, isStored, record } = how
  const { sentMail, addressKey, queue } = kept
  // A hash, so that subjects and ids of records are not stored a second time.
  const key = hash('sha256', how.key, 'base64url')
  const ready = queue && (await queueable(mail, record))
  if (typeof ready === 'string') return notSent(ready)
  const noted = sentMail.begin({
    key,
    now,
    recipient: recipientHash(addressKey, identity, how.allowance),
    caps: how.caps,
    content: contentHash(addressKey, identity, mail),
    mail: isStored ? ready : undefined,
  })
  const begun = await noted.catch((error: unknown) => {
    // A store that fails keeps no mail from being sent at once.
    if (isStored) throw error
    return { firstAttemptAt: now, sentId: undefined }
  })
  if (begun === 'capped') return notSent('this recipient has had enough mail for now; try again later')
  if (begun === 'conflict') return { kind: 'conflict' }
  if (begun.sentId !== undefined) return { kind: 'sent', id: begun.sentId }
  if (queue && isStored) {
    queue.wake()
    return { kind: 'sent', id: mailer.messageId(mail) ?? key, queued: true }
  }
  const answer = answerOf(await mailer.send({ ...mail, date: how.date ?? new Date(begun.firstAttemptAt) }))
  // What was sent is sent, even if that cannot be noted.
  if (answer.kind === 'sent') await sentMail.recordSent({ key, id: answer.id }).catch(() => {})
  return answer

  /** The mail as it is stored, or why it cannot be sent. */
  async function queueable(mail: Mail, record: MailPayload['record']): Promise<QueuedMail | string> {
    const refused = await queue?.refusal(mail)
    if (refused && refused.kind !== 'sent') return refused.reason
    const { template, language, about, to, from, headers, attachments, slots } = mail
    const pinned = mailIn(await compiled(), template, language)
    if (pinned === undefined) return 'there is no such template'
    try {
      await mailer.compose({ ...mail, compiled: pinned })
    } catch (error) {
      return error instanceof Error && error.name === 'SlotError' ? error.message : NOT_MADE
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
    if (Buffer.byteLength(stored) > LARGEST_BYTES)
      return 'the mail is larger than 1 MB: link to what it brings'
    return { stream: record ? 'sign-in' : 'mail', address: to.address, payload: stored }
  }
}

const answerOf = (outcome: SendOutcome): MailAnswer =>
  outcome.kind === 'sent' ? { kind: 'sent', id: outcome.id } : notSent(outcome.reason)

export const notSent = (reason: string) => ({ kind: 'not_sent', reason }) as const
