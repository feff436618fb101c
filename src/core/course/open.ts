import { setImmediate as nextTurn } from 'node:timers/promises'
import { formsOf, mailboxKey, quotedForm } from '../address.ts'
import { type AuditAction, auditEntry, type Operator, PROGRAM } from '../audit.ts'
import { systemClock, type Timer } from '../clock.ts'
import { createMails } from '../delivery/messages.ts'
import { HOUR_MS } from '../durations.ts'
import type { Held } from '../mail/holds.ts'
import { NOT_CONFIGURED } from '../mail/mailer.ts'
import { recipientHashes } from '../mail/send-once.ts'
import type { TransactionalMail } from '../mail/transactional.ts'
import { newId } from '../random.ts'
import type { Secret } from '../secret.ts'
import type { Catalog } from './catalog.ts'
import { createConfirmations } from './confirmations.ts'
import type { Course } from './course.ts'
import { FIRST_COURSE } from './definition.ts'
import { createDispatcher, type DispatcherOptions, lessonOf } from './lessons.ts'
import {
  hashToken,
  lessonSignature,
  lessonUrl,
  opensLesson,
  readUnsubscribeLink,
  suppressionHash,
  suppressionHashes,
  unicodeDomain,
  unsubscribeUrl,
} from './links.ts'
import { createNotices, NOTICES, type NoticesOptions } from './notices.ts'
import { exported, type Newcomer } from './people.ts'
import { nextDay } from './schedule.ts'
import type {
  Arrival,
  Begin,
  Claim,
  CourseHost,
  CourseStore,
  Erased,
  Preferences,
  Subscription,
} from './store.ts'
import { isUnderWay } from './subscription.ts'

const ID_BYTES = 12
const TOKEN = /^[A-Za-z0-9_-]{20,64}$/
/** The same for every address, so that it reveals nothing about any of them. */
const EXHAUSTED = 'the platform has mailed as many confirmations as it may in a day; try again later'

const RESOLVE_AT_ONCE = 500
const ADMITTED_AT_ONCE = 200

export interface CourseOptions extends Omit<CourseHost, 'timer' | 'held' | 'signal'> {
  readonly persistent: boolean
  readonly timer?: Timer
  readonly siteUrl: string
  readonly catalog: Catalog
  /** Confirmations that the whole platform mails in 24 hours. */
  readonly confirmationsPerDay?: number
  /** Called when that budget is found used up. */
  readonly onExhausted?: () => void
  readonly pace?: DispatcherOptions['pace']
  /** Asked before the first lesson and every few seconds: are courses paused? */
  readonly isPaused?: () => Promise<boolean>
  readonly held?: Held
  /** Resolves the record of a queued sign-in mail anew; undefined: this opener sends no queued mails. */
  readonly again?: TransactionalMail['again']
  /** Signs unsubscribe links. */
  readonly linkKey: Secret
  /** Keys that signed links before, and are still accepted. */
  readonly oldLinkKeys?: readonly Secret[]
  /** Parts needed to mail subscribers of incidents; undefined: this opener mails them nothing. */
  readonly notices?: Pick<NoticesOptions, 'isSilent' | 'slots'>
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
  held = async () => undefined,
  again,
  notices,
  addressKey = linkKey,
}: CourseOptions): Course {
  const pending = new Set<Promise<unknown>>()
  /** Goes on after the answer; closing waits for it. A fault leaves the row, which the next process takes. */
  const inBackground = (work: Promise<unknown>) => {
    const ended = work.catch((error: unknown) =>
      log.warn('message_interrupted', 'a mail could not be sent or recorded now, and is tried again', {
        fault: error instanceof Error ? error.name : 'unknown',
      }),
    )
    pending.add(ended)
    void ended.finally(() => pending.delete(ended))
  }
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
  const pageOf = ({ course: id, day, language }: Claim, lesson = '') => {
    const course = catalog.find(id)
    if (course?.pages === false) return undefined
    const place = (course?.lessons.indexOf(lesson) ?? -1) + 1 || day
    return lessonUrl(siteUrl, place, {
      course: id === catalog.courses[0]?.id ? undefined : id,
      t: course?.pages === 'link' ? lessonSignature(linkKey.reveal(), id, lesson) : undefined,
      language,
    })
  }
  const firstCourse = catalog.courses[0]?.id ?? FIRST_COURSE
  const resolveOne = async (enrolment: Subscription, as: 'retry' | 'sent', operator: Operator) => {
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
  /** The lessons that were sent, by name. */
  const sentNames = async (one: Subscription) => {
    const sent = one.sentDays.length
    const plan = await catalog.plan({ ...one, day: sent + 1 }, store)
    return plan?.lessons.slice(0, sent) ?? one.sentLessons ?? []
  }
  const arrivalOf = async (one: Newcomer, begin: Begin) => {
    const { line, course: id, timeZone, language, consent, lastSentAt, identity, spelling: address } = one
    const now = clock.now()
    const start = begin({ course: id, confirmedAt: now, timeZone })
    if (start === undefined) return undefined
    const course = catalog.find(id)
    const { confirmedAt, progress, ...goes } = course
      ? catalog.arrival(course, one, now)
      : { ...start, confirmedAt: now, progress: undefined }
    return {
      ...{ line, course: id, timeZone, language, consent, lastSentAt, address, confirmedAt, progress },
      id: newId(random, ID_BYTES),
      identity: await storedForm(identity),
      mailboxKey: mailboxKey(identity),
      sent: course ? one.sent : 0,
      start: { ...start, ...goes },
    }
  }
  const prefer = async (enrolment: Subscription, wanted: Preferences, operator?: Operator) => {
    const { timeZone: to, language } = wanted
    const plan = to && (await catalog.plan({ ...enrolment, day: enrolment.sentDays.length + 1 }, store))
    const now = clock.now()
    const details = [language, to].filter(Boolean).join(', ')
    await store.set({
      id: enrolment.id,
      ...wanted,
      now,
      moved: (current) => (plan && to ? catalog.moved(plan, current, { to, now }) : undefined),
      audit: operator && audit('set', enrolment.id, operator, details),
    })
  }
  /** An enrolment that has not begun will have as many lessons as its course has. */
  const withLessons = <Found extends Subscription | undefined>(found: Found): Found =>
    found?.state === 'unconfirmed'
      ? { ...found, lessons: catalog.find(found.course)?.lessons.length ?? 0 }
      : found
  const calls = new Set<Promise<void>>()
  const closing = new AbortController()
  const host: CourseHost = { clock, timer, random, log, store, mailer, held, signal: closing.signal }
  const linkKeyNow = linkKey.reveal()
  const run = createDispatcher(host, {
    ...{ store, persistent, mailer, catalog, pace, isPaused },
    mailFor: (claim, lesson) => {
      const { id, enrolment, language } = claim
      const link = unsubscribeUrl(siteUrl, linkKeyNow, id, enrolment, { language })
      const page = pageOf(claim, lesson)
      return {
        slots: { ...(page !== undefined && { lessonUrl: page }), unsubscribeUrl: link },
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

  const mails = again === undefined ? [] : createMails(host, again)
  const confirmations = createConfirmations(host, { siteUrl, firstCourse, keys: [linkKey, ...oldLinkKeys] })
  const subscribersMails =
    notices &&
    createNotices(host, {
      ...{ ...notices, pace },
      unsubscribeUrl: ({ id, enrolment, language }) =>
        unsubscribeUrl(siteUrl, linkKeyNow, id, enrolment, { course: NOTICES, language }),
    })
  const senders = [confirmations.engine, ...mails, ...(subscribersMails ? [subscribersMails] : [])]
  const deliverMessages = async () => {
    const sent = await Promise.all(senders.map((sender) => sender.wake()))
    return sent.reduce((sum, one) => sum + one, 0)
  }

  const dispatch: Course['dispatch'] = ({ signal, ...options }) => {
    // Where no daemon runs, calls from outside are the only occasion.
    inBackground(deliverMessages())
    const both = AbortSignal.any([closing.signal, ...(signal ? [signal] : [])])
    const running = reviewFollowers().then(() => run({ ...options, signal: both }))
    const ended = running.then(
      () => {},
      () => {},
    )
    calls.add(ended)
    void ended.then(() => calls.delete(ended))
    return running
  }

  const audit = (action: AuditAction, subject: string | undefined, operator: Operator, details?: string) =>
    auditEntry({
      ...{ action, operator, now: clock.now(), random },
      ...(subject !== undefined && { subject }),
      ...(details && { details }),
    })

  /** Stores a request for a confirmation together with the message that mails it; or why nobody is mailed now. */
  async function request(
    asked: Omit<
      Parameters<CourseStore['requestConfirmation']>[0],
      'now' | 'mailboxKey' | 'mostADay' | 'tokenHash' | 'message'
    >,
    /** The identity as it was asked for. */
    identity: string,
  ) {
    const { message, exhausted } = await store.requestConfirmation({
      ...asked,
      ...confirmations.create(newId(random, ID_BYTES)),
      mailboxKey: mailboxKey(identity),
      mostADay,
      now: clock.now(),
    })
    if (!mailer.configured) return { reason: NOT_CONFIGURED }
    if (exhausted) onExhausted()
    return { message, reason: exhausted ? EXHAUSTED : undefined }
  }
  return {
    async subscribe({ spelling, identity, course = firstCourse, timeZone, language }) {
      const since = timer.monotonic()
      const suppressed = await isSuppressed(identity)
      const { message, reason } = await request(
        {
          identity: await storedForm(identity),
          address: spelling,
          course,
          timeZone,
          language,
          id: newId(random, ID_BYTES),
          suppressed,
          withoutMail: !mailer.configured,
        },
        identity,
      )
      if (reason !== undefined) return { status: 'pending', sent: false, reason }
      // After the answer: its body and its time must not tell whether there was anything to send.
      if (message) inBackground(nextTurn().then(() => confirmations.engine.deliver(message, since)))
      return { status: 'pending', sent: true }
    },
    async confirmAgain(asked, { wait = !persistent } = {}) {
      const identity = await storedForm(asked)
      const found = (await store.findPerson(identity)).findLast(({ state }) => state === 'unconfirmed')
      if (found === undefined) return { kind: 'none' }
      if (!mailer.configured) return { kind: 'not_sent', reason: NOT_CONFIGURED }
      const since = timer.monotonic()
      const { id, address, course } = found
      const { message, reason } = await request({ identity, address, course, id }, identity)
      if (message === undefined)
        return {
          kind: 'not_sent',
          reason: reason ?? 'a confirmation was mailed to this address not long ago',
        }
      const delivery = confirmations.engine.deliver(message, since)
      if (!wait) {
        inBackground(delivery)
        return { kind: 'sent', id: confirmations.messageIdOf(message) ?? message.id, queued: true }
      }
      const outcome = await delivery
      if (outcome.kind === 'sent') return { kind: 'sent', id: outcome.id }
      return { kind: 'not_sent', reason: ('reason' in outcome && outcome.reason) || 'it was not sent' }
    },
    courses: catalog.courses,
    async enrol({ spelling, identity, course = firstCourse, timeZone, language, key }, operator) {
      if (catalog.find(course) === undefined && course !== NOTICES)
        return { enrolled: false, reason: 'no_such_course' }
      if (await isSuppressed(identity)) return { enrolled: false, reason: 'erased' }
      return store.enrol({
        begin: await catalog.begin(),
        identity: await storedForm(identity),
        mailboxKey: mailboxKey(identity),
        address: spelling,
        course,
        timeZone,
        language,
        id: newId(random, ID_BYTES),
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
    async set({ course, language, timeZone, ...who }, operator) {
      const known =
        'id' in who
          ? [(await store.findById(who.id)) ?? []].flat()
          : await store.findPerson(await storedForm(who.identity))
      const found = known.filter((one) => course === undefined || one.course === course)
      for (const enrolment of found) await prefer(enrolment, { language, timeZone }, operator)
      return found.length
    },
    async *people(course) {
      for (let after = ''; ; await nextTurn()) {
        const page = await store.page(after)
        const wanted = page.filter((one) => course === undefined || one.course === course)
        yield await Promise.all(wanted.map(async (one) => exported(withLessons(one), await sentNames(one))))
        const last = page.at(-1)
        if (last === undefined) return
        after = last.id
      }
    },
    async *admit(people, { dryRun, file }, operator) {
      const begin = await catalog.begin()
      const entry = audit('import', undefined, operator, `${people.length} people from ${file}`)
      for (let start = 0; start < people.length; start += ADMITTED_AT_ONCE) {
        const chunk = people.slice(start, start + ADMITTED_AT_ONCE)
        const erased = await Promise.all(chunk.map(({ identity }) => isSuppressed(identity)))
        const arrivals: (Arrival & Pick<Newcomer, 'line'>)[] = []
        for (const one of chunk.filter((_, index) => !erased[index])) {
          const arrival = await arrivalOf(one, begin)
          if (arrival) arrivals.push(arrival)
        }
        const became = await store.admit({ arrivals, now: clock.now(), dryRun, audit: entry })
        yield [
          ...chunk.flatMap(({ line }, index) => (erased[index] ? { line, became: 'erased' as const } : [])),
          ...arrivals.flatMap(({ line }, index) => ({ line, became: became[index] ?? 'known' })),
        ]
      }
    },
    async preferByLink(link, wanted) {
      const named = readLink(link)
      const found = named && (await store.findById(named.id))
      if (found) await prefer(found, wanted)
    },
    lessonOfLink({ course: id, t }) {
      const keys = [linkKey, ...oldLinkKeys].map((key) => key.reveal())
      return catalog.find(id)?.lessons.find((lesson) => keys.some((key) => opensLesson(key, id, lesson, t)))
    },
    async confirm(token) {
      if (!TOKEN.test(token)) return 'invalid'
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
    deliverMessages,
    wake: () => inBackground(deliverMessages()),
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
    find: async (identity, course) => withLessons(await store.find(await storedForm(identity), course)),
    findPerson: async (identity) =>
      (await store.findPerson(await storedForm(identity))).map((one) => withLessons(one)),
    async erase(identity, operator = PROGRAM) {
      const hash = suppressionHash(addressKey.reveal(), identity)
      let erased: Erased = { existed: false, related: 0, bytesGone: true }
      for (const form of new Set([...formsOf(identity), quotedForm(identity)])) {
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
    findById: async (id) => withLessons(await store.findById(id)),
    async messageIdOf({ id, course, courseVersion, enrolment, sentDays, sentLessons, lessons }) {
      const day = nextDay({ sentDays, lessons })
      if (day === undefined) return undefined
      const plan = await catalog.plan({ course, courseVersion, sentLessons, day }, store)
      if (plan === undefined || day > plan.lessons.length) return undefined
      return mailer.messageId(lessonOf(plan, { course, id, enrolment, day }))
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
