import {
  CSV_HEAD,
  type LeftOut,
  type PeopleReading,
  personLine,
  readPeople,
} from '../../core/course/people.ts'
import type { OpenedPlatform } from '../../daemon/platform.ts'
import { type Context, operatorOf } from '../context.ts'
import { CommandError, EXIT, type ExitCode, wrongUsage } from '../exit.ts'
import { printJson, printText } from '../print.ts'
import { openProgress } from '../terminal.ts'
import { checkCourse } from './enrolments.ts'

type Opened = Pick<OpenedPlatform, 'course'>

/** Writes who is in which course, a page at a time, so that its size does not matter. */
export async function exportPeople(
  context: Context,
  platform: Opened,
  { course: id, format }: { readonly course?: string; readonly format: 'csv' | 'json' },
): Promise<ExitCode> {
  await checkCourse(platform, id)
  const isJson = format === 'json'
  context.stdout.write(isJson ? '{"version":1,"enrolments":[' : CSV_HEAD)
  let separator = '\n'
  for await (const page of (await platform.course()).people(id)) {
    if (context.signal.aborted)
      throw new CommandError(EXIT.failed, 'the export was interrupted, so it is not complete.')
    const lines = page.map((person) => {
      const before = separator
      separator = ',\n'
      return isJson ? before + JSON.stringify(person) : personLine(person)
    })
    context.stdout.write(lines.join(''))
  }
  return printText(context, isJson ? '\n]}\n' : '')
}

/** Imports people who agreed elsewhere. A fault on any line imports nobody. */
export async function importPeople(
  context: Context,
  platform: Opened,
  file: string,
  { dryRun = false, format }: { readonly dryRun?: boolean; readonly format: 'text' | 'json' },
): Promise<ExitCode> {
  const { LARGEST_LIST, readTextFile } = await import('../environment.ts')
  const text = await readTextFile(context, file, LARGEST_LIST)
  const course = await platform.course()
  const reading = readPeople(text, { courses: course.courses, now: context.clock.now() })
  const { people, ignored, unit } = reading
  if (reading.faults.length > 0) {
    context.stderr.write(faultsText(reading))
    throw wrongUsage(`nobody was imported from ${file}. Correct it and run the command again.`)
  }
  if (ignored.length > 0) context.stderr.write(`platformctl: ignored in ${file}: ${ignored.join(', ')}\n`)
  const tally = { imported: 0, known: 0 }
  const leftOut = [...reading.leftOut]
  const progress = await openProgress(context, 'importing')
  let done = 0
  for await (const admitted of course.admit(people, { dryRun, file }, operatorOf(context))) {
    for (const { line, became } of admitted)
      if (became === 'imported' || became === 'known') tally[became] += 1
      else leftOut.push({ line, why: became })
    done += admitted.length
    progress.show(`${done.toLocaleString('en')} of ${people.length.toLocaleString('en')} people`)
    if (context.signal.aborted) break
  }
  progress.end()
  leftOut.sort((a, b) => a.line - b.line)
  if (format === 'json') printJson(context, 'course import', { dryRun, ...tally, leftOut })
  else {
    for (const { line, why } of leftOut) context.stdout.write(`${unit} ${line}: ${WHY[why]}\n`)
    const [were, end] = dryRun ? ['would be imported', '; nothing was changed'] : ['imported', '']
    context.stdout.write(
      `${tally.imported} ${were}, ${tally.known} in the course already, ${leftOut.length} left out${end}\n`,
    )
  }
  if (done === people.length) return EXIT.passed
  throw new CommandError(
    EXIT.failed,
    `interrupted after ${done} of ${people.length} people. Run the command again to go on: nobody is imported twice.`,
  )
}

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
