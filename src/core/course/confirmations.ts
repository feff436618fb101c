import type { Clock, Timer } from '../clock.ts'
import { DAY_MS, HOUR_MS, MINUTE_MS } from '../durations.ts'
import type { Log } from '../log.ts'
import { type Held, heldReason } from '../mail/holds.ts'
import type { Mail, Mailer, SendOutcome } from '../mail/mailer.ts'
import type { Random } from '../random.ts'
import type { Secret } from '../secret.ts'
import { type HistoryEntry, outcomeFields } from './history.ts'
import { createLease, LATE, LEASE_MS, type Lease } from './lease.ts'
import { confirmationToken, confirmUrl, hashToken } from './links.ts'
import type { MessageSettlement, NewMessage, QueuedMessage } from './messages.ts'
import { NOTICE_CONFIRMATION_MAIL, NOTICES } from './notices.ts'
import { backoffMs, KEY_LIFE_MS, TOKEN_LIFE_MS } from './schedule.ts'
import type { CourseStore } from './store.ts'
import { isUnderWay } from './subscription.ts'

/** A confirmation is mailed only while its link works for at least another day. */
const CONFIRMATION_LIFE_MS = TOKEN_LIFE_MS - DAY_MS
const LONGEST_RETRY_MS = HOUR_MS
/** A mail that our own texts or configuration keep from leaving is tried again after this. */
const OURS_MS = 10 * MINUTE_MS

export interface Confirmations {
  /** A message to store with the request for it, and the hash of its token. */
  create(id: string): { readonly tokenHash: string; readonly message: NewMessage }
  /** Mails a message that this process has just stored; undefined: there is no reason to mail it any more. */
  deliver(message: QueuedMessage, since: number): Promise<SendOutcome | undefined>
  /** Mails what is due, stored by whatever process; gives how many went out. Stops at the first failed connection. */
  deliverDue(signal?: AbortSignal): Promise<number>
}

/**
 * Mails confirmations from the rows that requests for them leave behind: a process that is killed, or a provider that
 * is down, delays one and loses none.
 */
export function createConfirmations({
  store,
  mailer,
  clock,
  timer,
  random,
  log,
  siteUrl,
  firstCourse,
  held,
  keys,
}: {
  readonly store: CourseStore
  readonly mailer: Mailer
  readonly clock: Pick<Clock, 'now'>
  readonly timer: Timer
  readonly random: Random
  readonly log: Log
  readonly siteUrl: string
  readonly firstCourse: string
  readonly held: Held
  /** Keys of links: tokens are made with the first, and found again with any. */
  readonly keys: readonly [Secret, ...Secret[]]
}): Confirmations {
  const [key] = keys

  /** The token of a message, made again; undefined: it was used or replaced, or its reader has left or is enrolled. */
  async function tokenOf(
    { id, subscription, createdAt }: QueuedMessage,
    now: number,
  ): Promise<string | undefined> {
    const found = await store.findById(subscription)
    if (found === undefined || isUnderWay(found) || (found.unsubscribedAt ?? 0) > createdAt) return undefined
    for (const one of keys) {
      const token = confirmationToken(one.reveal(), id)
      const verdict = await store.checkToken({ tokenHash: hashToken(token), now })
      if (verdict === 'use') return token
      if (verdict !== 'invalid') return undefined
    }
    const token = confirmationToken(key.reveal(), id)
    const renewed = await store.renewConfirmation({ id: subscription, tokenHash: hashToken(token), now })
    return renewed ? token : undefined
  }

  const mailOf = (
    { course, language, address, key: about, createdAt }: QueuedMessage,
    token: string,
  ): Mail => ({
    template: course === NOTICES ? NOTICE_CONFIRMATION_MAIL : 'subscription-confirmation',
    language,
    slots: {
      confirmUrl: confirmUrl(siteUrl, token, {
        course: course === firstCourse ? undefined : course,
        language,
      }),
    },
    to: { name: undefined, address },
    about,
    date: new Date(createdAt),
  })

  /** What to record of an attempt. */
  function settlementOf(message: QueuedMessage, outcome: SendOutcome, mail: Mail): MessageSettlement {
    const now = clock.now()
    const { attempts, unknownSince } = message
    const again = { attempts: attempts + 1, unknownSince, outcome: outcome.kind }
    if (outcome.kind === 'not_configured' || outcome.kind === 'not_composed')
      return { message, result: { ...again, attempts, nextAttemptAt: now + OURS_MS } }
    const messageId = mailer.messageId(mail)
    const entry = entryAt(now, { messageId, ...outcomeFields(outcome) })
    if (outcome.kind === 'sent') return { message, result: 'sent', entry }
    if (outcome.kind === 'permanent') return { message, result: 'over', entry }
    const pause = Math.min(LONGEST_RETRY_MS, backoffMs(attempts, random.fraction()))
    const asked = outcome.kind === 'transient' ? (outcome.retryAfterMs ?? 0) : 0
    const unknown = outcome.kind === 'unknown' ? { unknownSince: unknownSince ?? now } : {}
    return { message, entry, result: { ...again, ...unknown, nextAttemptAt: now + Math.max(pause, asked) } }
  }

  async function attempt(
    message: QueuedMessage,
    lease: Lease<QueuedMessage>,
  ): Promise<SendOutcome | undefined> {
    const now = clock.now()
    const over = (reason?: string) => {
      const entry = reason === undefined ? undefined : entryAt(now, { outcome: 'permanent', reason })
      if (reason !== undefined) tell(message, 'given_up', reason)
      return store.settleMessage({ message, result: 'over', entry }).then(() => undefined)
    }
    const { expiresAt, unknownSince } = message
    const hold = now < expiresAt && (await held('confirmation'))
    if (hold) {
      // Given back untried: as it would be had nobody claimed it.
      const { attempts } = message
      const result = { attempts, unknownSince, outcome: 'held', nextAttemptAt: now }
      await store.settleMessage({ message, result })
      return { kind: 'transient', scope: 'connection', reason: heldReason(hold) }
    }
    if (now >= expiresAt) return over('it could not be mailed before its link was about to expire')
    if (mailer.transport === 'api' && unknownSince !== undefined && now - unknownSince >= KEY_LIFE_MS)
      return over('the provider may have it, and no longer knows its key')
    const token = await tokenOf(message, now)
    if (token === undefined) return over()
    // The lease runs out, and the next process takes it.
    if (!lease.mayBegin()) return undefined
    lease.begin(message)
    const mail = mailOf(message, token)
    const outcome = (await Promise.race([mailer.send(mail, lease.signal), lease.expired])) ?? LATE
    await store.settleMessage(settlementOf(message, outcome, mail))
    if (outcome.kind === 'sent')
      log.info('confirmation_sent', 'a confirmation mail was sent', { subscription: message.subscription })
    else tell(message, outcome.kind, outcome.reason)
    return outcome
  }

  const tell = ({ subscription }: QueuedMessage, outcome: string, reason: string) =>
    log.warn('confirmation_not_sent', 'a confirmation mail was not sent', { subscription, outcome, reason })

  function leaseOn(count: number, since: number): Lease<QueuedMessage> {
    const lease: Lease<QueuedMessage> = createLease({
      timer,
      since,
      claims: count,
      onEnded: () => lease.cancel(),
      patienceMs: mailer.patienceMs,
      keep: (messages) => store.keepMessages({ messages, leaseMs: LEASE_MS }),
    })
    return lease
  }

  async function deliverAll(
    messages: readonly QueuedMessage[],
    since: number,
  ): Promise<readonly (SendOutcome | undefined)[]> {
    const lease = leaseOn(messages.length, since)
    return Promise.all(messages.map((message) => attempt(message, lease).finally(() => lease.end(message))))
  }

  return {
    create(id) {
      const expiresAt = clock.now() + CONFIRMATION_LIFE_MS
      return {
        tokenHash: hashToken(confirmationToken(key.reveal(), id)),
        message: { id, expiresAt, leaseMs: LEASE_MS },
      }
    },
    deliver: async (message, since) => (await deliverAll([message], since))[0],
    async deliverDue(signal) {
      let sent = 0
      while (mailer.configured && !signal?.aborted && !(await held('confirmation'))) {
        const since = timer.monotonic()
        const messages = await store.claimMessages({
          now: clock.now(),
          limit: mailer.lines,
          leaseMs: LEASE_MS,
        })
        if (messages.length === 0) break
        const outcomes = await deliverAll(messages, since)
        sent += outcomes.filter((outcome) => outcome?.kind === 'sent').length
        if (outcomes.some((one) => one?.kind === 'transient' && one.scope === 'connection')) break
      }
      return sent
    },
  }
}

/** What the history of a subscription says of its confirmation. */
function entryAt(at: number, fields: Partial<HistoryEntry>): HistoryEntry {
  return { at, kind: 'confirmation', enrolment: 0, day: 0, ...fields }
}
