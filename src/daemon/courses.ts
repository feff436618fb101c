import { parseAddress } from '../core/address.ts'
import type { Operator } from '../core/audit.ts'
import type { Course } from '../core/course/course.ts'
import { isLanguage, isTimeZone } from '../core/course/definition.ts'
import type { EnrolAnswer, SubscriptionState } from '../core/course/store.ts'
import { isUnderWay } from '../core/course/subscription.ts'
import { type Issue, PlatformError } from '../core/errors.ts'

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

/** The courses of a platform, for a program that embeds it. */
export interface Courses {
  /**
   * Begins a course for somebody who agreed to it elsewhere, without a confirmation mail. A repeat with the same
   * `idempotencyKey` gives the same answer and changes nothing.
   */
  enrol(request: {
    readonly email: string
    /** Default: the first course of the platform. */
    readonly course?: string
    /** IANA name, for courses at the subscriber's local hour. */
    readonly timeZone?: string
    /** A language tag. */
    readonly language?: string
    readonly idempotencyKey?: string
  }): Promise<EnrolAnswer>
  /** Ends a course for a person, as an unsubscribe does; doing it again changes nothing. */
  cancel(request: {
    readonly email: string
    readonly course?: string
  }): Promise<{ readonly cancelled: boolean }>
  /** The courses of a person, the oldest enrolment first. */
  list(request: { readonly email: string }): Promise<readonly CourseEnrolment[]>
}

/** With an `operator`, changes are written to the audit log. Rejects with `bad_request` for a malformed address, time zone, language or key. */
export function openCourses(course: () => Promise<Course>, operator?: Operator): Courses {
  return {
    async enrol({ email, timeZone, language, idempotencyKey: key, ...request }) {
      const person = personOf(email)
      check('timeZone', timeZone, isTimeZone, 'not an IANA time zone, as Europe/Berlin')
      check('language', language, isLanguage, 'not a language tag, as de')
      check(
        'idempotencyKey',
        key,
        (text) => /^[\x21-\x7e]{1,200}$/.test(text),
        '1 to 200 visible ASCII characters',
      )
      return (await course()).enrol({ ...person, ...request, timeZone, language, key }, operator)
    },
    async cancel({ email, ...request }) {
      const { identity } = personOf(email)
      return { cancelled: await (await course()).cancel({ identity, ...request }, operator) }
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
  const parsed = parseAddress(email)
  if (!parsed.ok) throw refused([{ path: 'email', message: parsed.reason }])
  return { spelling: parsed.mailbox.address, identity: parsed.identity }
}

function check(path: string, value: string | undefined, fits: (text: string) => boolean, message: string) {
  if (value !== undefined && !fits(value)) throw refused([{ path, message }])
}

function refused(issues: readonly Issue[]) {
  return new PlatformError('bad_request', 'The request does not have the documented form.', { issues })
}
