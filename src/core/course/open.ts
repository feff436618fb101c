import { setImmediate as nextTurn } from 'node:timers/promises'
import { formsOf, mailboxKey } from '../address.ts'
import { type AuditAction, auditEntry, type Operator, PROGRAM } from '../audit.ts'
import { type Clock, systemClock, type Timer } from '../clock.ts'
import { DAY_MS, HOUR_MS } from '../durations.ts'
import type { Log } from '../log.ts'
import type { Mailer, SendOutcome } from '../mail/mailer.ts'
import { recipientHashes } from '../mail/recipient.ts'
import type { Random } from '../random.ts'
import { ROUTES } from '../routes.ts'
import type { Secret } from '../secret.ts'
import type { Catalog } from './catalog.ts'
import type { Course } from './course.ts'
import { FIRST_COURSE } from './definition.ts'
import { createDispatcher, type DispatcherOptions, lessonOf } from './dispatcher.ts'
import { outcomeFields } from './history.ts'
import {
  confirmUrl,
  hashToken,
  newToken,
  readUnsubscribeLink,
  suppressionHash,
  suppressionHashes,
  unicodeDomain,
  unsubscribeUrl,
} from './links.ts'
import { baseOf, NOTICE_CONFIRMATION_MAIL, NOTICES, type Notice, type NoticeStore } from './notices.ts'
import { KEY_LIFE_MS, nextDay } from './schedule.ts'
import type { Claim, ConfirmationMail, CourseStore, Erased, Subscription } from './store.ts'
import { isUnderWay } from './subscription.ts'

const ID_BYTES = 12
const TOKEN = /^[A-Za-z0-9_-]{20,64}$/
/** The same for every address, so that it reveals nothing about any of them. */
const EXHAUSTED = 'the platform has mailed as many confirmations as it may in a day; try again later'
/** A confirmation mail that failed is tried again after this, for up to a day. */
const CONFIRMATION_PAUSE_MS = 10 * 60 * 1000
const CONFIRMATION_LIFE_MS = DAY_MS
const CONFIRMATIONS_A_RETRY = 100

/** Random and URL-safe. Never with a hyphen first: a command would take it for an option. */
function newId(random: Random): string {
  const id = Buffer.from(random.bytes(ID_BYTES)).toString('base64url')
  return id.startsWith('-') ? `0${id.slice(1)}` : id
}
const RESOLVE_AT_ONCE = 500
const WAKE_AT_ONCE = 500
/** A notice held back by a silence is looked at again after this, because the silence may end early. */
const HELD_MS = 10 * 60 * 1000

export interface CourseOptions {
  readonly store: CourseStore
  readonly persistent: boolean
  readonly mailer: Mailer
  readonly clock: Clock
  readonly timer?: Timer
  readonly random: Random
  readonly log: Log
  readonly siteUrl: string
  readonly catalog: Catalog
  /** Confirmations that the whole platform mails in 24 hours. */
  readonly confirmationsPerDay?: number
  /** Called when that budget is found used up. */
  readonly onExhausted?: () => void
  readonly pace?: DispatcherOptions['pace']
  readonly isPaused?: DispatcherOptions['isPaused']
  /** Signs unsubscribe links. */
  readonly linkKey: Secret
  /** Keys that signed links before, and are still accepted. */
  readonly oldLinkKeys?: readonly Secret[]
  /** Parts needed to send notices to subscribers of incidents; undefined: this platform sends none. */
  readonly notices?: {
    readonly store: NoticeStore
    /** The end of the silence in which nothing is to be sent. */
    readonly silentUntil: () => Promise<number | undefined>
    /** Whether this announcement is current or planned, and not withdrawn. */
    readonly isAnnounced: (id: string) => Promise<boolean>
    /** The values that fill a notice's template in this language. */
    readonly slots: (notice: Notice, language: string | undefined) => Readonly<Record<string, string>>
  }
  /**
   * The key that recognizes an erased address. It is kept in the store, so that changing a secret forgets no
   * erasure. Default: `linkKey`.
   */
  readonly addressKey?: Secret
}

/** Opens the course over a store and a mailer; nothing is sent before it is asked to. */
export function openCourse({
  store,
  persistent,
  mailer,
  clock,
  timer = systemClock,
  random,
  log,
  siteUrl,
  catalog,
  confirmationsPerDay: mostADay = Number.MAX_SAFE_INTEGER,
  onExhausted = () => {},
  linkKey,
  oldLinkKeys = [],
  pace,
  isPaused,
  notices,
  addressKey = linkKey,
}: CourseOptions): Course {
  const pending = new Set<Promise<void>>()
  const unsubscribe = ({ subscription, enrolment, course }: Claim) =>
    unsubscribeUrl(
      siteUrl,
      linkKey.reveal(),
      subscription,
      enrolment,
      course === NOTICES ? course : undefined,
    )
  const readLink = (link: { readonly s: string; readonly t: string }) =>
    // Try every key even after a match, so that the time taken does not show which one matched.
    [linkKey, ...oldLinkKeys].map((key) => readUnsubscribeLink(key.reveal(), link)).find((named) => named)
  /**
   * Whether an address was erased. The keys of links are tried too, because early stores hashed addresses
   * under those.
   */
  const isSuppressed = async (identity: string) => {
    const hashes = suppressionHashes([addressKey, linkKey, ...oldLinkKeys], identity)
    return (await Promise.all(hashes.map((hash) => store.isSuppressed(hash)))).includes(true)
  }
  /**
   * The form of an address that the store knows, or the composed form if it knows none. Every form is looked
   * up, whatever the first gives.
   */
  const storedForm = async (identity: string) => {
    const forms = formsOf(identity)
    if (forms.length === 1) return identity
    const known = await Promise.all(forms.map((form) => store.find(form)))
    return forms[known.findIndex((found) => found !== undefined)] ?? identity
  }
  /** The page of a lesson, by its place in the course as it is now; that of the first course needs no name. */
  const lessonUrl = ({ course, day }: Claim, lesson = '') => {
    const place = (catalog.find(course)?.lessons.indexOf(lesson) ?? -1) + 1 || day
    return `${siteUrl}${ROUTES.lesson.path.replace(':day', String(place))}${course === catalog.courses[0]?.id ? '' : `?course=${course}`}`
  }
  const firstCourse = catalog.courses[0]?.id ?? FIRST_COURSE
  /** Reads new notices. Call it before anything that depends on them. */
  const refreshed = async () => catalog.notices?.refresh()
  const resolveOne = async (enrolment: Subscription, as: 'retry' | 'sent', operator: Operator) => {
    await refreshed()
    const day = enrolment.sentDays.length + 1
    const plan = await catalog.plan({ ...enrolment, day }, store)
    return store.resolve({
      id: enrolment.id,
      as,
      now: clock.now(),
      audit: audit('resolve', enrolment.id, operator, as),
      next: ({ confirmedAt = 0, ...known }, day) =>
        plan && catalog.next(plan, { ...known, confirmedAt }, day),
      progress: plan && catalog.progress(plan, { ...enrolment, day }),
    })
  }
  const noticeOf = ({ course, courseVersion, day }: Claim) =>
    course === NOTICES ? catalog.notices?.find(baseOf(courseVersion) + day) : undefined
  async function noticeStanding(claim: Claim): Promise<'send' | 'over' | { readonly heldUntil: number }> {
    const { course, courseVersion, day, problem } = claim
    if (course !== NOTICES) return 'send'
    const now = clock.now()
    // A newer notice made this subscriber due again, so don't wait for an operator to decide about this one.
    const isGivenUp =
      problem?.kind === 'parked' || (problem?.kind === 'unknown' && now - problem.since >= KEY_LIFE_MS)
    if (isGivenUp || catalog.notices?.isOver(baseOf(courseVersion) + day, now)) return 'over'
    const notice = noticeOf(claim)
    if (notice?.kind === 'announced' && !(await notices?.isAnnounced(notice.subject))) return 'over'
    const until = await notices?.silentUntil()
    return until === undefined ? 'send' : { heldUntil: Math.min(until, now + HELD_MS) }
  }
  const calls = new Set<Promise<void>>()
  const closing = new AbortController()
  const run = createDispatcher({
    store,
    persistent,
    mailer,
    clock,
    timer,
    random,
    log,
    catalog,
    ...(pace && { pace }),
    ...(isPaused && { isPaused }),
    ...(notices && { standing: noticeStanding }),
    mailFor: (claim, lesson) => {
      const link = unsubscribe(claim)
      const notice = noticeOf(claim)
      if (notice && notices)
        return {
          slots: { ...notices.slots(notice, claim.language), unsubscribeUrl: link },
          unsubscribeUrl: link,
        }
      return {
        slots: {
          lessonUrl: lessonUrl(claim, lesson),
          unsubscribeUrl: link,
        },
        unsubscribeUrl: link,
      }
    },
  })

  let reviewedAt: number | undefined
  /**
   * Takes the courses as they are now to the people who follow the newest: to all of them when the process starts, then
   * once an hour to those whom another process ended with a shorter course.
   */
  async function reviewFollowers(): Promise<void> {
    if (!catalog.courses.some(({ follow }) => follow === 'latest')) return
    const [since, now] = [timer.monotonic(), clock.now()]
    if (reviewedAt !== undefined && since - reviewedAt < HOUR_MS) return
    const cut = reviewedAt !== undefined
    const revise = (enrolment: Subscription) => catalog.revise(enrolment, now)
    for (let after: string | undefined = ''; after !== undefined; await nextTurn())
      after = await store.review({ after, cut, revise })
    reviewedAt = since
  }
  const dispatch: Course['dispatch'] = ({ signal, ...options }) => {
    const both = AbortSignal.any([closing.signal, ...(signal ? [signal] : [])])
    const running = refreshed()
      .then(reviewFollowers)
      .then(() => run({ ...options, signal: both }))
    const ended = running.then(
      () => {},
      () => {},
    )
    calls.add(ended)
    void ended.then(() => calls.delete(ended))
    return running
  }

  const audit = (action: AuditAction, subject: string, operator: Operator, details?: string) =>
    auditEntry({ action, subject, operator, now: clock.now(), random, ...(details && { details }) })

  async function sendConfirmation(
    { address: to, id, course, language }: ConfirmationMail & Pick<Subscription, 'course'>,
    { token, hash }: ReturnType<typeof newToken>,
  ): Promise<SendOutcome> {
    const template = course === NOTICES ? NOTICE_CONFIRMATION_MAIL : 'subscription-confirmation'
    const outcome = await mailer.send({
      template,
      language,
      slots: { confirmUrl: confirmUrl(siteUrl, token, course === firstCourse ? undefined : course) },
      to: { name: undefined, address: to },
      about: `confirmation.${hash}`,
      date: new Date(clock.now()),
    })
    if (outcome.kind !== 'not_configured' && outcome.kind !== 'not_composed')
      await store
        .remember(id, {
          at: clock.now(),
          kind: 'confirmation',
          enrolment: 0,
          day: 0,
          messageId: mailer.messageId({
            template,
            about: `confirmation.${hash}`,
          }),
          ...outcomeFields(outcome),
        })
        .catch(() => {})
    if (outcome.kind === 'sent')
      log.info('confirmation_sent', 'a confirmation mail was sent', { subscription: id })
    else
      log.warn('confirmation_not_sent', 'a confirmation mail was not sent', {
        subscription: id,
        outcome: outcome.kind,
        reason: outcome.reason,
      })
    return outcome
  }

  return {
    async subscribe({ spelling, identity, course = firstCourse, timeZone, language }) {
      const { token, hash } = newToken(random)
      const suppressed = await isSuppressed(identity)
      const id = newId(random)
      const request = await store.requestConfirmation({
        identity: await storedForm(identity),
        mailboxKey: mailboxKey(identity),
        mostADay,
        address: spelling,
        course,
        timeZone,
        language,
        id,
        tokenHash: hash,
        now: clock.now(),
        suppressed,
      })
      if (!mailer.configured)
        return { status: 'pending', sent: false, reason: mailer.reason ?? 'mail is not configured' }
      if (!request.mail && request.exhausted) {
        onExhausted()
        return { status: 'pending', sent: false, reason: EXHAUSTED }
      }
      if (request.mail) {
        // After the answer: its body and its time must not tell whether there was anything to send.
        const sending = new Promise<void>((resolve) =>
          setImmediate(() => {
            void sendConfirmation({ ...request, course }, { token, hash }).then(() => resolve())
          }),
        )
        pending.add(sending)
        void sending.finally(() => pending.delete(sending))
      }
      return { status: 'pending', sent: true }
    },
    async confirmAgain(asked) {
      const identity = await storedForm(asked)
      const found = (await store.findPerson(identity)).findLast(({ state }) => state === 'unconfirmed')
      if (found === undefined) return { kind: 'none' }
      if (!mailer.configured) return { kind: 'not_sent', reason: mailer.reason ?? 'mail is not configured' }
      const { token, hash } = newToken(random)
      const { id, address, course } = found
      const request = await store.requestConfirmation({
        identity,
        mailboxKey: mailboxKey(identity),
        mostADay,
        address,
        course,
        id,
        tokenHash: hash,
        now: clock.now(),
      })
      if (!request.mail && request.exhausted) {
        onExhausted()
        return { kind: 'not_sent', reason: EXHAUSTED }
      }
      if (!request.mail)
        return { kind: 'not_sent', reason: 'a confirmation was mailed to this address not long ago' }
      const outcome = await sendConfirmation({ ...request, course }, { token, hash })
      return outcome.kind === 'sent'
        ? { kind: 'sent', id: outcome.id }
        : { kind: 'not_sent', reason: outcome.reason }
    },
    courses: catalog.courses,
    async enrol({ spelling, identity, course = firstCourse, timeZone, language, key }, operator) {
      if (catalog.find(course) === undefined && !(course === NOTICES && catalog.notices))
        return { enrolled: false, reason: 'no_such_course' }
      if (await isSuppressed(identity)) return { enrolled: false, reason: 'erased' }
      await refreshed()
      return store.enrol({
        begin: await catalog.begin(),
        identity: await storedForm(identity),
        mailboxKey: mailboxKey(identity),
        address: spelling,
        course,
        timeZone,
        language,
        id: newId(random),
        now: clock.now(),
        key,
        audit: operator && ((subject) => audit('enrol', subject, operator)),
      })
    },
    async cancel({ identity, course = firstCourse }, operator) {
      const found = await store.find(await storedForm(identity), course)
      if (found === undefined || !isUnderWay(found)) return false
      await store.unsubscribe({
        id: found.id,
        enrolment: found.enrolment,
        now: clock.now(),
        audit: operator && audit('cancel', found.id, operator),
      })
      return true
    },
    async confirm(token) {
      if (!TOKEN.test(token)) return 'invalid'
      await refreshed()
      return store.confirm({ begin: await catalog.begin(), tokenHash: hashToken(token), now: clock.now() })
    },
    checkToken: (token) =>
      TOKEN.test(token)
        ? store.checkToken({ tokenHash: hashToken(token), now: clock.now() })
        : Promise.resolve('invalid'),
    async unsubscribe(link) {
      const named = readLink(link)
      if (named) await store.unsubscribe({ ...named, now: clock.now() })
    },
    async undoUnsubscribe(link) {
      const named = readLink(link)
      if (named) await store.undoUnsubscribe({ ...named, now: clock.now() })
    },
    dispatch,
    async noticesDue() {
      if (notices === undefined) return false
      await refreshed()
      if (catalog.notices?.head() === 0) return false
      const now = clock.now()
      while ((await notices.store.wake({ now, limit: WAKE_AT_ONCE })) === WAKE_AT_ONCE) await nextTurn()
      return notices.store.isDue(now)
    },
    async retryConfirmations(signal) {
      const now = clock.now()
      const failed = mailer.configured
        ? await store.failedConfirmations({
            from: now - CONFIRMATION_LIFE_MS,
            to: now - CONFIRMATION_PAUSE_MS,
            limit: CONFIRMATIONS_A_RETRY,
          })
        : []
      let sent = 0
      for (const mail of failed) {
        if (signal?.aborted) break
        const { token, hash } = newToken(random)
        // Mail a new token: of the one in the failed mail, only the hash was kept.
        if (!(await store.renewConfirmation({ id: mail.id, tokenHash: hash, now }))) continue
        const course = (await store.findById(mail.id))?.course ?? firstCourse
        const outcome = await sendConfirmation({ ...mail, course }, { token, hash })
        if (outcome.kind !== 'sent') break
        sent += 1
      }
      return sent
    },
    counts: () =>
      store.counts(clock.now(), Math.max(0, ...catalog.courses.map(({ lessons }) => lessons.length))),
    async deletedLessons(id) {
      const lessons = catalog.find(id)?.lessons ?? []
      return [...(await store.sentNames(id))]
        .filter(([lesson]) => !lessons.includes(lesson))
        .map(([lesson, people]) => ({ lesson, people }))
    },
    backlog: () => store.backlog(clock.now()),
    due: (limit) => store.listDue(clock.now(), limit),
    problems: (limit) => store.listProblems(limit),
    find: async (identity, course) => store.find(await storedForm(identity), course),
    findPerson: async (identity) => store.findPerson(await storedForm(identity)),
    async erase(identity, operator = PROGRAM) {
      const hash = suppressionHash(addressKey.reveal(), identity)
      let erased: Erased = { existed: false, related: 0, bytesGone: true }
      for (const form of formsOf(identity)) {
        const { existed, related, bytesGone } = await store.erase({
          identity: form,
          spellings: [...new Set([form, unicodeDomain(form)])].map((one) => one.toLowerCase()),
          recipients: recipientHashes(addressKey.reveal(), form),
          suppressionHash: hash,
          now: clock.now(),
          // One audit entry per person, not one per form of the address.
          ...(form === identity && { audit: audit('erase', hash, operator) }),
        })
        erased = {
          existed: erased.existed || existed,
          related: erased.related + related,
          bytesGone: erased.bytesGone && bytesGone,
        }
      }
      return erased
    },
    history: (id) => store.history(id),
    findById: (id) => store.findById(id),
    async messageIdOf({ id, course, courseVersion, enrolment, sentDays, sentLessons, lessons }) {
      const day = nextDay(sentDays, lessons)
      await refreshed()
      if (day === undefined) return undefined
      const plan = await catalog.plan({ course, courseVersion, sentLessons, day }, store)
      if (plan === undefined || day > plan.lessons.length) return undefined
      return mailer.messageId(lessonOf(plan, { course, subscription: id, enrolment, day }))
    },
    async resolve(id, as, operator = PROGRAM) {
      const found = await store.findById(id)
      return found !== undefined && (await resolveOne(found, as, operator))
    },
    async resolveAll(as, reason, operator = PROGRAM) {
      let resolved = 0
      let after: { readonly since: number; readonly id: string } | undefined
      for (;;) {
        const page = await store.listProblems(RESOLVE_AT_ONCE, after)
        for (const one of page) {
          const { id, problem, nextAttemptAt } = one
          after = { since: problem?.since ?? 0, id }
          const waits = nextAttemptAt === undefined && problem?.kind !== 'bounced'
          if (reason === undefined ? !waits : problem?.reason.includes(reason) !== true) continue
          if (await resolveOne(one, as, operator)) resolved += 1
        }
        if (page.length < RESOLVE_AT_ONCE) return resolved
      }
    },
    prunePlans: async () => store.prunePlans({ keep: await catalog.versions(), now: clock.now() }),
    async stopDispatching() {
      closing.abort(new Error('the platform stops'))
      await Promise.all(calls)
    },
    async close() {
      await Promise.all(pending)
    },
  }
}
