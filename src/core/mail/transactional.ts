import type { Identity } from '../access/identity.ts'
import { parseAddress } from '../address.ts'
import { PlatformError } from '../errors.ts'
import type { Host } from '../host.ts'
import { answerInTime } from '../own-code.ts'
import type { MailAnswer, MailContext, MailResolution, MailSet, ResolvedMail } from './definition.ts'
import { type Held, heldReason, streamOf } from './holds.ts'
import { type Mailer, NOT_CONFIGURED } from './mailer.ts'
import { type KeptMail, notSent, sendOnce } from './send-once.ts'

/**
 * The link of a record: an absolute http(s) address as it is, or a path on the site. Undefined for anything else, so
 * that `//evil.example`, `/\evil.example` and other spellings that leave the site by the parser's leniency go nowhere.
 */
export function recordUrl(url: string, siteUrl: string): string | undefined {
  if (/^https?:\/\/[^/\\?#]/i.test(url)) return URL.parse(url)?.href
  const resolved = URL.parse(url, `${siteUrl}/`)
  return resolved?.origin === new URL(siteUrl).origin && !/^[a-z][a-z\d+.-]*:/i.test(url.trim())
    ? resolved.href
    : undefined
}

/**
 * A name from a record (an organization's, an exam's) as it may stand in a subject and a mail: without characters that
 * hide or turn text around, and with nothing that a mail reader would make a link of. People choose such names, and
 * mails with them go to people who never asked.
 */
export function inertText(text: string): string {
  const visible = text.replace(HIDDEN, '').replace(/[\p{Cc}\p{Zl}\p{Zp}\s]+/gu, ' ')
  // The scheme first, then every dot or at sign that could hold a host or an address together.
  const inert = visible
    .replace(/:\/\//g, ': ')
    .replace(/(?<=[\p{L}\p{N}_-])[.。．｡](?=[\p{L}\p{N}_-]*\p{L})/gu, '. ')
    .replace(/[@＠]/g, ' at ')
  return inert.replace(/ {2,}/g, ' ').trim().slice(0, LONGEST).toWellFormed()
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
export type TransactionalMail = ReturnType<typeof openTransactionalMail>

/** A record's link is neither an absolute address nor a path on the site. */
class BadLinkError extends PlatformError {}

export function openTransactionalMail(
  mailer: Mailer,
  kept: KeptMail,
  options: Pick<MailContext, 'directory' | 'confirmAgain' | 'value'> &
    Pick<Host, 'clock' | 'log'> & {
      readonly mails: Pick<MailSet, 'definitions' | 'compiled'>
      readonly held?: Held
      /** The directory is the program's own, and not the tables of the store. */
      readonly ownDirectory?: boolean
      readonly siteUrl: string
    },
) {
  const { mails, held = async () => undefined, siteUrl, clock, log, ownDirectory, ...given } = options
  const absolute = (url: string) => {
    const inside = recordUrl(url, siteUrl)
    if (inside === undefined)
      throw new BadLinkError('bad_request', 'the record holds no link that may be mailed')
    return inside
  }

  const definitionOf = (template: string) => mails.definitions.find(({ name }) => name === template)

  async function resolve(asker: Identity, { template, inputs }: MailRequest): Promise<MailResolution> {
    const ask = definitionOf(template)?.ask
    const context = { ...given, now: clock.now(), absolute }
    if (ask?.by === 'person' && asker.kind === 'person') return ask.resolve(inputs, { ...context, asker })
    if (ask?.by === 'service' && asker.kind === 'service') return ask.resolve(inputs, { ...context, asker })
    return undefined
  }
  const resolveInTime = (asker: Identity, asked: MailRequest) =>
    answerInTime(() => resolve(asker, asked), {
      log,
      event: 'resolve_fault',
      sentence: 'The record of this mail cannot be looked up now; try again in a minute.',
      fields: { template: asked.template },
    })

  /** Makes text slots harmless, because they come from records that other people fill in. */
  async function inert(template: string, slots: ResolvedMail['slots']): Promise<ResolvedMail['slots']> {
    // A template that does not compile is reported by the mailer.
    const types = (await mails.compiled().catch(() => undefined))?.[template]?.slots
    const made = (name: string, value: string) => (types?.[name]?.type === 'text' ? inertText(value) : value)
    return Object.fromEntries(Object.entries(slots).map(([name, value]) => [name, made(name, value)]))
  }

  /** Mails being sent. A second click while the first is in flight shares its outcome. */
  const underway = new Map<string, Promise<MailAnswer>>()

  function shared(asker: Identity, asked: MailRequest, allowed: ResolvedMail): Promise<MailAnswer> {
    const key = `${asked.template}.${allowed.about}`
    const sending = underway.get(key) ?? told(key, allowed, asker, asked).finally(() => underway.delete(key))
    underway.set(key, sending)
    return sending
  }

  /** The log has why, as the caller may be a browser that shows nobody. */
  async function told(...mail: Parameters<typeof send>): Promise<MailAnswer> {
    const answer = await send(...mail)
    const [, , , { template }] = mail
    if (answer.kind === 'not_sent' && mailer.configured)
      log.warn('mail_not_sent', `the mail ${template} was not sent`, { template, reason: answer.reason })
    return answer
  }

  async function send(
    key: string,
    { to, about, ...allowed }: ResolvedMail,
    asker: Identity,
    { template, inputs }: MailRequest,
  ): Promise<MailAnswer> {
    if (!mailer.configured) return notSent(NOT_CONFIGURED)
    // What is queued waits; what is sent at once cannot.
    const hold = kept.queue ? undefined : await held(streamOf(mails.definitions, template))
    if (hold) return notSent(heldReason(hold))
    const address = parseAddress(to)
    if (!address.ok) return notSent('the record holds no address that can be mailed')
    const { mailbox, identity } = address
    const slots = await inert(template, allowed.slots)
    const { allowance } = definitionOf(template) ?? {}
    const now = clock.now()
    const mail = { template, slots, about, to: mailbox, date: new Date(now) }
    const record = allowance === 'sign-in' ? { asker, inputs, own: ownDirectory } : undefined
    const how = { key, now, identity, allowance, isStored: kept.queue !== undefined, record }
    return sendOnce({ mailer, compiled: mails.compiled }, kept, mail, how)
  }

  return {
    /** Stores the mail to be sent for certain, or sends it where nothing is stored for good. */
    async ask(asker: Identity, asked: MailRequest): Promise<MailAnswer> {
      const resolved = await resolveInTime(asker, asked).catch((error: unknown) => {
        if (error instanceof BadLinkError) return { answer: notSent(error.message) }
        throw error
      })
      // Without types, null is a usual answer for no record.
      if (!resolved) return { kind: 'not_found' }
      if ('locked' in resolved) return { kind: 'locked', message: resolved.locked }
      return 'answer' in resolved ? resolved.answer : shared(asker, asked, resolved)
    },
    /** The recipient and slots of a mail that was queued before; undefined: its record is gone. */
    async again(asker: Identity, asked: MailRequest) {
      const resolved = await resolveInTime(asker, asked)
      if (!resolved || !('to' in resolved)) return undefined
      const address = parseAddress(resolved.to)
      if (!address.ok) return undefined
      return { to: address.mailbox, slots: await inert(asked.template, resolved.slots) }
    },
  }
}
