import { createHmac, hash } from 'node:crypto'
import type { Identity } from '../access/identity.ts'
import { mailboxKey } from '../address.ts'
import { DAY_MS, HOUR_MS, KEY_LIFE_MS } from '../durations.ts'
import { given } from '../given.ts'
import { type Host, systemClock, type Timer } from '../host.ts'
import { jsonObject } from '../is-record.ts'
import { createLease, LATE } from '../lease.ts'
import { ALLOWANCES, type Allowance, type MailAnswer } from './definition.ts'
import { type Attachment, composeFault, type Mail, type Mailer, type SendOutcome } from './mailer.ts'
import type { SuppressingMailer } from './suppressing-mailer.ts'
import { type CompiledMail, type CompiledMails, mailIn } from './template.ts'

/**
 * The caps for each class of transactional mail keep anybody from filling an inbox in its owner's name: no other
 * route, process or client address, and no restart, gets around them.
 */
export const RECIPIENT_CAPS: readonly { readonly most: number; readonly windowMs: number }[] = [
  { most: 5, windowMs: HOUR_MS },
  { most: 20, windowMs: DAY_MS },
]

export interface QueuedMail {
  readonly stream: 'sign-in' | 'mail'
  readonly address: string
  /** A `MailPayload` as JSON. */
  readonly payload: string
}

/**
 * What composes a queued mail: with the template as it was, so that every attempt has the same bytes. A sign-in mail
 * names its record in place of slots: its link is not stored a second time.
 */
export interface MailPayload
  extends Pick<Mail, 'template' | 'about' | 'seal' | 'from' | 'headers' | 'unsubscribeUrl'> {
  readonly compiled: CompiledMail
  readonly name?: string | undefined
  readonly slots?: Mail['slots']
  /** Contents in base64. */
  readonly attachments?: readonly (Omit<Attachment, 'content'> & { readonly content: string })[] | undefined
  /** `own`: in a program's own directory, which no process beside it has; or in the store's tables. */
  readonly record?: {
    readonly asker: Identity
    readonly inputs: Readonly<Record<string, string>>
    readonly own?: boolean | undefined
  }
}

export interface BegunMail {
  readonly firstAttemptAt: number
  readonly sentId: string | undefined
  /** The engine has it to send. */
  readonly isQueued: boolean
}

/** What composed a mail that may have been delivered: its next attempt has the same bytes, whatever was changed since. */
export interface Tried extends Pick<Mail, 'template' | 'sentAs'> {
  readonly compiled: CompiledMail
  /** Those of a mail with a token, which is replaced by its hash; none of another mail, whose caller gives them again. */
  readonly slots: Mail['slots']
  readonly tokenHash?: string
  /** When its answer was lost; an earlier build kept only the text. */
  readonly at?: number
}

/** A mail requested twice is sent once, and a retry keeps the Date header of the first attempt. */
export interface SentMailStore {
  /**
   * Notes the first attempt; gives its time and, if the mail was sent, the provider's id. A new mail is refused if its
   * recipient has reached a cap, one under a known key if its content is another. The checks, the note and the queued
   * mail are one transaction; a mail that is queued already stays as it is. `sending`: another process sends it at once,
   * or was killed while it did, less than a lease ago.
   */
  begin(input: {
    readonly key: string
    readonly now: number
    /** A hash of the class of mail and the recipient's mailbox. */
    readonly recipient: string
    readonly caps: typeof RECIPIENT_CAPS
    /** A hash of the content; a note of an earlier build has none, and takes the first. */
    readonly content: string
    /** To be sent by the engine; undefined: the caller sends it. */
    readonly mail?: QueuedMail | undefined
  }): Promise<BegunMail | 'capped' | 'conflict' | 'sending'>
  /** Holds a mail that is sent at once for another lease from `at`; `now` is the time that `begin` was given. */
  keep(held: { readonly key: string; readonly now: number; readonly at: number }): Promise<void>
  /** Lets others send a mail that is sent at once, and was not. */
  release(held: { readonly key: string; readonly now: number }): Promise<void>
  /** Releases it too: `now` is the time that `begin` was given. */
  recordSent(input: { readonly key: string; readonly id: string; readonly now: number }): Promise<void>
  /** Keeps texts under keys that no mail has, as long as it remembers mails; what is kept already stays. */
  keepTexts(texts: Readonly<Record<string, string>>, now: number): Promise<void>
  keptText(key: string): Promise<string | undefined>
}

/** Counts mail to a mailbox: the address is not kept, and nobody without the key can test a list of addresses. */
const recipientHash = (key: string, identity: string, allowance: Allowance = 'other'): string =>
  keyedHash(key, `recipient:${allowance} ${mailboxKey(identity)}`)

/** All hashes under which mail to an address is counted. Its erasure deletes them. */
export const recipientHashes = (key: string, identity: string): readonly string[] =>
  ALLOWANCES.map((allowance) => recipientHash(key, identity, allowance))

/** A keyed hash of what a mail says to whom: neither is kept, and nobody without the key can test a guess. */
function contentHash(key: string, identity: string, mail: Mail): string {
  const { template, language = '', slots, attachments = [] } = mail
  const sorted = Object.entries(slots).toSorted(([a], [b]) => (a < b ? -1 : 1))
  const files = attachments.map(({ name, type, content }) => [name, type, hash('sha256', content, 'base64')])
  return keyedHash(key, JSON.stringify([template, identity, language, sorted, ...files]))
}

const digest = (text: string) => hash('sha256', text, 'base64url')
const keyedHash = (key: string, text: string) => createHmac('sha256', key).update(text).digest('base64url')

export type Keeps = Pick<SentMailStore, 'keepTexts' | 'keptText'>

export interface KeptMail {
  readonly sentMail: SentMailStore
  /** Hashes recipients and contents. */
  readonly addressKey: string
  /** Starts sending what is stored to be sent; undefined where the store ends with the process. */
  readonly queue: (Pick<SuppressingMailer, 'refusal'> & { readonly wake: () => void }) | undefined
  readonly timer: Host['timer']
}

/** The largest mail that is queued, as it is stored. */
const LARGEST_BYTES = 1_000_000

interface Sends extends Partial<Pick<Host, 'log'>> {
  readonly clock: Pick<Host['clock'], 'now'>
  readonly store: Keeps
  readonly mailer: Mailer
}

/** Keeps what composed a mail. If the store fails, the next attempt is composed anew. */
const keepTried = ({ store, mailer, clock }: Sends, mail: Mail, key: string) =>
  mailer
    .compose(mail)
    .then(({ source, date, from, replyTo }) => {
      if (source === undefined) return
      const text = JSON.stringify(source.compiled)
      // Each text once, however many mails it composed.
      const id = `tried ${digest(text)}`
      const [token = ''] = mail.tokens?.() ?? []
      const tokenHash = token && digest(token)
      const own = { template: mail.template, text: id, sentAs: { from, replyTo }, at: clock.now() }
      const kept = JSON.stringify({ ...own, tokenHash, slots: token ? mail.slots : {} })
      return store.keepTexts({ [id]: text, [`tried ${key}`]: kept.replaceAll(token, tokenHash) }, +date)
    })
    .catch(() => {})

/** Sends a mail, with the bytes of the attempt that was `tried`; if the answer to a first attempt is lost, keeps its bytes. */
export async function sendAgain(
  host: Sends,
  mail: Mail,
  { key, tried }: { readonly key: string; readonly tried: Tried | undefined },
  send: (mail: Mail) => Promise<SendOutcome> = host.mailer.send,
): Promise<SendOutcome> {
  const repeat = tried && asTried(host, mail, tried)
  const outcome = await send(repeat ?? mail)
  if (!repeat && outcome.kind === 'unknown') await keepTried(host, mail, key)
  // The first sender may be refused by now. Another delivers nothing twice: the key is refused with other bytes.
  const isRefused = outcome.kind === 'transient' && outcome.scope === 'sender'
  return isRefused && repeat?.sentAs ? send({ ...repeat, sentAs: undefined }) : outcome
}

function asTried({ mailer, clock, log }: Sends, mail: Mail, tried: Tried): Mail {
  const { slots: kept, tokenHash = '', sentAs, at = 0 } = tried
  // A stored mail has its own text: it may have been stored anew under its key.
  const { compiled = tried.compiled } = mail
  const token = tokenHash && mail.tokens?.().find((one) => digest(one) === tokenHash)
  // A provider that has the mail under its key refuses other bytes, so nobody gets it twice.
  if (token === undefined)
    log?.warn('mail_repeat_differs', 'a repeat has new links: the old secret is gone', { mail: mail.about })
  const slots: Record<string, string> = {}
  for (const name in compiled.slots) {
    const value = token === undefined && kept[name]?.includes(tokenHash) ? undefined : kept[name]
    slots[name] = value?.replace(tokenHash, token ?? '') ?? mail.slots[name] ?? ''
  }
  const { unsubscribeUrl } = mail.tokens ? slots : mail
  // Other providers, and this one after that time, compare no bytes: they get the sender of now.
  const isKnown = mailer.transport === 'api' && clock.now() - at < KEY_LIFE_MS
  return { ...mail, compiled, slots, ...given({ unsubscribeUrl }), ...(isKnown && { sentAs }) }
}

export async function triedBefore(store: Keeps, key: string): Promise<Tried | undefined> {
  const { text, ...known } = jsonObject((await store.keptText(`tried ${key}`)) ?? '')
  const compiled = text && jsonObject((await store.keptText(String(text))) ?? '')
  // Written above, both or neither.
  return compiled ? ({ ...known, compiled } as object as Tried) : undefined
}

/** Sends for as long as the transport may take, also where one of a program's own never answers, while `keep` holds the key. */
function sendWithin(mailer: Mailer, timer: Timer, since = timer.monotonic(), keep = async () => {}) {
  const { patienceMs } = mailer
  const onEnded = () => lease.cancel()
  const lease = createLease<string>({ timer, since, claims: 1, onEnded, patienceMs, keep })
  lease.begin('')
  const send = (mail: Mail) => Promise.race([mailer.send(mail, lease.signal), lease.expired.then(() => LATE)])
  return { send, end: () => lease.end('') }
}

/** Sends a mail at most once under its key: stored first, to be sent for certain, or at once. */
export async function sendOnce(
  { mailer, compiled }: { readonly mailer: Mailer; readonly compiled: () => Promise<CompiledMails> },
  kept: KeptMail | undefined,
  asked: Mail,
  how: {
    readonly key: string
    readonly now: number
    /** The recipient's, for its caps. */
    readonly identity: string
    /** That of a program has no caps. */
    readonly allowance: Allowance | undefined
    readonly isStored: boolean
    /** For sign-in: its slots are not stored, but resolved again. */
    readonly record?: MailPayload['record'] | undefined
    /** The Date header of a repeat. */
    readonly date?: Date | undefined
  },
): Promise<MailAnswer> {
  if (kept === undefined) {
    const { send, end } = sendWithin(mailer, systemClock)
    return send(asked).then(answerOf).finally(end)
  }
  const { now, identity, isStored, record } = how
  const { sentMail, addressKey, queue, timer } = kept
  const since = timer.monotonic()
  // A hash, so that subjects and ids of records are not stored a second time.
  const key = digest(how.key)
  // Where the provider gives an id of its own, that is the proof, and a repeat from elsewhere has the same bytes.
  const isProof = queue !== undefined && mailer.transport !== 'api'
  const mail = isProof ? { ...asked, seal: keyedHash(addressKey, `message ${how.key}`) } : asked
  const ready = queue && (await queueable(mail, record))
  if (typeof ready === 'string') return notSent(ready)
  const noted = sentMail.begin({
    key,
    now,
    recipient: recipientHash(addressKey, identity, how.allowance),
    caps: how.allowance === 'program' ? [] : RECIPIENT_CAPS,
    content: contentHash(addressKey, identity, mail),
    mail: isStored ? ready : undefined,
  })
  const begun = await noted.catch((error: unknown) => {
    // A store that fails keeps no mail from being sent at once.
    if (isStored) throw error
    return { firstAttemptAt: now, sentId: undefined, isQueued: false, isUnheld: true }
  })
  if (begun === 'capped') return notSent('this recipient has had enough mail for now; try again later')
  if (begun === 'conflict') return { kind: 'conflict' }
  if (begun === 'sending') return notSent('another process is sending this mail; try again later')
  if (begun.sentId !== undefined) return { kind: 'sent', id: begun.sentId }
  if (queue && (isStored || begun.isQueued)) {
    queue.wake()
    return { kind: 'sent', id: mailer.messageId(mail) ?? key, queued: true }
  }
  const keep = () => sentMail.keep({ key, now, at: Math.round(now + timer.monotonic() - since) })
  const { send, end } = sendWithin(mailer, timer, since, 'isUnheld' in begun ? undefined : keep)
  let id: string | undefined
  try {
    const tried = begun.firstAttemptAt === now ? undefined : await triedBefore(sentMail, key)
    const date = how.date ?? new Date(begun.firstAttemptAt)
    const host = { store: sentMail, mailer, clock: { now: () => now } }
    const outcome = await sendAgain(host, { ...mail, date }, { key, tried }, send)
    if (outcome.kind === 'sent') id = outcome.id
    return answerOf(outcome)
  } finally {
    end()
    // What was sent is sent, even if that cannot be noted.
    await (id === undefined ? sentMail.release({ key, now }) : sentMail.recordSent({ key, id, now })).catch(
      () => {},
    )
  }

  async function queueable(mail: Mail, record: MailPayload['record']): Promise<QueuedMail | string> {
    const refused = await queue?.refusal(mail)
    if (refused && refused.kind !== 'sent') return refused.reason
    const { to, date: _, language, attachments, slots, ...own } = mail
    const pinned = mailIn(await compiled(), own.template, language)
    if (pinned === undefined) return 'there is no such template'
    const composed = await mailer.compose({ ...mail, compiled: pinned }).catch(composeFault)
    if (typeof composed === 'string') return composed
    const payload: MailPayload = {
      ...own,
      compiled: pinned,
      name: to.name,
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
