import { parseAddress } from '../core/address.ts'
import type { Operator } from '../core/audit.ts'
import type { SubscribeResult } from '../core/course/confirmations.ts'
import { isLanguage, isTimeZone } from '../core/course/definition.ts'
import type { Course } from '../core/course/open.ts'
import type { EnrolAnswer } from '../core/course/store.ts'
import { isUnderWay, type Preferences, type SubscriptionState } from '../core/course/subscription.ts'
import { PlatformError } from '../core/errors.ts'

/** One course that a person is or was in. */
export interface CourseEnrolment {
  readonly id: string
  readonly course: string
  readonly state: SubscriptionState | 'finished'
  /** The number of the enrolment: it rises each time the course begins again. */
  readonly enrolment: number
  readonly sent: number
  readonly lessons: number
  /** UTC milliseconds; undefined when nothing is planned. */
  readonly nextAt: number | undefined
}

interface Joining {
  readonly email: string
  /** To join, the first course of the platform if left out. */
  readonly course?: string
  /** IANA name, for courses at the subscriber's local hour. */
  readonly timeZone?: string
  readonly language?: string
}

/** The courses of a platform, for a program that embeds it. */
export interface Courses {
  /** Mails a confirmation link, as `POST /api/email/subscribe` does; the answer never tells whether the address is known. */
  subscribe(request: Joining): Promise<SubscribeResult>
  /** Begins a course, without confirmation mail, for somebody who agreed elsewhere. Repeating an `idempotencyKey` changes nothing; another person’s is a `conflict`. */
  enrol(request: Joining & { readonly idempotencyKey?: string }): Promise<EnrolAnswer>
  /** Ends a course for a person, as an unsubscribe does; doing it again changes nothing. */
  cancel(request: Pick<Joining, 'email' | 'course'>): Promise<{ readonly cancelled: boolean }>
  /** Changes language or time zone of all courses of a person, or of one; `enrolments`: how many were found. */
  set(request: Joining): Promise<{ readonly enrolments: number }>
  /** The courses of a person, the oldest enrolment first. */
  list(request: { readonly email: string }): Promise<readonly CourseEnrolment[]>
}

/** With an `operator`, changes are written to the audit log. Rejects with `bad_request` for a malformed address, time zone, language or key. */
export function openCourses(course: () => Promise<Course>, operator?: Operator): Courses {
  return {
    async subscribe({ email, course: id, ...wanted }) {
      const person = personOf(email)
      checkPreferences(wanted)
      const opened = await course()
      const known = opened.courses.map((one) => one.id)
      const chosen = id ?? known[0]
      if (chosen === undefined) throw new PlatformError('not_found', 'This platform has no course.')
      if (!known.includes(chosen))
        throw refused('course', `not a course of this platform: ${known.join(', ')}`)
      return opened.subscribe({ ...person, ...wanted, course: chosen })
    },
    async enrol({ email, timeZone, language, idempotencyKey: key, ...request }) {
      const person = personOf(email)
      checkPreferences({ timeZone, language })
      if (key !== undefined && !/^[\x21-\x7e]{1,200}$/.test(key))
        throw refused('idempotencyKey', '1 to 200 visible ASCII characters')
      return (await course()).enrol({ ...person, ...request, timeZone, language, key }, operator)
    },
    async cancel({ email, ...request }) {
      const { identity } = personOf(email)
      return { cancelled: await (await course()).cancel({ identity, ...request }, operator) }
    },
    async set({ email, ...wanted }) {
      const { identity } = personOf(email)
      checkPreferences(wanted)
      return { enrolments: await (await course()).set({ identity, ...wanted }, operator) }
    },
    async list({ email }) {
      const found = await (await course()).findPerson(personOf(email).identity)
      return found.map((one) => ({
        id: one.id,
        course: one.course,
        state: one.state === 'confirmed' && !isUnderWay(one) ? 'finished' : one.state,
        enrolment: one.enrolment,
        sent: one.sentDays.length,
        lessons: one.lessons,
        nextAt: one.nextAttemptAt,
      }))
    },
  }
}

function personOf(email: string) {
  // A program without types may leave it out.
  const parsed = parseAddress(typeof email === 'string' ? email : '')
  if (!parsed.ok) throw refused('email', parsed.reason)
  return { spelling: parsed.mailbox.address, identity: parsed.identity }
}

/** Rejects with `bad_request`, and says what is accepted. */
export function checkPreferences({ timeZone, language }: Preferences): void {
  if (timeZone !== undefined && !isTimeZone(timeZone))
    throw refused('timeZone', 'not an IANA time zone, as Europe/Berlin')
  if (language !== undefined && !isLanguage(language))
    throw refused('language', 'not a language tag, as de or pt-BR')
}

function refused(path: string, message: string) {
  const issues = [{ path, message }]
  return new PlatformError('bad_request', 'The request does not have the documented form.', { issues })
}
