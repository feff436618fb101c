import {
  CSV_HEAD,
  type LeftOut,
  type PeopleReading,
  personLine,
  readPeople,
} from '../../core/course/people.ts'
import { operatorOf } from '../context.ts'
import { LARGEST_LIST, readTextFile } from '../environment.ts'
import { failure, wrongUsage } from '../exit.ts'
import { course, format } from '../inputs.ts'
import { courseCommand } from '../opened.ts'
import { complain, thousands } from '../output/text.ts'
import { openProgress } from '../terminal.ts'
import { checkCourse } from './enrolments.ts'

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
      const lines = page.map((person) => {
        const before = separator
        separator = ',\n'
        return isJson ? before + JSON.stringify(person) : personLine(person)
      })
      context.stdout.write(lines.join(''))
    }
    return isJson ? '\n]}\n' : ''
  },
})

/** Imports people who agreed elsewhere. A fault on any line imports nobody. */
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
    const { people, ignored, unit } = reading
    if (reading.faults.length > 0) {
      context.stderr.write(faultsText(reading))
      throw wrongUsage(`nobody was imported from ${file}. Correct it and run the command again.`)
    }
    if (ignored.length > 0) complain(context, `ignored in ${file}: ${ignored.join(', ')}`)
    const tally = { imported: 0, known: 0 }
    const leftOut = [...reading.leftOut]
    const progress = await openProgress(context, 'importing')
    let done = 0
    for await (const admitted of course.admit(people, { dryRun, file }, operatorOf(context))) {
      for (const { line, became } of admitted)
        if (became === 'imported' || became === 'known') tally[became] += 1
        else leftOut.push({ line, why: became })
      done += admitted.length
      progress.show(`${thousands(done)} of ${thousands(people.length)} people`)
      if (context.signal.aborted) break
    }
    progress.end()
    leftOut.sort((a, b) => a.line - b.line)
    const lines = leftOut.map(({ line, why }) => `${unit} ${line}: ${WHY[why]}\n`)
    const [were, end] = dryRun ? ['would be imported', '; nothing was changed'] : ['imported', '']
    return {
      json: { dryRun, ...tally, leftOut },
      text: `${lines.join('')}${tally.imported} ${were}, ${tally.known} in the course already, ${leftOut.length} left out${end}\n`,
      fault:
        done === people.length
          ? undefined
          : `interrupted after ${done} of ${people.length} people. Run the command again to go on: nobody is imported twice.`,
    }
  },
})

const WHY: Readonly<Record<LeftOut, string>> = {
  unsubscribed: 'unsubscribed from this course; only they can begin it again',
  unconfirmed: 'never confirmed; they have to subscribe',
  suppressed: 'on the suppression list',
  erased: 'erased, and not mailed again',
  repeated: 'the same address and course as in an earlier one',
}

const MOST_FAULTS = 20

function faultsText({ faults, unit }: PeopleReading): string {
  const shown = faults.slice(0, MOST_FAULTS).map(({ line, message }) => `${unit} ${line}: ${message}\n`)
  return shown.join('') + (faults.length > MOST_FAULTS ? `and ${faults.length - MOST_FAULTS} more\n` : '')
}
