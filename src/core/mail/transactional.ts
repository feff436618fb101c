import { createHash } from 'node:crypto'
import type { Identity } from '../access/identity.ts'
import { type Mailbox, parseAddress } from '../address.ts'
import type { Clock } from '../clock.ts'
import type { Secret } from '../secret.ts'
import type { MailAnswer, MailContext, MailResolution, MailSet } from './definition.ts'
import type { Directory } from './directory.ts'
import { type Held, heldReason, streamOf } from './holds.ts'
import type { Mail, Mailer } from './mailer.ts'
import { type MailQueue, queueable } from './queueable.ts'
import { recipientHash } from './recipient.ts'
import { CAPPED, contentHash, RECIPIENT_CAPS, type SentMailStore } from './sent-mail.ts'

/**
 * The link of a record: an absolute http(s) address as it is, or a path on the site. Undefined for anything else, so
 * that `//evil.example`, `/\evil.example` and other spellings that leave the site by the parser's leniency go nowhere.
 */
export function recordUrl(url: string, siteUrl: string): string | undefined {
  if (/^https?:\/\/[^/\\?#]/i.test(url)) return URL.parse(url)?.href
  const resolved = URL.parse(url, `${siteUrl}/`)
  return resolved !== null &&
    resolved.origin === new URL(siteUrl).origin &&
    !/^[a-z][a-z\d+.-]*:/i.test(url.trim())
    ? resolved.href
    : undefined
}

/**
 * A name from a record (an organization's, an exam's) as it may stand in a subject and a mail: without characters that
 * hide or turn text around, and with nothing that a mail reader would make a link of. People choose such names, and
 * mails with them go to people who never asked.
 */
export function inertText(text: string): string {
  return (
    text
      .replace(HIDDEN, '')
      .replace(/[\p{Cc}\p{Zl}\p{Zp}\s]+/gu, ' ')
      // The scheme first, then every dot, slash or at sign that could hold a host or an address together.
      .replace(/:\/\//g, ': ')
      .replace(/(?<=[\p{L}\p{N}_-])[.。．｡](?=[\p{L}\p{N}_-]*\p{L})/gu, '. ')
      .replace(/[@＠]/g, ' at ')
      .replace(/ {2,}/g, ' ')
      .trim()
      .slice(0, LONGEST)
      .toWellFormed()
  )
}

const LONGEST = 120
/** Format characters (soft hyphens, directions, tags), but not the joiners and selectors that scripts and emoji are written with. */
const HIDDEN = /(?!\u200c|\u200d|\ufe0f)[\p{Cf}\p{Co}\p{Cn}\p{Default_Ignorable_Code_Point}]/gu

/** A mail that somebody asks for, with the ids of the records that it is about. */
export interface MailRequest {
  readonly template: string
  readonly inputs: Readonly<Record<string, string>>
}

/** Mails that an asker is allowed to request. Recipient and link come from the server's own records (CONTRACT §4). */
export interface TransactionalMail {
  /** Stores the mail to be sent for certain, or sends it where nothing is stored for good. */
  ask(asker: Identity, asked: MailRequest): Promise<MailAnswer>
  /** The recipient and slots of a mail that was queued before; undefined: its record is gone. */
  again(asker: Identity, asked: MailRequest): Promise<{ to: Mailbox; slots: Mail['slots'] } | undefined>
}

export interface TransactionalMailOptions {
  readonly mails: Pick<MailSet, 'definitions' | 'compiled'>
  readonly directory: Directory
  readonly mailer: Mailer
  readonly held?: Held
  readonly sentMail: SentMailStore
  /** Hashes recipients, so that their mails can be counted without keeping their addresses. */
  readonly addressKey: Secret
  readonly confirmAgain: MailContext['confirmAgain']
  readonly siteUrl: string
  readonly clock: Clock
  /** Undefined where no store outlives the process. */
  readonly queue?: MailQueue | undefined
}

type Allowed = Extract<MailResolution, { readonly to: string }>

const BAD_LINK = {
  answer: { kind: 'not_sent', reason: 'the record holds no link that may be mailed' },
} as const

/** A record's link is neither an absolute address nor a path on the site. */
class BadLinkError extends Error {
  override readonly name = 'BadLinkError'
}

export function openTransactionalMail(options: TransactionalMailOptions): TransactionalMail {
  const { mails, directory, mailer, sentMail, siteUrl, clock, confirmAgain, queue } = options
  const { held = async () => undefined } = options
  const absolute = (url: string) => {
    const inside = recordUrl(url, siteUrl)
    if (inside === undefined) throw new BadLinkError()
    return inside
  }

  const definitionOf = (template: string) => mails.definitions.find(({ name }) => name === template)

  async function resolve(asker: Identity, { template, inputs }: MailRequest): Promise<MailResolution> {
    const ask = definitionOf(template)?.ask
    const context = { directory, now: clock.now(), absolute, confirmAgain }
    if (ask?.by === 'person' && asker.kind === 'person') return ask.resolve(inputs, { ...context, asker })
    if (ask?.by === 'service' && asker.kind === 'service') return ask.resolve(inputs, { ...context, asker })
    return undefined
  }

  /** Makes text slots harmless, because they come from records that other people fill in. */
  async function inert(template: string, slots: Allowed['slots']): Promise<Allowed['slots']> {
    // A template that does not compile is reported by the mailer.
    const types = (await mails.compiled().catch(() => undefined))?.[template]?.slots
    return Object.fromEntries(
      Object.entries(slots).map(([name, value]) => [
        name,
        types?.[name]?.type === 'text' ? inertText(value) : value,
      ]),
    )
  }

  /** Mails being sent. A second click while the first is in flight shares its outcome. */
  const underway = new Map<string, Promise<MailAnswer>>()

  function sendOnce(asker: Identity, asked: MailRequest, allowed: Allowed): Promise<MailAnswer> {
    // A hash, so that subjects and ids of records are not stored a second time.
    const key = createHash('sha256').update(`${asked.template}.${allowed.about}`).digest('base64url')
    const sending = underway.get(key) ?? send(key, allowed, asker, asked).finally(() => underway.delete(key))
    underway.set(key, sending)
    return sending
  }

  async function send(
    key: string,
    { to, about, ...allowed }: Allowed,
    asker: Identity,
    { template, inputs }: MailRequest,
  ): Promise<MailAnswer> {
    const notSent = (reason: string) => ({ kind: 'not_sent', reason }) as const
    if (!mailer.configured) return notSent(mailer.reason ?? 'mail is not configured')
    // What is queued waits; what is sent at once cannot.
    const hold = queue ? undefined : await held(streamOf(mails.definitions, template))
    if (hold) return notSent(heldReason(hold))
    const address = parseAddress(to)
    if (!address.ok) return notSent('the record holds no address that can be mailed')
    const { mailbox, identity } = address
    const slots = await inert(template, allowed.slots)
    const addressKey = options.addressKey.reveal()
    const { allowance } = definitionOf(template) ?? {}
    const mail = { template, slots, about, to: mailbox, date: new Date(clock.now()) }
    const ready =
      queue &&
      (await queueable(
        { ...mail, record: allowance === 'sign-in' ? { asker, inputs } : undefined },
        { mailer, refusal: queue.refusal, compiled: mails.compiled },
      ))
    if (typeof ready === 'string') return notSent(ready)
    const begun = await sentMail.begin({
      key,
      now: clock.now(),
      recipient: recipientHash({ key: addressKey, identity, allowance }),
      caps: RECIPIENT_CAPS,
      content: contentHash(addressKey, { template, identity, slots }),
      mail: ready,
    })
    if (begun === 'capped') return notSent(CAPPED)
    if (begun === 'conflict') return { kind: 'conflict' }
    const { firstAttemptAt, sentId } = begun
    if (sentId !== undefined) return { kind: 'sent', id: sentId }
    if (queue) {
      queue.wake()
      return { kind: 'sent', id: mailer.messageId(mail) ?? key, queued: true }
    }
    const outcome = await mailer.send({ ...mail, date: new Date(firstAttemptAt) })
    if (outcome.kind !== 'sent') return notSent(outcome.reason)
    await sentMail.recordSent({ key, id: outcome.id })
    return { kind: 'sent', id: outcome.id }
  }

  return {
    async ask(asker, asked) {
      const resolved = await resolve(asker, asked).catch((error: unknown) => {
        if (error instanceof BadLinkError) return BAD_LINK
        throw error
      })
      // Without types, null is a usual answer for no record.
      if (!resolved) return { kind: 'not_found' }
      if ('locked' in resolved) return { kind: 'locked', message: resolved.locked }
      return 'answer' in resolved ? resolved.answer : sendOnce(asker, asked, resolved)
    },
    async again(asker, asked) {
      const resolved = await resolve(asker, asked)
      if (!resolved || !('to' in resolved)) return undefined
      const address = parseAddress(resolved.to)
      return address.ok
        ? { to: address.mailbox, slots: await inert(asked.template, resolved.slots) }
        : undefined
    },
  }
}
