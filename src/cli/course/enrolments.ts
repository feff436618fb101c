import { parseAddress } from '../../core/address.ts'
import { NOTICES } from '../../core/course/notices.ts'
import type { EnrolAnswer } from '../../core/course/store.ts'
import { PlatformError } from '../../core/errors.ts'
import { checkPreferences, openCourses } from '../../daemon/courses.ts'
import type { OpenedPlatform } from '../../daemon/platform.ts'
import { type Context, operatorOf, whichPlatform } from '../context.ts'
import { CommandError, EXIT, type ExitCode, wrongUsage } from '../exit.ts'
import { unknownName } from '../options.ts'
import { cadenceText } from '../output/course-text.ts'
import { printJson, printText, table } from '../print.ts'

export interface EnrolOptions {
  readonly format: 'text' | 'json'
  readonly course?: string
  readonly timeZone?: string
  readonly language?: string
  readonly key?: string
}

type Opened = Pick<OpenedPlatform, 'course'>

/** The courses of the platform with how many are in each, or those of one person. */
export async function listCourses(
  context: Context,
  platform: Opened,
  address: string | undefined,
  { format }: EnrolOptions,
): Promise<ExitCode> {
  const course = await platform.course()
  if (address !== undefined) {
    const enrolments = await asked(openCourses(platform.course).list({ email: address }))
    if (format === 'json') return printJson(context, 'course list', { enrolments })
    return printText(
      context,
      enrolments.length === 0
        ? 'this address is in no course\n'
        : table(
            enrolments.map(({ course, state, sent, lessons, nextAt, id }) => [
              course,
              state,
              `${sent} of ${lessons} sent`,
              nextAt === undefined ? 'nothing planned' : `next ${new Date(nextAt).toISOString()}`,
              id,
            ]),
          ),
    )
  }
  const { byCourse } = await course.counts()
  const courses = await Promise.all(
    course.courses.map(async ({ id, title, lessons, cadence }) => {
      const deleted = await course.deletedLessons(id)
      return {
        id,
        title,
        lessons: lessons.length,
        cadence: cadenceText(cadence),
        ...(byCourse[id] ?? { unconfirmed: 0, confirmed: 0, unsubscribed: 0 }),
        ...(deleted.length > 0 && { deleted }),
      }
    }),
  )
  context.stderr.write(`${whichPlatform(context)}\n`)
  if (format === 'json') return printJson(context, 'course list', { courses })
  return printText(
    context,
    courses.length === 0
      ? 'this platform has no course\n'
      : table(
          courses.map(({ id, lessons, cadence, confirmed }) => [
            id,
            `${lessons} ${lessons === 1 ? 'lesson' : 'lessons'}`,
            cadence,
            `${confirmed} confirmed`,
          ]),
        ) +
          courses
            .flatMap(({ id, deleted = [] }) =>
              deleted.map(
                ({ lesson, people }) =>
                  `${lesson} is no longer in ${id}: ${people === 1 ? '1 person' : `${people} people`} in the middle of the course had it and will get the lessons they have not had\n`,
              ),
            )
            .join(''),
  )
}

/** Begins a course for a person. */
export async function enrolPerson(
  context: Context,
  platform: Opened,
  address: string,
  options: EnrolOptions,
): Promise<ExitCode> {
  const { course, timeZone, language, key } = options
  const answer = await asked(
    openCourses(platform.course, operatorOf(context)).enrol({
      email: address,
      ...(course !== undefined && { course }),
      ...(timeZone !== undefined && { timeZone }),
      ...(language !== undefined && { language }),
      ...(key !== undefined && { idempotencyKey: key }),
    }),
  )
  if (!answer.enrolled) {
    if (answer.reason === 'no_such_course') await checkCourse(platform, course)
    throw new CommandError(EXIT.failed, REFUSALS[answer.reason])
  }
  if (options.format === 'json') return printJson(context, 'course enrol', { ...answer })
  return printText(context, `enrolled as ${answer.id}; the first lesson goes out when it is due\n`)
}

/** Changes the language or time zone of a person, by address or by the id of one enrolment. */
export async function setPreferences(
  context: Context,
  platform: Opened,
  who: string,
  { course: id, timeZone, language, format }: EnrolOptions,
): Promise<ExitCode> {
  const wanted = { timeZone, language }
  if (timeZone === undefined && language === undefined)
    throw wrongUsage('say what to set: --language TAG, --time-zone ZONE or both.')
  await asked((async () => checkPreferences(wanted))())
  await checkCourse(platform, id)
  const byAddress = who.includes('@')
  const course = await platform.course()
  const person = byAddress ? { identity: identityOf(who) } : { id: who }
  const enrolments = await course.set({ ...person, ...wanted, course: id }, operatorOf(context))
  if (enrolments === 0)
    throw new CommandError(EXIT.failed, `no subscription has this ${byAddress ? 'address' : 'id'}.`)
  if (format === 'json') return printJson(context, 'course set', { enrolments })
  const courses = enrolments === 1 ? 'one course' : `${enrolments} courses`
  return printText(context, `set for ${courses}; the lessons and mails to come follow\n`)
}

/** Ends a course for a person. */
export async function cancelEnrolment(
  context: Context,
  platform: Opened,
  address: string,
  { course: id, format }: EnrolOptions,
): Promise<ExitCode> {
  const { cancelled } = await asked(
    openCourses(platform.course, operatorOf(context)).cancel({
      email: address,
      ...(id !== undefined && { course: id }),
    }),
  )
  // A course that is no longer in the definition can still be ended.
  if (!cancelled) await checkCourse(platform, id)
  if (format === 'json') return printJson(context, 'course cancel', { cancelled })
  return printText(
    context,
    cancelled ? 'cancelled; no further lesson is sent\n' : 'there was nothing to cancel\n',
  )
}

/** Mails the confirmation link to an unconfirmed address again. */
export async function resendConfirmation(
  context: Context,
  platform: Opened,
  address: string,
  { format }: EnrolOptions,
): Promise<ExitCode> {
  const answer = await (await platform.course()).confirmAgain(identityOf(address), { wait: true })
  if (answer.kind === 'none')
    throw new CommandError(EXIT.failed, 'no subscription of this address waits for its confirmation.')
  if (answer.kind === 'not_sent') throw new CommandError(EXIT.failed, `not sent: ${answer.reason}.`)
  if (format === 'json')
    return printJson(context, 'course resend-confirmation', { sent: true, id: answer.id })
  return printText(context, 'a confirmation with a new link was sent\n')
}

function identityOf(address: string): string {
  const parsed = parseAddress(address)
  if (!parsed.ok) throw wrongUsage(`${parsed.reason}.`)
  return parsed.identity
}

/** A value that has the wrong form is wrong usage. */
async function asked<T>(answer: Promise<T>): Promise<T> {
  return answer.catch((error: unknown) => {
    const [issue] = error instanceof PlatformError ? (error.issues ?? []) : []
    if (issue === undefined) throw error
    throw wrongUsage(`${issue.path}: ${issue.message}.`)
  })
}

/** A mistyped name of a course is wrong usage. */
export async function checkCourse(platform: Opened, name: string | undefined): Promise<void> {
  const { courses } = await platform.course()
  const known = courses.map(({ id }) => id)
  if (name !== undefined && known.length > 0 && !known.includes(name) && name !== NOTICES)
    throw unknownName({ kind: 'course', name, known })
}

const REFUSALS: Readonly<Record<Extract<EnrolAnswer, { enrolled: false }>['reason'], string>> = {
  already_enrolled: 'this address is in that course already.',
  unsubscribed: 'this person unsubscribed from that course; only they can begin it again, by subscribing.',
  suppressed: 'this address is on the suppression list: platformctl email suppressions list.',
  erased: 'this address was erased and is not mailed again.',
  no_such_course: 'this platform has no course.',
}
