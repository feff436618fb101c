import type { Mailbox } from '../address.ts'
import type { CompiledMail } from './template.ts'
import type { Attachment, Message, Outcome, WaitUntilRecorded } from './transport.ts'

/** A mail to send, before it is rendered. */
export interface Mail {
  readonly template: string
  /** Where it is counted; by its template's definition when left out. */
  readonly stream?: 'confirmation' | 'notice' | 'course'
  /** A language tag: the template's translation is sent if there is one. Default: the platform's language. */
  readonly language?: string | undefined
  /** Compiled mail to fill in and send instead of the platform's template of that name. */
  readonly compiled?: CompiledMail
  readonly slots: Readonly<Record<string, string>>
  readonly to: Mailbox
  /** Replaces the template's name in the key if the template may be renamed between two attempts. */
  readonly label?: string
  /** Unique name of this message (`course.sub_1.2.day-3`): the idempotency key and the Message-ID derive from it. */
  readonly about: string
  /** The Date header, to the second: stored with the first attempt, so that a retry has the same bytes. */
  readonly date: Date
  /** In place of the configured sender. */
  readonly from?: Mailbox | undefined
  /** Further headers, checked by `checkedHeaders`. */
  readonly headers?: Readonly<Record<string, string>> | undefined
  readonly attachments?: readonly Attachment[] | undefined
  /** Present on course mail: becomes List-Unsubscribe and List-Unsubscribe-Post (RFC 8058). */
  readonly unsubscribeUrl?: string
}

/** `not_composed`: the fault is in our own texts, templates or configuration, and no provider was asked. */
export type SendOutcome =
  | Outcome
  | { readonly kind: 'not_configured'; readonly reason: string }
  | { readonly kind: 'not_composed'; readonly reason: string }

/** Renders and sends from the configured sender. Never throws; unconfigured it is a no-op that says so. */
export interface Mailer {
  readonly configured: boolean
  /** Why not, when not configured. */
  readonly reason: string | undefined
  /** `smtp`, `api`, `postmark`, `ses`, or the embedding program's own; undefined when not configured. */
  readonly transport: string | undefined
  /** How many messages it carries at once. */
  readonly lines: number
  /** The longest that one attempt may take. */
  readonly patienceMs: number
  /** Loads everything that sending needs, without connecting: a file that is missing is found now and not at the first mail. */
  prepare(): Promise<void>
  /** The Message-ID that such a mail has, without angle brackets; undefined when not configured. */
  messageId(mail: Pick<Mail, 'template' | 'label' | 'about' | 'from'>): string | undefined
  /** The complete message; rejects with a SlotError when the slots do not fit the template. */
  compose(mail: Mail): Promise<Message>
  /** Never rejects. `recorded`: see `Transport`. */
  send(mail: Mail, signal?: AbortSignal, recorded?: WaitUntilRecorded): Promise<SendOutcome>
  /** Connects and authenticates without sending; rejects with a reason free of secrets. */
  verify(signal?: AbortSignal): Promise<void>
  close(): Promise<void>
}
