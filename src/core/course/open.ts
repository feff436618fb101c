import { setImmediate as nextTurn } from 'node:timers/promises'
import { formsOf, mailboxKey } from '../address.ts'
import { type AuditAction, auditEntry, type Operator, PROGRAM } from '../audit.ts'
import { type Clock, systemClock, type Timer } from '../clock.ts'
import { type Delivery, KEY_LIFE_MS } from '../delivery/delivery.ts'
import { createMails, type MessageHost } from '../delivery/messages.ts'
import { HOUR_MS, MINUTE_MS } from '../durations.ts'
import type { Log } from '../log.ts'
import type { Held } from '../mail/holds.ts'
import type { Mailer } from '../mail/mailer.ts'
import { recipientHashes } from '../mail/sent-mail.ts'
import type { TransactionalMail } from '../mail/transactional.ts'
import type { Random } from '../random.ts'
import type { Secret } from '../secret.ts'
import type { Catalog } from './catalog.ts'
import { createConfirmations } from './confirmations.ts'
import type { Course } from './course.ts'
import { FIRST_COURSE } from './definition.ts'
import { createDispatcher, type DispatcherOptions } from './dispatcher.ts'
import { lessonOf } from './lessons.ts'
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
import { baseOf, NOTICES, type Notice, type NoticeStore } from './notices.ts'
import { exported, type Newcomer } from './people.ts'
import { nextDay } from './schedule.ts'
import type { Arrival, Begin, Claim, CourseStore, Erased, Preferences, Subscription } from './store.ts'
import { isUnderWay } from './subscription.ts'

const ID_BYTES = 12
const TOKEN = /^[A-Za-z0-9_-]{20,64}$/
/** The same for every address, so that it reveals nothing about any of them. */
const EXHAUSTED = 'the platform has mailed as many confirmations as it may in a day; try again later'

/** Random and URL-safe. Never with a hyphen first: a command would take it for an option. */
function newId(random: Random): string {
  const id = Buffer.from(random.bytes(ID_BYTES)).toString('base64url')
  return id.startsWith('-') ? `0${id.slice(1)}` : id
}
const RESOLVE_AT_ONCE = 500
const WAKE_AT_ONCE = 500
const ADMITTED_AT_ONCE = 200
/** A notice held back by a silence is looked at again after this, because the silence may end early. */
const HELD_MS = 10 * 60 * 1000
const NOT_WANTED: Delivery = { kind: 'over', reason: 'it was over before it could be sent' }

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
  /** Asked before the first lesson and every few seconds: are courses paused? */
  readonly isPaused?: () => Promise<boolean>
  readonly held?: Held
  /** Resolves the record of a queued sign-in mail anew; undefined: this opener sends no queued mails. */
  readonly again?: TransactionalMail['again']
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
  const unsubscribe = ({ subscription, enrolment, course, language }: Claim) =>
    unsubscribeUrl(siteUrl, linkKey.reveal(), subscription, enrolment, {
      course: course === NOTICES ? course : undefined,
      language,
    })
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
  /** The lessons that were sent, by name; none for notices, which have no names. */
  const sentNames = async (one: Subscription) => {
    const sent = one.sentDays.length
    const plan = one.course === NOTICES ? undefined : await catalog.plan({ ...one, day: sent + 1 }, store)
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
      id: newId(random),
      identity: await storedForm(identity),
      mailboxKey: mailboxKey(identity),
      sent: course ? one.sent : 0,
      start: { ...start, ...goes },
    }
  }
  const prefer = async (enrolment: Subscription, wanted: Preferences, operator?: Operator) => {
    await refreshed()
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
  const noticeOf = ({ course, courseVersion, day }: Claim) =>
    course === NOTICES ? catalog.notices?.find(baseOf(courseVersion) + day) : undefined
  async function noticeStanding(claim: Claim): Promise<Delivery | undefined> {
    const { course, courseVersion, day, problem } = claim
    if (course !== NOTICES) return undefined
    const now = clock.now()
    // A newer notice made this subscriber due again, so don't wait for an operator to decide about this one.
    const isGivenUp =
      problem?.kind === 'parked' || (problem?.kind === 'unknown' && now - problem.since >= KEY_LIFE_MS)
    if (isGivenUp || catalog.notices?.isOver(baseOf(courseVersion) + day, now)) return NOT_WANTED
    const notice = noticeOf(claim)
    const announced = notice?.kind === 'announced' && notice.facts.cause === undefined
    if (announced && !(await notices?.isAnnounced(notice.facts.about ?? notice.subject))) return NOT_WANTED
    if (await held('notice')) return { kind: 'waits', until: now + MINUTE_MS }
    const until = await notices?.silentUntil()
    return until === undefined ? undefined : { kind: 'waits', until: Math.min(until, now + HELD_MS) }
  }
  const calls = new Set<Promise<void>>()
  const closing = new AbortController()
  const host: MessageHost = { clock, timer, random, log, held }
  const run = createDispatcher(host, {
    ...{ store, persistent, mailer, catalog, pace },
    isPaused: async (stream) =>
      stream === 'course' ? ((await isPaused?.()) ?? false) : (await held(stream)) !== undefined,
    standing: notices && noticeStanding,
    mailFor: (claim, lesson) => {
      const link = unsubscribe(claim)
      const notice = noticeOf(claim)
      if (notice && notices)
        return {
          slots: { ...notices.slots(notice, claim.language), unsubscribeUrl: link },
          unsubscribeUrl: link,
        }
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

  const mails = again === undefined ? [] : createMails(host, { store, mailer, again, signal: closing.signal })
  const confirmations = createConfirmations(host, {
    store,
    mailer,
    siteUrl,
    firstCourse,
    keys: [linkKey, ...oldLinkKeys],
    signal: closing.signal,
  })
  const deliverMessages = async () => {
    const sent = await Promise.all([confirmations.engine, ...mails].map((engine) => engine.wake()))
    return sent.reduce((sum, one) => sum + one, 0)
  }

  const dispatch: Course['dispatch'] = ({ signal, ...options }) => {
    // Where no daemon runs, calls from outside are the only occasion.
    if (options.notices !== true) inBackground(deliverMessages())
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

  const audit = (action: AuditAction, subject: string | undefined, operator: Operator, details?: string) =>
    auditEntry({
      ...{ action, operator, now: clock.now(), random },
      ...(subject !== undefined && { subject }),
      ...(details && { details }),
    })

  /** Stores a request for a confirmation together with the message that mails it. */
  const request = (
    asked: Omit<
      Parameters<CourseStore['requestConfirmation']>[0],
      'now' | 'mailboxKey' | 'mostADay' | 'tokenHash' | 'message'
    >,
    /** The identity as it was asked for. */
    identity: string,
  ) =>
    store.requestConfirmation({
      ...asked,
      ...confirmations.create(newId(random)),
      mailboxKey: mailboxKey(identity),
      mostADay,
      now: clock.now(),
    })
  return {
    async subscribe({ spelling, identity, course = firstCourse, timeZone, language }) {
      const since = timer.monotonic()
      const suppressed = await isSuppressed(identity)
      const answer = await request(
        {
          identity: await storedForm(identity),
          address: spelling,
          course,
          timeZone,
          language,
          id: newId(random),
          suppressed,
          withoutMail: !mailer.configured,
        },
        identity,
      )
      if (!mailer.configured)
        return { status: 'pending', sent: false, reason: mailer.reason ?? 'mail is not configured' }
      if (!answer.mail && answer.exhausted) {
        onExhausted()
        return { status: 'pending', sent: false, reason: EXHAUSTED }
      }
      const message = answer.mail ? answer.message : undefined
      // After the answer: its body and its time must not tell whether there was anything to send.
      if (message) inBackground(nextTurn().then(() => confirmations.engine.deliver(message, since)))
      return { status: 'pending', sent: true }
    },
    async confirmAgain(asked, { wait = !persistent } = {}) {
      const identity = await storedForm(asked)
      const found = (await store.findPerson(identity)).findLast(({ state }) => state === 'unconfirmed')
      if (found === undefined) return { kind: 'none' }
      if (!mailer.configured) return { kind: 'not_sent', reason: mailer.reason ?? 'mail is not configured' }
      const since = timer.monotonic()
      const { id, address, course } = found
      const answer = await request({ identity, address, course, id }, identity)
      if (!answer.mail && answer.exhausted) {
        onExhausted()
        return { kind: 'not_sent', reason: EXHAUSTED }
      }
      const message = answer.mail ? answer.message : undefined
      if (message === undefined)
        return { kind: 'not_sent', reason: 'a confirmation was mailed to this address not long ago' }
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
      await refreshed()
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
      await refreshed()
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
    findById: async (id) => withLessons(await store.findById(id)),
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
