import { setImmediate as nextTurn } from 'node:timers/promises'
import { mailboxKey } from '../address.ts'
import { messageEngine, type QueuedMessage } from '../delivery/messages.ts'
import { CONFIRMATION, isOutcome } from '../delivery/retries.ts'
import { DAY_MS, MOST_SKEW_MS } from '../durations.ts'
import { PlatformError } from '../errors.ts'
import type { MailAnswer } from '../mail/definition.ts'
import { type Mail, NOT_CONFIGURED } from '../mail/mailer.ts'
import { NOTICES } from './definition.ts'
import { TOKEN_LIFE_MS } from './due.ts'
import { type HistoryEntry, outcomeFields } from './history.ts'
import { type CourseHost, erasureHashesOf, firstCourse, randomId, storedForm } from './host.ts'
import { confirmationToken, confirmUrl, hashToken } from './links.ts'
import { NOTICE_CONFIRMATION_MAIL } from './notices.ts'
import { NOT_HERE } from './pinned-texts.ts'
import { type CourseRequest, isUnderWay, type Joining, type TokenAnswer } from './subscription.ts'

/** A confirmation is mailed only while its link works for at least another day. */
const CONFIRMATION_LIFE_MS = TOKEN_LIFE_MS - DAY_MS
const TOKEN = /^[A-Za-z0-9_-]{20,64}$/
/** The same for every address, so that it reveals nothing about any of them. */
const EXHAUSTED = 'the platform has mailed as many confirmations as it may in a day; try again later'
const CAPPED = 'a confirmation to this address was asked for not long ago'
const SUPPRESSED = 'the address is suppressed'

/** The result of `subscribe`: the same for a known and an unknown address (CONTRACT §4). */
export interface SubscribeResult {
  readonly status: 'pending'
  /** A confirmation is on its way if one is due. False only without mail, or at the platform's daily limit. */
  readonly sent: boolean
  readonly reason?: string
}

/** The double opt-in. Mails leave from the rows of requests: a killed process or a provider that is down loses none. */
export function createConfirmations(
  host: CourseHost,
  input: {
    readonly persistent: boolean
    /** Confirmations that the whole platform mails in 24 hours. */
    readonly confirmationsPerDay?: number
    readonly onExhausted?: () => void
    readonly inBackground: (work: Promise<unknown>) => void
  },
) {
  const { clock, timer, store, mailer, catalog, siteUrl, keys } = host
  const { persistent, inBackground, onExhausted = () => {} } = input
  const { confirmationsPerDay: mostADay = Number.MAX_SAFE_INTEGER } = input
  const first = firstCourse(host)
  const tokenWith = ([key]: CourseHost['keys'], id: string) => confirmationToken(key.reveal(), id)

  /** The token of a message, made again; undefined: it was used or replaced, or its reader has left or is enrolled. */
  async function tokenOf({ id, subscription = '', createdAt }: QueuedMessage): Promise<string | undefined> {
    const now = clock.now()
    const found = await store.findById(subscription)
    // Who left under a clock that was ahead may ask again.
    const leftAt = found?.unsubscribedAt ?? 0
    if (found === undefined || isUnderWay(found) || (leftAt > createdAt && leftAt <= now + MOST_SKEW_MS))
      return undefined
    for (const key of keys) {
      const token = tokenWith([key], id)
      const verdict = await store.checkToken({ tokenHash: hashToken(token), now })
      if (verdict === 'use') return token
      if (verdict !== 'invalid') return undefined
    }
    // An older build mailed it meanwhile, with a link of its own.
    const isSince = ({ kind, outcome, at }: HistoryEntry) =>
      kind === 'confirmation' && outcome === 'sent' && at >= createdAt
    if ((await store.history(subscription)).some(isSince)) return undefined
    const token = tokenWith(keys, id)
    const renewed = await store.renewConfirmation({ id: subscription, tokenHash: hashToken(token), now })
    return renewed ? token : undefined
  }

  function mailOf({ payload, address, key: about, createdAt }: QueuedMessage, token: string): Mail {
    // Written by the store with the request, or by the migration that made the table.
    const { course, language: wanted } = JSON.parse(payload) as { course: string; language?: string | null }
    const language = wanted ?? undefined
    return {
      stream: 'confirmation',
      template: course === NOTICES ? NOTICE_CONFIRMATION_MAIL : 'subscription-confirmation',
      language,
      slots: { confirmUrl: confirmUrl(siteUrl, token, { course, language }) },
      tokens: () => [token],
      to: { name: undefined, address },
      about,
      date: new Date(createdAt),
    }
  }
  const messageIdOf = (message: QueuedMessage) => mailer.messageId(mailOf(message, ''))

  const engine = messageEngine(host, {
    stream: CONFIRMATION,
    async mailOf(message) {
      const token = await tokenOf(message)
      return token === undefined ? undefined : mailOf(message, token)
    },
    expired: 'it could not be mailed before its link was about to expire',
    settlementOf(settlement, { claim, delivery, now: at }) {
      const entry = { at, kind: 'confirmation', enrolment: 0, day: 0, source: 'queue' } as const
      const { reason } = settlement
      if (isOutcome(delivery)) {
        const messageId = messageIdOf(claim)
        return { ...settlement, entry: { ...entry, messageId, ...outcomeFields(delivery) } }
      }
      return delivery.kind === 'over' && reason !== undefined
        ? { ...settlement, entry: { ...entry, outcome: 'permanent', reason } }
        : settlement
    },
  })

  /** Stores a request for a confirmation together with the message that mails it; or why nobody is mailed now. */
  async function request(
    asked: Omit<Joining, 'mailboxKey' | 'erasureHashes'> & { readonly withoutMail?: boolean },
    /** The identity as it was asked for. */
    identity: string,
  ) {
    const now = clock.now()
    const id = randomId(host)
    const { message, exhausted, suppressed } = await store.requestConfirmation({
      ...asked,
      tokenHash: hashToken(tokenWith(keys, id)),
      message: {
        id,
        stream: 'confirmation',
        key: `confirmation.${id}`,
        expiresAt: now + CONFIRMATION_LIFE_MS,
      },
      mailboxKey: mailboxKey(identity),
      erasureHashes: erasureHashesOf(host, identity),
      mostADay,
      now,
    })
    if (!mailer.configured) return { reason: NOT_CONFIGURED }
    if (exhausted) onExhausted()
    return { message, suppressed, reason: exhausted ? EXHAUSTED : undefined }
  }
  return {
    engine,
    /** The mail goes out after the answer, which therefore takes the same time for all. */
    async subscribe(asked: CourseRequest): Promise<SubscribeResult> {
      const { spelling: address, identity, course = first, timeZone, language } = asked
      const since = timer.monotonic()
      const who = { id: randomId(host), identity: await storedForm(host, identity), address }
      const wanted = { ...who, course, timeZone, language, withoutMail: !mailer.configured }
      const { message, reason } = await request(wanted, identity)
      if (reason !== undefined) return { status: 'pending', sent: false, reason }
      // After the answer: its body and its time must not tell whether there was anything to send.
      if (message) inBackground(nextTurn().then(() => engine.deliver(message, since)))
      return { status: 'pending', sent: true }
    },
    /** Mails a new link, within the limits of `subscribe`. With `wait`, gives what became of the first attempt. */
    async confirmAgain(
      asked: string,
      { wait = !persistent }: { readonly wait?: boolean } = {},
    ): Promise<{ readonly kind: 'none' } | Extract<MailAnswer, { readonly kind: 'sent' | 'not_sent' }>> {
      const identity = await storedForm(host, asked)
      const found = (await store.findPerson(identity)).findLast(({ state }) => state === 'unconfirmed')
      if (found === undefined) return { kind: 'none' }
      if (!mailer.configured) return { kind: 'not_sent', reason: NOT_CONFIGURED }
      const since = timer.monotonic()
      const { id, address, course } = found
      if (course !== NOTICES && !catalog.find(course))
        return { kind: 'not_sent', reason: `${NOT_HERE}course ${course}` }
      const { message, suppressed, reason } = await request({ identity, address, course, id }, asked)
      if (message === undefined)
        return { kind: 'not_sent', reason: reason ?? (suppressed ? SUPPRESSED : CAPPED) }
      const delivery = engine.deliver(message, since)
      if (!wait) {
        inBackground(delivery)
        return { kind: 'sent', id: messageIdOf(message) ?? message.id, queued: true }
      }
      const outcome = await delivery
      if (outcome.kind === 'sent') return { kind: 'sent', id: outcome.id }
      return { kind: 'not_sent', reason: ('reason' in outcome && outcome.reason) || 'it was not sent' }
    },
    async confirm(token: string): Promise<TokenAnswer> {
      if (!TOKEN.test(token)) return 'invalid'
      const asked = { begin: await catalog.begin(), tokenHash: hashToken(token), now: clock.now() }
      const answer = await store.confirm(asked)
      if (answer !== 'no_course') return answer
      // Its course was taken out, which pauses it, or a replica of before the deploy that brings it was asked.
      const sentence = 'The course of this link is closed for now; use the link again later.'
      throw new PlatformError('conflict', sentence)
    },
    /** The answer that `confirm` would give, without changing anything; `use`: it would confirm now. */
    checkToken: async (token: string): Promise<'use' | TokenAnswer> =>
      TOKEN.test(token) ? store.checkToken({ tokenHash: hashToken(token), now: clock.now() }) : 'invalid',
  }
}
