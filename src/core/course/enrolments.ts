import { setImmediate as nextTurn } from 'node:timers/promises'
import { formsOf, mailboxKey, quotedForm } from '../address.ts'
import { auditEntry, type Operator, PROGRAM } from '../audit.ts'
import { PlatformError } from '../errors.ts'
import { recipientHashes } from '../mail/send-once.ts'
import { NOTICES } from './definition.ts'
import { type CourseHost, erasureHashesOf, firstCourse, randomId, storedForm } from './host.ts'
import { type LinkParts, opensLesson, readUnsubscribeLink, suppressionHash, unicodeDomain } from './links.ts'
import { type ExportedPerson, exported, type Newcomer } from './people.ts'
import type { EnrolAnswer, Erased } from './store.ts'
import {
  type Admitted,
  type Begin,
  type CourseRequest,
  isUnderWay,
  type Preferences,
  type Subscription,
} from './subscription.ts'
import { endedByBounce } from './transitions/leave.ts'

const ADMITTED_AT_ONCE = 200

/** What the enrolments of a person, or one of them, are to have. */
type Wish = Omit<CourseRequest, 'identity' | 'spelling'> &
  (Pick<CourseRequest, 'identity'> | { readonly id: string })

/** How people get into a course without a confirmation, change what they have, and leave: by operators, programs and links. */
export function createEnrolments(host: CourseHost) {
  const { clock, store, catalog, keys, addressKey, areLinksInDoubt } = host
  const first = firstCourse(host)
  const readLink = (link: LinkParts) => {
    // Try every key even after a match, so that the time taken does not show which one matched.
    const found = keys.map((key) => readUnsubscribeLink(key.reveal(), link)).find((one) => one)
    if (found || !areLinksInDoubt) return found
    throw new PlatformError('store_unavailable', 'This link cannot be read now; use it again later.')
  }
  const byLink = (change: 'unsubscribe' | 'undoUnsubscribe') => async (link: LinkParts) => {
    const found = readLink(link)
    if (found) await store[change]({ ...found, now: clock.now() })
  }
  /** The plan of an enrolment at the lesson after those sent. */
  const planOf = (one: Subscription) => catalog.plan({ ...one, day: one.sentDays.length + 1 }, store)
  const sentNames = async (one: Subscription) =>
    (await planOf(one))?.lessons.slice(0, one.sentDays.length) ?? one.sentLessons ?? []
  /** An enrolment that has not begun will have as many lessons as its course has. */
  const withLessons = <Found extends Subscription | undefined>(found: Found): Found =>
    found?.state === 'unconfirmed'
      ? { ...found, lessons: catalog.find(found.course)?.lessons.length ?? 0 }
      : found

  async function arrivalOf(one: Newcomer, begin: Begin) {
    const { course: id, timeZone, identity, spelling: address, subscription } = one
    const now = clock.now()
    const start = begin({ course: id, confirmedAt: now, timeZone })
    if (start === undefined) return undefined
    const course = catalog.find(id)
    const { confirmedAt, progress, ...goes } = course
      ? await catalog.arrival(course, one, now)
      : { ...start, confirmedAt: now, progress: undefined }
    return {
      ...one,
      address,
      confirmedAt,
      progress,
      ...(subscription && !(await store.findById(subscription.id))
        ? { id: subscription.id, before: Math.max(0, subscription.enrolment - 1) }
        : { id: randomId(host) }),
      identity: await storedForm(host, identity),
      mailboxKey: mailboxKey(identity),
      erasureHashes: erasureHashesOf(host, identity),
      sent: course ? one.sent : 0,
      start: { ...start, ...goes },
    }
  }

  async function prefer(enrolment: Subscription, wanted: Preferences, operator?: Operator): Promise<void> {
    const { timeZone: to, language } = wanted
    const { id: subject } = enrolment
    const plan = to && (await planOf(enrolment))
    const now = clock.now()
    const details = [language, to].filter(Boolean).join(', ') || undefined
    await store.set({
      id: subject,
      ...wanted,
      now,
      moved: (current) => (plan && to ? catalog.moved(plan, current, { to, now }) : undefined),
      audit: operator && auditEntry(host, { action: 'set', subject, operator, details }),
    })
  }

  return {
    /**
     * Begins a course for somebody who agreed to it elsewhere, without a confirmation mail. The same `key` again
     * answers the same and changes nothing. With an `operator`, here and below, the audit log has it.
     */
    async enrol(
      asked: CourseRequest & { readonly key?: string | undefined },
      operator?: Operator,
    ): Promise<EnrolAnswer> {
      const { spelling: address, identity, course = first, timeZone, language, key } = asked
      if (catalog.find(course) === undefined && course !== NOTICES)
        return { enrolled: false, reason: 'no_such_course' }
      return store.enrol({
        begin: await catalog.begin(),
        address,
        course,
        timeZone,
        language,
        key,
        identity: await storedForm(host, identity),
        mailboxKey: mailboxKey(identity),
        erasureHashes: erasureHashesOf(host, identity),
        id: randomId(host),
        now: clock.now(),
        audit: operator && ((subject) => auditEntry(host, { action: 'enrol', subject, operator })),
      })
    },
    /** Ends a course for a person, as an unsubscribe does; false: there was nothing to end. */
    async cancel(
      { identity, course = first }: Pick<CourseRequest, 'identity' | 'course'>,
      operator?: Operator,
    ): Promise<boolean> {
      const found = await store.find(await storedForm(host, identity), course)
      if (found === undefined) return false
      // One that a shorter course ended goes on when the course is long again.
      const goesOn = found.state === 'confirmed' && found.promised !== undefined
      if (!(isUnderWay(found) || goesOn || endedByBounce(found))) return false
      const audit = operator && auditEntry(host, { action: 'cancel', subject: found.id, operator })
      await store.unsubscribe({ id: found.id, now: clock.now(), audit })
      return true
    },
    /** Changes a person's enrolments, or one by course or id; lessons not tried yet follow. Gives how many. */
    async set({ course, language, timeZone, ...who }: Wish, operator?: Operator): Promise<number> {
      const known =
        'id' in who
          ? [(await store.findById(who.id)) ?? []].flat()
          : await store.findPerson(await storedForm(host, who.identity))
      const found = known.filter((one) => course === undefined || one.course === course)
      for (const enrolment of found) await prefer(enrolment, { language, timeZone }, operator)
      return found.length
    },
    /** Every enrolment, or those in one course, a page at a time. */
    async *people(course?: string): AsyncGenerator<readonly ExportedPerson[]> {
      for (let after: string | undefined = ''; after !== undefined; await nextTurn()) {
        const page: readonly Subscription[] = await store.page(after)
        const wanted = page.filter((one) => course === undefined || one.course === course)
        yield await Promise.all(wanted.map(async (one) => exported(withLessons(one), await sentNames(one))))
        after = page.at(-1)?.id
      }
    },
    /** Imports people, a few hundred a transaction, and gives what became of each; a second time changes nothing. */
    async *admit(
      people: readonly Newcomer[],
      { dryRun, file }: { readonly dryRun: boolean; readonly file: string },
      operator: Operator,
    ): AsyncGenerator<readonly { readonly line: number; readonly became: Admitted }[]> {
      const begin = await catalog.begin()
      const details = `${people.length} people from ${file}`
      const audit = auditEntry(host, { action: 'import', operator, details })
      for (let start = 0; start < people.length; start = await nextTurn(start + ADMITTED_AT_ONCE)) {
        const chunk = people.slice(start, start + ADMITTED_AT_ONCE)
        const read = await Promise.all(chunk.map((one) => arrivalOf(one, begin)))
        const arrivals = read.filter((one) => one !== undefined)
        const became = await store.admit({ arrivals, now: clock.now(), dryRun, audit })
        yield arrivals.map(({ line }, index) => ({ line, became: became[index] ?? 'known' }))
      }
    },
    /** Changes the language or time zone of the subscription that an unsubscribe link names; never tells whether it did. */
    async preferByLink(link: LinkParts, wanted: Preferences): Promise<void> {
      const read = readLink(link)
      const found = read && (await store.findById(read.id))
      if (found) await prefer(found, wanted)
    },
    isGenuine: (link: LinkParts) => readLink(link) !== undefined,
    /** Never tells whether the link was genuine. */
    unsubscribe: byLink('unsubscribe'),
    /** Undoes an unsubscribe made through this very link; never tells whether it did. */
    undoUnsubscribe: byLink('undoUnsubscribe'),
    /** The lesson whose page a signed link opens; undefined for a link that we did not make. */
    lessonOfLink({ course: id, t }: { readonly course: string; readonly t: string }): string | undefined {
      const opens = (lesson: string) => keys.some((key) => opensLesson(key.reveal(), id, lesson, t))
      return catalog.find(id)?.lessons.find(opens)
    },
    /** The enrolment of a person in a course; without one, the oldest. */
    find: async (identity: string, course?: string) =>
      withLessons(await store.find(await storedForm(host, identity), course)),
    findPerson: async (identity: string) =>
      (await store.findPerson(await storedForm(host, identity))).map((one) => withLessons(one)),
    findById: async (id: string) => withLessons(await store.findById(id)),
    /** `operator` is who the audit log names; default: the embedding program. */
    async erase(identity: string, operator: Operator = PROGRAM): Promise<Erased> {
      const hash = suppressionHash(addressKey.reveal(), identity)
      let erased: Erased = { existed: false, related: 0, bytesGone: true }
      const now = clock.now()
      for (const form of new Set([...formsOf(identity), quotedForm(identity)])) {
        const { existed, related, bytesGone } = await store.erase({
          identity: form,
          spellings: [...new Set([form, unicodeDomain(form)])].map((one) => one.toLowerCase()),
          recipients: recipientHashes(addressKey.reveal(), form),
          suppressionHash: hash,
          now,
          // One audit entry per person, not one per form of the address.
          ...(form === identity && { audit: auditEntry(host, { action: 'erase', subject: hash, operator }) }),
        })
        erased = {
          existed: erased.existed || existed,
          related: erased.related + related,
          bytesGone: erased.bytesGone && bytesGone,
        }
      }
      return erased
    },
  }
}
