import { createHmac, hash } from 'node:crypto'
import type { Identity } from '../access/identity.ts'
import { mailboxKey } from '../address.ts'
import { DAY_MS } from '../durations.ts'
import type { Mail } from './mailer.ts'
import type { CompiledMail } from './template.ts'
import type { Attachment } from './transport.ts'

/** At most `most` different mails to one recipient within `windowMs`. */
export interface MailCap {
  readonly most: number
  readonly windowMs: number
}

/**
 * The caps for each class of transactional mail (sign-in, invites, all others). They keep anybody from
 * filling an inbox by asking in its owner's name: neither another route, process or client address nor a
 * restart gets around them.
 */
export const RECIPIENT_CAPS: readonly MailCap[] = [
  { most: 5, windowMs: 60 * 60 * 1000 },
  { most: 20, windowMs: DAY_MS },
]

/** A mail to store for the engine to send. */
export interface QueuedMail {
  readonly stream: 'sign-in' | 'mail'
  readonly address: string
  /** A `MailPayload` as JSON. */
  readonly payload: string
}

/**
 * What composes a queued mail. It has the template as it was, so that every attempt has the same bytes. A sign-in mail
 * names its record in place of slots: its link is not stored a second time.
 */
export interface MailPayload extends Pick<Mail, 'template' | 'about' | 'from' | 'headers'> {
  readonly compiled: CompiledMail
  readonly name?: string | undefined
  readonly slots?: Mail['slots']
  /** Contents in base64. */
  readonly attachments?: readonly (Omit<Attachment, 'content'> & { readonly content: string })[] | undefined
  readonly record?: { readonly asker: Identity; readonly inputs: Readonly<Record<string, string>> }
}

export interface BegunMail {
  readonly firstAttemptAt: number
  readonly sentId: string | undefined
}

/**
 * Record of the transactional mails sent, so that a mail requested twice is sent once. A retry has the same bytes,
 * because it keeps the Date header of the first attempt.
 */
export interface SentMailStore {
  /**
   * Notes the first attempt. Gives its time and, if the mail was sent, the provider's id. A mail not begun before is
   * refused if its recipient has reached a cap, and one under a known key if its content is another. The checks, the
   * note and the queued mail are one transaction; a mail that is queued already stays as it is.
   */
  begin(input: {
    readonly key: string
    readonly now: number
    /** A hash of the class of mail and the recipient's mailbox. */
    readonly recipient: string
    readonly caps: readonly MailCap[]
    /** A hash of the content; a note of an earlier build has none, and takes the first. */
    readonly content: string
    /** To be sent by the engine; undefined: the caller sends it. */
    readonly mail?: QueuedMail | undefined
  }): Promise<BegunMail | 'capped' | 'conflict'>
  recordSent(input: { readonly key: string; readonly id: string }): Promise<void>
}

/**
 * Each class of mail has its own limit, so that mail which strangers request never keeps a person from
 * signing in. `program` has none: it is what the platform's own code sends at once.
 */
const ALLOWANCES = ['sign-in', 'invite', 'other', 'program'] as const

/** The limit per recipient that a mail counts toward. */
export type Allowance = (typeof ALLOWANCES)[number]

/**
 * The keyed hash under which mail to a mailbox is counted: the address is not kept, and nobody without the
 * key can test a list of addresses against it.
 */
export function recipientHash(key: string, identity: string, allowance: Allowance = 'other'): string {
  return keyedHash(key, `recipient:${allowance} ${mailboxKey(identity)}`)
}

/** All hashes under which mail to an address is counted. Its erasure deletes them. */
export function recipientHashes(key: string, identity: string): readonly string[] {
  return ALLOWANCES.map((allowance) => recipientHash(key, identity, allowance))
}

/** A keyed hash of what a mail says to whom: neither is kept, and nobody without the key can test a guess. */
export function contentHash(key: string, identity: string, mail: Mail): string {
  const { template, language = '', slots, attachments = [] } = mail
  const sorted = Object.entries(slots).toSorted(([a], [b]) => (a < b ? -1 : 1))
  const files = attachments.map(({ name, type, content }) => [name, type, hash('sha256', content, 'base64')])
  return keyedHash(key, JSON.stringify([template, identity, language, sorted, ...files]))
}

const keyedHash = (key: string, text: string) => createHmac('sha256', key).update(text).digest('base64url')
