import { withoutAddresses } from '../../core/audit.ts'
import { NOTICES } from '../../core/course/definition.ts'
import type { Course } from '../../core/course/open.ts'
import { CSV_HEAD, personLine, readPeople } from '../../core/course/people.ts'
import type { EnrolAnswer } from '../../core/course/store.ts'
import { PlatformError } from '../../core/errors.ts'
import { given } from '../../core/given.ts'
import { checkPreferences, openCourses } from '../../daemon/courses.ts'
import { courseCommand } from '../command.ts'
import { failure, openProgress, operatorOf, whichPlatform, wrongUsage } from '../context.ts'
import { LARGEST_LIST, readTextFile } from '../environment.ts'
import { addressOf, course, format, unknownName } from '../inputs.ts'
import { cadenceText } from '../output/course-text.ts'
import { complain, iso, plural, table, thousands } from '../output/text.ts'

export const list = courseCommand({
  summary: 'the courses of the platform, or those of one person',
  examples: ['', 'ada@example.com', '--format json'],
  document: 'course list',
  inputs: { '[address]': 'the address of a person' },
  async run(context, { address }, { course, platform }) {
    if (address !== undefined) {
      const enrolments = await asked(openCourses(async () => course).list({ email: address }))
      const rows = enrolments.map(({ course, state, sent, lessons, nextAt, id }) => {
        const next = nextAt === undefined ? 'nothing planned' : `next ${iso(nextAt)}`
        return [course, state, `${sent} of ${lessons} sent`, next, id]
      })
      return { json: { enrolments }, text: table(rows) || 'this address is in no course\n' }
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
    const removed = await (await platform.store()).course.removedCourses(courses.map(({ id }) => id))
    context.stderr.write(`${whichPlatform(context)}\n`)
    const rows = [
      ...courses.map(({ id, lessons, cadence, confirmed }) => [
        ...[id, plural(lessons, 'lesson'), cadence, `${confirmed} confirmed`],
      ]),
      ...removed.map(({ course, people }) => [course, 'not in the definition', '', `${people} under way`]),
    ]
    const gone = courses.flatMap(({ id, deleted = [] }) =>
      deleted.map(
        ({ lesson, people }) =>
          `${lesson} is no longer in ${id}: ${plural(people, 'person', 'people')} in the middle of the course had it and will get the lessons they have not had\n`,
      ),
    )
    return {
      json: { courses, ...(removed.length > 0 && { removed }) },
      text: table(rows) + gone.join('') || 'this platform has no course\n',
    }
  },
})

export const enrol = courseCommand({
  summary: 'begin a course for somebody who agreed to it elsewhere, without a confirmation mail',
  examples: ['ada@example.com', 'ada@example.com --course glazing --time-zone Europe/Berlin --key order-47'],
  document: 'course enrol',
  inputs: {
    '<address>': 'the address',
    '--course <id>': course('the course (default: the first of the platform)'),
    '--time-zone <name>': 'IANA name, for courses at the subscriber’s local hour',
    '--language <tag>': 'a language tag (default: that of the platform)',
    '--key <text>': 'an idempotency key: a second call with the same key changes nothing',
  },
  async run(context, values, { course }) {
    const { address, course: id, timeZone, language, key } = values
    const person = { email: address, ...given({ course: id, timeZone, language, idempotencyKey: key }) }
    const answer = await asked(openCourses(async () => course, operatorOf(context)).enrol(person))
    if (!answer.enrolled) {
      if (answer.reason === 'no_such_course') checkCourse(course, id)
      throw failure(REFUSALS[answer.reason])
    }
    // With a key that was used before, it may have sent lessons, or ended, since.
    const at = (await course.findById(answer.id))?.nextAttemptAt
    const next = at === undefined ? 'no lesson is planned' : `the next lesson is due ${iso(at)}`
    return { json: answer, text: `enrolled as ${answer.id}; ${next}\n` }
  },
})

export const set = courseCommand({
  summary:
    'change the language or time zone of a person, from the next lesson or mail on; the hour is the course’s',
  examples: ['ada@example.com --language de', 'SUBSCRIPTION --time-zone Europe/Vienna'],
  document: 'course set',
  inputs: {
    '<address-or-id>': 'the address, for all courses of this person, or a subscription’s id',
    '--course <id>': course('only this course'),
    '--language <tag>': 'a language tag, as de or pt-BR',
    '--time-zone <name>': 'IANA name, as Europe/Vienna',
  },
  async run(context, values, { course }) {
    const { addressOrId: who, course: id, timeZone, language } = values
    if (timeZone === undefined && language === undefined)
      throw wrongUsage('say what to set: --language TAG, --time-zone ZONE or both.')
    await asked((async () => checkPreferences({ timeZone, language }))())
    checkCourse(course, id)
    const byAddress = who.includes('@')
    const person = byAddress ? { identity: addressOf(who).identity } : { id: who }
    const enrolments = await course.set({ ...person, timeZone, language, course: id }, operatorOf(context))
    const where = id === undefined ? '' : ` in the course ${id}`
    if (enrolments === 0) throw failure(`no subscription${where} has this ${byAddress ? 'address' : 'id'}.`)
    return { json: { enrolments }, text: `set for ${plural(enrolments, 'course')}, from the next mail on\n` }
  },
})

export const cancel = courseCommand({
  summary: 'end a course for a person, as an unsubscribe does',
  examples: ['ada@example.com --course glazing'],
  document: 'course cancel',
  inputs: {
    '<address>': 'the address',
    '--course <id>': course('the course (default: the first of the platform)'),
  },
  async run(context, { address, course: id }, { course }) {
    const person = { email: address, ...(id !== undefined && { course: id }) }
    const { cancelled } = await asked(openCourses(async () => course, operatorOf(context)).cancel(person))
    // A course that is no longer in the definition can still be ended.
    if (!cancelled) checkCourse(course, id)
    const text = cancelled
      ? 'cancelled; no further lesson of this course is sent\n'
      : 'there was nothing to cancel\n'
    return { json: { cancelled }, text }
  },
})

export const resendConfirmation = courseCommand({
  summary: 'mail the link of the newest unconfirmed subscription again, within the limits of subscribing',
  examples: ['ada@example.com'],
  document: 'course resend-confirmation',
  inputs: { '<address>': 'the address' },
  async run(_, { address }, { course }) {
    const answer = await course.confirmAgain(addressOf(address).identity, { wait: true })
    if (answer.kind === 'none') throw failure('no subscription of this address waits for its confirmation.')
    if (answer.kind === 'not_sent') throw failure(`not sent: ${answer.reason}.`)
    return { json: { sent: true, id: answer.id }, text: 'a confirmation with a new link was sent\n' }
  },
})

/** A value that has the wrong form is wrong usage. */
async function asked<T>(answer: Promise<T>): Promise<T> {
  return answer.catch((error: unknown) => {
    const [issue] = error instanceof PlatformError ? (error.issues ?? []) : []
    if (issue === undefined) throw error
    throw wrongUsage(`${issue.path}: ${issue.message}.`)
  })
}

/** A mistyped name of a course is wrong usage. */
function checkCourse({ courses }: Course, name: string | undefined): void {
  const known = courses.map(({ id }) => id)
  if (name !== undefined && known.length > 0 && !known.includes(name) && name !== NOTICES)
    throw unknownName({ kind: 'course', name, known })
}

const REFUSALS: Readonly<Record<Extract<EnrolAnswer, { enrolled: false }>['reason'], string>> = {
  already_enrolled: 'this address is in that course already.',
  unsubscribed: 'this person unsubscribed from that course; only they can begin it again, by subscribing.',
  suppressed: 'this address is on the suppression list: platformctl email suppressions list.',
  erased: 'this address was erased and is not mailed again.',
  conflict: 'this key enrolled somebody else, or in another course.',
  no_such_course: 'this platform has no course.',
}

/** Writes who is in which course, a page at a time, so that its size does not matter. */
export const exportPeople = courseCommand({
  summary:
    'print who is in the courses: state, language, time zone, what was sent and when, what is next, proof of consent',
  examples: ['> people.csv', '--course glazing --format json > people.json'],
  inputs: { '--course <id>': course('only this course'), ...format('csv', 'json') },
  async run(context, { course: id, format }, { course }) {
    checkCourse(course, id)
    const isJson = format === 'json'
    context.stdout.write(isJson ? '{"version":1,"enrolments":[' : CSV_HEAD)
    let separator = '\n'
    for await (const page of course.people(id)) {
      if (context.signal.aborted) throw failure('the export was interrupted, so it is not complete.')
      if (page.length === 0) continue
      const lines = page.map((person) => JSON.stringify(person)).join(',\n')
      context.stdout.write(isJson ? separator + lines : page.map(personLine).join(''))
      separator = ',\n'
    }
    return isJson ? '\n]}\n' : ''
  },
})

export const importPeople = courseCommand({
  summary:
    'enrol people who agreed elsewhere, from CSV or JSON as course export writes it, with proof of consent on each line. If a line has a fault, nobody is imported. People who unsubscribed, are suppressed or were erased are left out. Importing again changes nothing',
  examples: ['people.csv --dry-run', 'people.csv'],
  document: 'course import',
  inputs: {
    '<file>': 'columns address, consent_at and consent_how; course, language, time_zone, sent, next_at …',
    '--dry-run': 'check the file and report; change nothing',
  },
  async run(context, { file, dryRun = false }, { course }) {
    const text = await readTextFile(context, file, LARGEST_LIST)
    const reading = readPeople(text, { courses: course.courses, now: context.clock.now() })
    const { people, ignored, unit, faults } = reading
    if (faults.length > 0) {
      const shown = faults.slice(0, MOST_FAULTS).map(({ line, message }) => `${unit} ${line}: ${message}\n`)
      const more = faults.length > MOST_FAULTS ? `and ${faults.length - MOST_FAULTS} more\n` : ''
      context.stderr.write(shown.join('') + more)
      throw wrongUsage(`nobody was imported from ${file}. Correct it and run the command again.`)
    }
    if (ignored.length > 0) complain(context, `ignored in ${file}: ${ignored.join(', ')}`)
    for (const { id, lessons } of course.courses) {
      const named = new Set(people.flatMap((one) => (one.course === id ? (one.sentLessons ?? []) : [])))
      const strange = [...named].filter((name) => !lessons.includes(name))
      const more = strange.length > 10 ? ` and ${strange.length - 10} more` : ''
      if (strange.length > 0)
        complain(
          context,
          `the course ${id} has no lesson ${withoutAddresses(strange.slice(0, 10).join(', '))}${more}: who had it gets all others. Its lessons are ${lessons.join(', ')}.`,
        )
    }
    if (people.some(({ subscription }) => subscription)) complain(context, LINKS)
    const tally = { imported: 0, known: 0 }
    const leftOut = [...reading.leftOut]
    const progress = await openProgress(context, 'importing')
    let done = 0
    const stopped = () =>
      `interrupted after ${done} of ${people.length} people. Run the command again to go on: nobody is imported twice.`
    try {
      for await (const admitted of course.admit(people, { dryRun, file }, operatorOf(context))) {
        for (const { line, became } of admitted)
          if (became === 'imported' || became === 'known') tally[became] += 1
          else leftOut.push({ line, why: became })
        done += admitted.length
        progress.show(`${thousands(done)} of ${thousands(people.length)} people`)
        if (context.signal.aborted) break
      }
    } catch (error) {
      complain(context, stopped())
      throw error
    } finally {
      progress.end()
    }
    leftOut.sort((a, b) => a.line - b.line)
    const lines = leftOut.map(({ line, why }) => `${unit} ${line}: ${WHY[why]}\n`)
    const [were, end] = dryRun ? ['would be imported', '; nothing was changed'] : ['imported', '']
    return {
      json: { dryRun, ...tally, leftOut },
      text: `${lines.join('')}${tally.imported} ${were}, ${tally.known} in the course already, ${leftOut.length} left out${end}\n`,
      fault: done === people.length ? undefined : stopped(),
    }
  },
})

const WHY = {
  unsubscribed: 'unsubscribed from this course; only they can begin it again',
  unconfirmed: 'never confirmed; they have to subscribe',
  suppressed: 'on the suppression list',
  erased: 'erased, and not mailed again',
  repeated: 'the same address and course as in an earlier one',
}

const MOST_FAULTS = 20
const LINKS =
  'links of earlier mails work only with the EMAIL_LINK_SECRET that signed them. If none was set, move the store itself: platformctl db copy.'
