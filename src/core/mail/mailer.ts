import type { Mailbox } from '../address.ts'
import type { CompiledMail } from './template.ts'

export interface Attachment {
  readonly name: string
  /** Media type, as `application/pdf` or `text/calendar; method=REQUEST`. */
  readonly type: string
  readonly content: Buffer
}

/** One complete message. The same `key` always comes with the same bytes (CONTRACT §5, Delivery). */
export interface Message {
  /** Provider idempotency key, ≤ 256 characters of `[A-Za-z0-9._:-]`: stable over attempts. */
  readonly key: string
  /** Without angle brackets; derived from the key. */
  readonly messageId: string
  /** The Date header, to the second: stored with the first attempt, so that a retry has the same bytes. */
  readonly date: Date
  readonly from: Mailbox
  readonly to: Mailbox
  readonly replyTo: Mailbox | undefined
  readonly subject: string
  readonly html: string
  readonly text: string
  /** Further headers (List-Id, List-Unsubscribe …); values hold no CR, LF or NUL. */
  readonly headers: Readonly<Record<string, string>>
  readonly attachments?: readonly Attachment[] | undefined
  /** The template and slots of `html` and `text`: a transport may encode the static parts once and for all. */
  readonly source?: { readonly compiled: CompiledMail; readonly slots: Readonly<Record<string, string>> }
}

/**
 * Outcome of one send. `unknown`: the connection broke after the message was handed over, so it may have been delivered.
 * Of `transient`, after the scope `connection` (421, 429) the run waits up to ten seconds of `retryAfterMs`, or ends;
 * `sender` (401, 422, 5.7.1) may concern us: of lessons and notices, the others decide.
 * `hardBounce`: a dead address (5.1.1).
 */
export type Outcome =
  | { readonly kind: 'sent'; readonly id: string }
  | {
      readonly kind: 'transient'
      readonly reason: string
      readonly scope: 'message' | 'sender' | 'connection'
      readonly retryAfterMs?: number
      /** Of `sender`: perhaps for this recipient alone. */
      readonly isUnclear?: true
    }
  | { readonly kind: 'permanent'; readonly reason: string; readonly hardBounce: boolean }
  | { readonly kind: 'unknown'; readonly reason: string }

/** Waits until what became of a message is stored for good. */
export type WaitUntilRecorded = () => Promise<void>

/** How many messages a transport carries at once. More would only wait inside it. */
export const LINES = { smtp: 20, api: 50 } as const

/** The longest that one attempt may take, from handing over to the last answer; SMTP servers may take ten minutes for it (RFC 5321 §4.5.3.2.6). */
export const PATIENCE_MS = { smtp: 14 * 60_000, api: 55_000 } as const

/** Carries messages to a provider. `send` never rejects: every fault is an outcome. */
export interface Transport {
  /** `smtp`, `api`, `postmark`, `ses`, or the embedding program's own name. Only `api` honors the idempotency key. */
  readonly kind: string
  /** The longest that one attempt may take; default: that of `api`. */
  readonly patienceMs?: number
  /**
   * `recorded` resolves once what became of this message is stored for good, and rejects if that failed; calling it
   * hurries the commit. Where the provider recognizes no repeats, complete no message on a connection before the last
   * one that it took there is recorded: a crash then repeats at most one message for each connection.
   */
  send(message: Message, signal?: AbortSignal, recorded?: WaitUntilRecorded): Promise<Outcome>
  /** Connects and authenticates without sending; rejects with a reason free of secrets. */
  verify(signal?: AbortSignal): Promise<void>
  close(): Promise<void>
}

/** A mail to send, before it is rendered. */
export interface Mail extends Pick<Message, 'to' | 'date' | 'attachments'> {
  readonly template: string
  /** Where it is counted; by its template's definition when left out. */
  readonly stream?: 'confirmation' | 'notice' | 'course'
  /** A language tag: the template's translation is sent if there is one. Default: the platform's language. */
  readonly language?: string | undefined
  /** Compiled mail to fill in and send instead of the platform's template of that name. */
  readonly compiled?: CompiledMail
  readonly slots: Readonly<Record<string, string>>
  /** Replaces the template's name in the key if the template may be renamed between two attempts. */
  readonly label?: string
  /** Unique name of this message (`course.sub_1.2.day-3`): the idempotency key and the Message-ID derive from it. */
  readonly about: string
  /** Of a name that can be guessed, its keyed hash for the Message-ID, which proves that a bounce is about our mail. */
  readonly seal?: string
  /** In place of the configured sender. */
  readonly from?: Mailbox | undefined
  /** In place of any sender and Reply-To: those of an attempt that may have delivered it. */
  readonly sentAs?: Pick<Message, 'from' | 'replyTo'> | undefined
  /** The token in its slots, then what other keys of links in use would make of it. */
  readonly tokens?: () => readonly string[]
  /** Further headers, checked by `checkedHeaders`. */
  readonly headers?: Readonly<Record<string, string>> | undefined
  /** Present on lessons and status notices: becomes List-Unsubscribe and List-Unsubscribe-Post (RFC 8058). */
  readonly unsubscribeUrl?: string
}

/** `not_composed`: the fault is in our own texts, templates or configuration, and no provider was asked. */
export type SendOutcome =
  | Outcome
  | { readonly kind: 'not_configured' | 'not_composed'; readonly reason: string }

/** Why a mail is not sent while no mailer is configured. */
export const NOT_CONFIGURED = 'mail is not configured'
/** Why a message could not be made; only our own errors say it, as any other may quote an address or a slot. */
export const composeFault = (error: unknown): string =>
  error instanceof Error && ['SlotError', 'TemplateError', 'PlatformError'].includes(error.name)
    ? error.message
    : 'the message could not be made'

/** Renders and sends from the configured sender. Never throws; unconfigured it is a no-op that says so. */
export interface Mailer extends Pick<Transport, 'verify' | 'close'> {
  readonly configured: boolean
  /** `smtp`, `api`, `postmark`, `ses`, or the embedding program's own; undefined when not configured. */
  readonly transport: string | undefined
  /** How many messages it carries at once. */
  readonly lines: number
  readonly patienceMs: number
  /** Loads everything that sending needs, without connecting: a file that is missing is found now and not at the first mail. */
  prepare(): Promise<void>
  /** The Message-ID that such a mail has, without angle brackets; undefined when not configured. */
  messageId(mail: Pick<Mail, 'template' | 'label' | 'about' | 'seal' | 'from'>): string | undefined
  /** The complete message; rejects with a SlotError when the slots do not fit the template. */
  compose(mail: Mail): Promise<Message>
  /** Never rejects. `recorded`: see `Transport`. */
  send(mail: Mail, signal?: AbortSignal, recorded?: WaitUntilRecorded): Promise<SendOutcome>
}
