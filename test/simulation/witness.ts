import { FIRST_COURSE, type Plan } from '../../src/core/course/definition.ts'
import type { Settlement, Subscription } from '../../src/core/course/subscription.ts'
import { DAY_MS } from '../../src/core/durations.ts'
import type { Message } from '../../src/core/mail/mailer.ts'
import type { Calendar } from './calendar.ts'
import type { Curriculum, Release } from './courses.ts'
import { MOST_SKEW_MS, type Process, REFUSES_US } from './provider.ts'
import type { VirtualTime } from './virtual-time.ts'

const MINUTE_MS = 60 * 1000
const MOST_MISTAKEN = 24

export interface Violation {
  readonly invariant: string
  readonly about: string
  readonly at: number
}

/** Facts about one lesson of an enrolment: subscription, enrolment, day. */
interface Lesson {
  deliveries: number
  /** Its sent mark is durable. */
  recorded: boolean
  /** An attempt of it was lost, or its answer was: over SMTP the next one may repeat it. */
  unsettled: boolean
  /** No attempt before this much time has passed, unless the clock was stepped since. */
  notBefore: number
  refusedForGood: boolean
  /** It was handed over at least once. */
  tried: boolean
  /** The operator must decide: it was parked before its subscription ended. */
  parked: boolean
  /** The lesson after it comes its spacing later, and not before. */
  sentAt: number | undefined
  key: string | undefined
  /** Of the message that was handed over last. */
  subject: string | undefined
  /** The name of the lesson in the attempt before; undefined: that was refused. */
  out: string | undefined
  /** The name of one whose outcome was lost. */
  lost: string | undefined
}

/** A person in a course, from their confirmation on. */
export interface Enrolled {
  readonly address: string
  readonly at: number
  readonly course: string
  /** Release of the courses that they subscribed under. */
  readonly release: number
  readonly timeZone: string | undefined
  readonly language: string | undefined
}

/** The one who was there: sees everything from outside, knows nothing of how it is done, and says what must never be. */
export function createWitness(input: {
  readonly kind: 'api' | 'smtp'
  readonly time: VirtualTime
  readonly calendar: Calendar
  readonly curriculum: Pick<Curriculum, 'releases' | 'subjectOf'>
}) {
  const { kind, time, calendar, curriculum } = input
  const { releases } = curriculum
  const violations: Violation[] = []
  const trace: { readonly at: number; readonly about: string; readonly what: string }[] = []
  const lessons = new Map<string, Lesson>()
  const enrolled = new Map<string, Enrolled>()
  const ended = new Set<string>()
  /** The course was started over: what is left of the enrolment before is nobody's. */
  const superseded = new Set<string>()
  const dead = new Set<string>()
  const inCall = new Map<string, number>()
  /** The names that each number of a lesson was handed over under, by enrolment. */
  const named = new Map<string, Map<number, Set<string>>>()
  /** An operator decided about a lesson after the course may have changed. */
  const decided = new Set<string>()
  const links = new Map<string, { readonly s: string; readonly t: string }>()
  const held = new Map<Process, Set<Lesson>>()
  let latest = 0
  let steppedAt = Number.NEGATIVE_INFINITY
  let delivered = 0
  let parkedForUs = 0

  const lessonOf = (key: string): Lesson => {
    let lesson = lessons.get(key)
    if (lesson === undefined) {
      lesson = {
        deliveries: 0,
        recorded: false,
        unsettled: false,
        notBefore: 0,
        refusedForGood: false,
        tried: false,
        parked: false,
        sentAt: undefined,
        key: undefined,
        subject: undefined,
        out: undefined,
        lost: undefined,
      }
      lessons.set(key, lesson)
    }
    return lesson
  }
  const note = (about: string, what: string) => {
    trace.push({ at: time.elapsed(), about, what })
    if (trace.length > 20_000) trace.splice(0, 10_000)
  }
  function lose(lesson: Lesson): void {
    lesson.unsettled = true
    lesson.lost ??= lesson.out
  }
  /** Records that an attempt's outcome never reached the store: the next attempt may repeat it. */
  function forget(lesson: Lesson): void {
    lose(lesson)
    lesson.refusedForGood = lesson.parked
    lesson.notBefore = 0
  }
  function violation(invariant: string, about: string): void {
    note(about, `VIOLATION: ${invariant}`)
    violations.push({ invariant, about, at: time.elapsed() })
  }

  const coursesOf = ({ course }: Enrolled) =>
    releases.map(({ courses }) => courses.find(({ id }) => id === course))
  /** The plans that an enrolment may follow: the course as it was at the start, or any of its editions. */
  const plansOf = (one: Enrolled, counts: (release: Release) => boolean = () => true) => {
    const editions = coursesOf(one)
    const begun = editions[one.release]
    const all =
      begun?.follow === 'start' ? [begun] : editions.filter((_, n) => releases[n] && counts(releases[n]))
    return all.flatMap((plan) => plan ?? [])
  }
  const lastingPlansOf = (one: Enrolled) => plansOf(one, ({ isRollback }) => isRollback !== true)
  /** Lessons that were deleted after somebody had them count as well. */
  const mostLessons = (one: Enrolled) =>
    Math.max(...plansOf(one).map((plan) => plan.lessons.length)) + releases.length
  /** In a course that everybody follows, progress belongs to names: each lesson once, in the order of the course as it is. */
  /** By one of the editions: a process that was killed may have claimed it under an earlier one. */
  function followsByName(
    enrolment: string,
    day: number,
    name: string,
    editions: readonly (readonly string[])[],
  ): void {
    let names = named.get(enrolment)
    if (names === undefined) {
      names = new Map()
      named.set(enrolment, names)
    }
    names.set(day, (names.get(day) ?? new Set<string>()).add(name))
    const earlier = Array.from({ length: day - 1 }, (_, index) => names.get(index + 1))
    // A lesson whose attempts had two names, because the course changed between them, may have been either.
    if (decided.has(enrolment) || earlier.some((one) => one?.size !== 1)) return
    const had = new Set(earlier.flatMap((one) => [...(one ?? [])]))
    if (had.has(name)) violation('a lesson came again under another number', `${enrolment}.${day}`)
    const skips = (edition: readonly string[]) =>
      !edition.includes(name) || edition.slice(0, edition.indexOf(name)).some((one) => !had.has(one))
    if (editions.every(skips)) violation('a lesson of the course was skipped', `${enrolment}.${day}`)
  }
  /**
   * The first and the last moment at which a lesson may be due: by each plan that may count, from the confirmation, or
   * if the cadence changed, from when the lesson before it may have been due.
   */
  const dueTimes = (enrolment: string, one: Enrolled, day: number): readonly [number, number] => {
    const plans = plansOf(one)
    const before = day === 1 ? undefined : lessonOf(`${enrolment}.${day - 1}`).sentAt
    const isChanged = new Set(plans.map(({ cadence }) => JSON.stringify(cadence))).size > 1
    const [first, last] = isChanged && day > 1 ? dueTimes(enrolment, one, day - 1) : []
    const counted = (plan: Plan, from: number | undefined) =>
      from === undefined
        ? calendar.dueAt(plan, { confirmedAt: one.at, timeZone: one.timeZone }, day)
        : calendar.dueAfter(plan, one, from)
    const spaced = (from: number | undefined) =>
      plans.map((plan) => {
        const due = counted(plan, from)
        return plan.spacingMs === 0 || before === undefined ? due : Math.max(due, before + plan.spacingMs)
      })
    // A lesson that a spacing put off was due when it left, or before.
    const latestBefore = last && Math.max(last, before ?? last)
    // It also hides a change that is made while it puts one off: the next then counts from the confirmation.
    const hidden = plans.some(({ spacingMs }) => spacingMs > 0) ? spaced(undefined) : []
    return [Math.min(...spaced(first), ...hidden), Math.max(...spaced(latestBefore))]
  }
  /** No earlier than it was taken for the first time, whatever the clock showed since. */
  const sentBy = (lesson: Lesson) => {
    lesson.sentAt = Math.min(lesson.sentAt ?? Number.POSITIVE_INFINITY, time.clock.now())
  }

  return {
    violations,
    trace,
    violation,
    note,
    delivered(message: Message): void {
      const parsed = lessonIn(message)
      if (parsed === undefined) return
      const lesson = lessonOf(parsed.lesson)
      lesson.deliveries += 1
      delivered += 1
      sentBy(lesson)
      note(parsed.enrolment, `day ${parsed.day} accepted${lesson.deliveries > 1 ? ' again' : ''}`)
      if (lesson.deliveries === 1) {
        for (let day = 1; day < parsed.day; day += 1)
          if (lessonOf(`${parsed.enrolment}.${day}`).deliveries === 0)
            violation('a later day came before an earlier one', parsed.lesson)
        return
      }
      if (kind === 'api') violation('a provider that honours the key took a day twice', parsed.lesson)
      // One that was on its way when its sender died may arrive late; one begun after the record is told as it is handed over.
      else if (!lesson.unsettled && time.elapsed() - steppedAt > 5 * MINUTE_MS)
        violation('a day went out again though no attempt of it was lost', parsed.lesson)
    },
    handedOver(process: Process, message: Message): void {
      const parsed = lessonIn(message)
      if (parsed === undefined) return
      note(parsed.enrolment, `day ${parsed.day} handed over by ${process.name}`)
      if (!links.has(parsed.enrolment)) links.set(parsed.enrolment, parsed.link)
      const now = time.clock.now()
      latest = Math.max(latest, now)
      const one = enrolled.get(parsed.enrolment)
      const lesson = lessonOf(parsed.lesson)
      // What may have been delivered is repeated as it was, whatever the course has become.
      const isRepeat = lesson.unsettled && message.subject === lesson.subject
      lesson.subject = message.subject
      const name = message.subject.split(' ')[0] ?? ''
      const isSame = lesson.lost === name
      if (lesson.lost !== undefined && !isSame)
        violation('another lesson in the place of one that may have been delivered', parsed.lesson)
      lesson.out = name
      if (one === undefined) violation('a lesson for a subscription that is not confirmed', parsed.lesson)
      else {
        const [due] = dueTimes(parsed.enrolment, one, parsed.day)
        if (latest + 2 * MOST_SKEW_MS < due) violation('a lesson before it was due', parsed.lesson)
        const course = coursesOf(one)
        const edition = course[one.release]?.follow === 'start' ? one.release : process.release
        const follows = course[one.release]?.follow === 'latest'
        const template = follows ? name : (course[edition]?.lessons[parsed.day - 1] ?? '')
        const subject = isRepeat ? undefined : curriculum.subjectOf(template, one.language, edition)
        if (follows && subject !== undefined && !isSame)
          followsByName(
            parsed.enrolment,
            parsed.day,
            name,
            course.slice(0, edition + 1).map((one) => one?.lessons ?? []),
          )
        if (subject !== undefined && message.subject !== subject)
          violation('a lesson of another version of the course, or in another language', parsed.lesson)
      }
      if (ended.has(parsed.enrolment)) violation('a lesson after an acknowledged unsubscribe', parsed.lesson)
      if (superseded.has(parsed.enrolment))
        violation('a lesson of an enrolment that was started over', parsed.lesson)
      if (dead.has(parsed.enrolment)) violation('a lesson to a dead address', parsed.lesson)
      const call = `${process.name}/${parsed.enrolment}`
      if (inCall.get(call) === process.call)
        violation('two messages to one subscription in one call', parsed.lesson)
      inCall.set(call, process.call)
      lesson.key ??= message.key
      if (message.key !== lesson.key) violation('two keys for one lesson', parsed.lesson)
      if (lesson.recorded) violation('a day that was recorded as sent was tried again', parsed.lesson)
      if (lesson.refusedForGood) violation('a day that was refused for good was tried again', parsed.lesson)
      if (time.elapsed() < lesson.notBefore && steppedAt < lesson.notBefore - 5 * MINUTE_MS)
        violation('a retry within five minutes of a refusal', parsed.lesson)
      let holds = held.get(process)
      if (holds === undefined) {
        holds = new Set()
        held.set(process, holds)
      }
      holds.add(lesson)
      lesson.tried = true
    },
    /** The provider has taken nothing of it: it may come again in this call. */
    limited(process: Process, message: Message): void {
      const parsed = lessonIn(message)
      if (parsed) inCall.delete(`${process.name}/${parsed.enrolment}`)
    },
    /** Nothing was taken: what has the sender of an attempt before may come again in this call, with that of now. */
    refusedSender(process: Process, message: Message): void {
      const parsed = lessonIn(message)
      if (parsed && lessonOf(parsed.lesson).unsettled) inCall.delete(`${process.name}/${parsed.enrolment}`)
    },
    refused(message: Message, how: 'transient' | 'permanent' | 'bounce'): void {
      const parsed = lessonIn(message)
      if (parsed === undefined) return
      note(parsed.enrolment, `day ${parsed.day} refused: ${how}`)
      const lesson = lessonOf(parsed.lesson)
      lesson.out = undefined
      if (how === 'transient') lesson.notBefore = time.elapsed() + 5 * MINUTE_MS - 2 * MOST_SKEW_MS
      else lesson.refusedForGood = true
    },
    /** The answer to an attempt was lost. */
    unsettled(message: Message): void {
      const parsed = lessonIn(message)
      if (parsed) lose(lessonOf(parsed.lesson))
    },
    /** A process stood still between an answer and its mark: another may have taken over meanwhile. */
    frozen({ claim }: Settlement): void {
      forget(lessonOf(`${claim.id}.${claim.enrolment}.${claim.day}`))
    },
    /** A process died: whatever it held may have gone out, and it never learns. */
    killed(process: Process): void {
      note('', `${process.name} killed`)
      for (const lesson of held.get(process) ?? []) if (!lesson.recorded) forget(lesson)
      held.delete(process)
    },
    /** An outcome that the store has (`after` is the row then), or refused to take. */
    settled({ claim, sent, problem }: Settlement, after: Subscription | undefined): void {
      const enrolment = `${claim.id}.${claim.enrolment}`
      const lesson = lessonOf(`${enrolment}.${claim.day}`)
      if (after === undefined) {
        forget(lesson)
        return
      }
      if (sent) {
        note(enrolment, `day ${claim.day} recorded`)
        if (lesson.deliveries === 0)
          violation('a day was recorded as sent that nobody took', `${enrolment}.${claim.day}`)
        sentBy(lesson)
        lesson.recorded = true
        return
      }
      // The days may have been recorded by another since: then this outcome must be left out.
      if (lesson.recorded && problem !== undefined && after.problem?.since === problem.since)
        violation('an outcome was recorded of a day that was sent before', `${enrolment}.${claim.day}`)
      // A mark that came too late is dropped: then nothing was learnt.
      if (after.enrolment !== claim.enrolment || after.problem?.kind !== problem?.kind) {
        forget(lesson)
        return
      }
      if (problem?.kind === 'unknown') lose(lesson)
      if (problem?.kind === 'parked') lesson.parked = true
      if (problem?.kind === 'parked' && !lesson.tried)
        violation('a lesson was parked that was never handed over', `${enrolment}.${claim.day}`)
      if (problem?.kind === 'parked' && problem.reason === REFUSES_US) parkedForUs += 1
      // At the very moment that the provider takes mail again, the answers of before may look like a few bad messages.
      if (parkedForUs > MOST_MISTAKEN)
        violation('lessons were parked for a refusal of all that we send', `${enrolment}.${claim.day}`)
      if (problem?.kind === 'bounced') dead.add(enrolment)
    },
    confirmed(enrolment: string, one: Enrolled): void {
      note(enrolment, `confirmed in ${one.course}`)
      if (enrolled.has(enrolment)) violation('one enrolment began twice', enrolment)
      enrolled.set(enrolment, one)
      const [id = '', number] = enrolment.split('.')
      superseded.add(`${id}.${Number(number) - 1}`)
    },
    unsubscribed(enrolment: string): void {
      note(enrolment, 'unsubscribed')
      ended.add(enrolment)
    },
    undone(enrolment: string): void {
      note(enrolment, 'undone')
      ended.delete(enrolment)
      // It is due at once; what is out meanwhile still must not go out again.
      const one = enrolled.get(enrolment)
      for (let day = one ? mostLessons(one) : 0; day > 0; day -= 1)
        lessonOf(`${enrolment}.${day}`).notBefore = 0
    },
    /** The wall clock was stepped; what was due by the time that it showed `before` was due. */
    stepped(before: number): void {
      latest = Math.max(latest, before)
      steppedAt = time.elapsed()
      note('', `clock now ${new Date(time.clock.now()).toISOString()}`)
    },
    /** A build of before sent a lesson, and recorded it. */
    sentByOlder(enrolment: string, day: number, course: string): void {
      note(enrolment, `day ${day} sent by an older build`)
      const lesson = lessonOf(`${enrolment}.${day}`)
      if (course !== FIRST_COURSE)
        violation('an older build sent a lesson of a course that it does not know', `${enrolment}.${day}`)
      if (ended.has(enrolment) || superseded.has(enrolment))
        violation('an older build wrote to somebody who left', `${enrolment}.${day}`)
      if (lesson.recorded || (lesson.deliveries > 0 && !lesson.unsettled))
        violation('an older build sent a lesson that was out or sent', `${enrolment}.${day}`)
      lesson.deliveries += 1
      delivered += 1
      lesson.recorded = true
      sentBy(lesson)
    },
    /** An operator puts what was refused back in line. */
    retried(enrolment: string): void {
      decided.add(enrolment)
      const one = enrolled.get(enrolment)
      for (let day = one ? mostLessons(one) : 0; day > 0; day -= 1) {
        const lesson = lessonOf(`${enrolment}.${day}`)
        lesson.parked = false
        // A lesson that only counts as sent has an unknown arrival time.
        if (!lesson.recorded && lesson.tried) lesson.sentAt = Number.NEGATIVE_INFINITY
        forget(lesson)
      }
    },
    /** When all is over: every enrolment that was not ended has had all that was due. */
    finish(): void {
      for (const [enrolment, one] of enrolled) {
        if (ended.has(enrolment) || superseded.has(enrolment) || dead.has(enrolment)) continue
        // A course that grew does not go on for whoever had finished.
        // A rollback ends nobody for good but those who began during it.
        const lasting = releases[one.release]?.isRollback ? plansOf(one) : lastingPlansOf(one)
        const lengths = lasting.map(({ lessons }) => lessons.length)
        for (let day = 1; day <= Math.min(...lengths); day += 1) {
          if (dueTimes(enrolment, one, day)[1] + DAY_MS >= time.clock.now()) break
          if (lessonOf(`${enrolment}.${day}`).deliveries === 0)
            violation('a lesson that was due never went out', `${enrolment}.${day}`)
        }
      }
    },
    arrived: (lesson: string) => lessonOf(lesson).deliveries > 0,
    /** The link that the first lesson of an enrolment brought. */
    linkOf: (enrolment: string) => links.get(enrolment),
    /** Days from each confirmation to the last lesson that there was time for, both included. */
    counts: () => {
      let days = 0
      for (const one of enrolled.values()) {
        const plan = coursesOf(one)[one.release]
        if (plan === undefined) continue
        const enrolment = { confirmedAt: one.at, timeZone: one.timeZone }
        const end = Math.min(time.clock.now(), calendar.dueAt(plan, enrolment, plan.lessons.length))
        days += 1 + Math.max(0, Math.floor((end - one.at) / DAY_MS))
      }
      return { delivered, enrolments: enrolled.size, subscriberDays: days }
    },
  }
}

export type Witness = ReturnType<typeof createWitness>

/** `SUBSCRIPTION.ENROLMENT` of a lesson. */
export const enrolmentIn = (message: Message): string | undefined => lessonIn(message)?.enrolment

/** From outside, a lesson is known by its number in the key and by the link that ends it. */
function lessonIn(message: Message) {
  const day = /-(\d+)\.[^.]*$/.exec(message.key)?.[1]
  const link = /[?&]s=([^&]+)&t=([^>&]+)/.exec(message.headers['List-Unsubscribe'] ?? '')
  const [, enrolment, t] = link ?? []
  if (day === undefined || enrolment === undefined || t === undefined) return undefined
  return { lesson: `${enrolment}.${day}`, enrolment, day: Number(day), link: { s: enrolment, t } }
}
