import { type CourseDefinition, isLanguage, isTimeZone, type Plan } from '../../core/course/definition.ts'
import { dueAt } from '../../core/course/due.ts'
import { type ClockChange, clockChanges, offsetAt, zones } from '../../core/course/zones.ts'
import { DAY_MS, durationText } from '../../core/durations.ts'
import { escapeHtml } from '../../core/mail/template.ts'
import { duration } from '../../core/messages/en.ts'
import { cadenceText, hourText } from '../output/course-text.ts'
import { compact, iso, plural } from '../output/text.ts'
import { type MailLanguages, mailLanguages } from './languages-page.ts'
import {
  field,
  languageOptions,
  languageText,
  previewPage,
  type School,
  say,
  selectField,
  textIn,
} from './page.ts'
import type { Headline, Workshop } from './workshop.ts'

type CourseChoice = NonNullable<ReturnType<typeof chooseCourse>>

/** Reads the choice out of the page's address; undefined when there is no course to choose. */
function chooseCourse(query: URLSearchParams, school: School) {
  const [asked, zoneText, start, tag] = ['course', 'zone', 'start', 'language'].map(
    (name) => query.get(name)?.trim() || undefined,
  )
  const course = school.courses.find(({ id }) => id === asked) ?? school.courses[0]
  if (course === undefined) return undefined
  const zoneFault = zoneText !== undefined && !isTimeZone(zoneText)
  const zone = zoneFault ? 'UTC' : (zoneText ?? school.zone)
  const confirmedAt = start === undefined ? undefined : parseLocal(start, zone)
  const language = tag !== undefined && isLanguage(tag) ? tag : school.language
  const wanted = start?.slice(0, 16) ?? ''
  const local = confirmedAt === undefined ? '' : localText(confirmedAt, zone)
  const sameDay = local.slice(0, 10) === wanted.slice(0, 10)
  const clock = (text: string) => (sameDay ? text.slice(11) : text.replace('T', ' '))
  /** One sentence for each part of the address that cannot be used, by field. */
  const faults = {
    course:
      asked !== undefined && course.id !== asked && say`There is no course ${asked}. This is the first one.`,
    zone: zoneFault && say`${zoneText} is not an IANA time zone, as Europe/Berlin. Times are in UTC.`,
    start:
      start !== undefined &&
      (confirmedAt === undefined
        ? say`${start} is not a date and time, as 2026-03-27T10:00. The course begins now.`
        : local !== wanted &&
          say`The clock skips ${clock(wanted)} in ${zone}. The course begins at ${clock(local)}.`),
    language:
      tag !== undefined &&
      language !== tag &&
      say`${tag} is not a language tag, as de. Lessons are in ${languageText(language)}.`,
  }
  const now = Math.floor(school.now() / 60_000) * 60_000
  return { course, zone, confirmedAt: confirmedAt ?? now, language, faults }
}

interface CoursesView {
  readonly courses: readonly CourseDefinition[]
  readonly mails: MailLanguages
  readonly headlines: Readonly<Record<string, Headline>>
}

export async function coursesPage(workshop: Workshop, school: School, query: URLSearchParams) {
  const { courses, language } = school
  const mails = mailLanguages(workshop.definitions, language)
  const choice = chooseCourse(query, school)
  if (choice === undefined)
    return previewPage(
      'courses',
      '',
      '<p class="blank"><strong>This platform has no course.</strong> Add one to the definition, under courses: a folder of lessons, and every or at.</p>',
    )
  const shown = choice.course.lessons.map((lesson) => mails.inLanguage(lesson, choice.language).name)
  const headlines = Object.fromEntries(
    await Promise.all(shown.map(async (name) => [name, await workshop.headline(name)] as const)),
  )
  return previewPage('courses', choice.course.title, courseMain({ courses, mails, headlines }, choice))
}

function courseMain(view: CoursesView, choice: CourseChoice): string {
  const { course, zone, confirmedAt, language, faults } = choice
  const zoneNames = ['UTC', ...Intl.supportedValuesOf('timeZone').filter((name) => name !== 'UTC')]
  const input = (name: 'zone' | 'start', label: string, attributes: string) => {
    const fault = faults[name] ? ' aria-invalid="true" aria-describedby="faults"' : ''
    return field(name, label, `<input id="${name}" name="${name}" ${attributes}${fault}>`)
  }
  return `<form id="choice" method="get">
${selectField('course', 'Course', course.id, [{ options: view.courses.map(({ id, title }) => [id, title]) }])}
${input('zone', 'Subscriber’s time zone', `value="${escapeHtml(zone)}" list="zones" spellcheck="false" autocapitalize="off"`)}
${input('start', 'Confirmed at (in this time zone)', `type="datetime-local" value="${localText(confirmedAt, zone)}"`)}
${selectField('language', 'Subscriber’s language', language, languageOptions([...view.mails.languages, language]))}
<p class="field"><button>Show</button></p>
<datalist id="zones">${zoneNames.map((name) => `<option value="${name}"></option>`).join('')}</datalist>
</form>
<div id="shown"><div id="faults" role="alert">${compact(...Object.values(faults))
    .map((fault) => `<p>${fault}</p>`)
    .join('')}</div>${timeline(view, choice)}</div>`
}

function timeline(view: CoursesView, choice: CourseChoice): string {
  const { course, zone, confirmedAt, language } = choice
  const steps = timelineOf(course, { confirmedAt, timeZone: zone })
  const end = steps.at(-1)?.at ?? confirmedAt
  const { length } = course.lessons
  const untranslated = course.lessons.filter((lesson) => view.mails.inLanguage(lesson, language).missing)
  const facts = compact(
    plural(length, 'lesson'),
    escapeHtml(cadenceText(course.cadence)),
    course.spacingMs > 0 && say`at least ${durationText(course.spacingMs)} between two lessons`,
    course.follow === 'latest' && 'people already enrolled follow changes',
  )
  const summary = compact(
    end === confirmedAt
      ? 'Ends with the first lesson.'
      : say`Takes ${duration(end - confirmedAt)}, until ${dateText(end, zone)}.`,
    untranslated.length > 0 &&
      say`Without a translation into ${languageText(language)}: ${untranslated.length} of ${length} lessons.`,
  )
  const begin = `<li class="begin">${timeOf(confirmedAt, zone)}${RAIL}<p class="what"><strong>Confirmed</strong></p></li>`
  const html = (step: TimelineEntry) => ('lesson' in step ? lessonRow(view, choice, step) : clockRow(step))
  const rows = [{ at: confirmedAt, html: begin }, ...steps.map((step) => ({ at: step.at, html: html(step) }))]
  return `<h2>${escapeHtml(course.title)}</h2>
<p class="quiet">${facts.join(' · ')}</p>
<p>${summary.join(' ')}</p>
${byMonth(rows, zone)}
<p class="quiet">These times assume that every lesson goes out when it is due. The daemon sends a lesson within a minute of its due time.</p>`
}

const RAIL = '<span class="rail" aria-hidden="true"><i></i></span>'

function byMonth(rows: readonly { at: number; html: string }[], zone: string): string {
  return [...Map.groupBy(rows, ({ at }) => monthFormat.format(at + offsetAt(at, zone)))]
    .map(
      ([month, list]) =>
        `<h3>${month}</h3>\n<ol class="timeline">${list.map(({ html }) => html).join('\n')}</ol>`,
    )
    .join('\n')
}

function lessonRow(
  { mails, headlines }: CoursesView,
  { course, zone, confirmedAt, language }: CourseChoice,
  step: LessonStep,
): string {
  const { day, lesson, at, spacedFrom, skipped, repeated, zone: clock } = step
  const { name, language: own, missing } = mails.inLanguage(lesson, language)
  const headline = headlines[name] ?? { fault: 'does not compile' }
  const fixed = course.cadence.kind === 'at' ? course.cadence.zone : undefined
  const time = timeText(at, clock)
  const notes = compact(
    'fault' in headline && note('error', escapeHtml(headline.fault)),
    missing &&
      note('warning', say`No translation into ${languageText(language)}; sent in ${languageText(own)}`),
    spacedFrom !== undefined &&
      note('', say`Moved by the spacing from ${dateText(spacedFrom, zone)}, ${timeText(spacedFrom, zone)}`),
    skipped !== undefined &&
      note(
        'warning',
        say`The clock in ${clock} skips ${hourText(skipped)} on this day, so it is due at ${time}`,
      ),
    repeated !== undefined &&
      note('warning', say`${time} occurs twice on this day in ${clock}; this is the ${repeated}`),
  )
  const passed = at === confirmedAt ? 'at once' : say`after ${duration(at - confirmedAt)}`
  const there = fixed && fixed !== zone ? ` · ${say`${time} in ${fixed}`}` : ''
  const compare =
    mails.languages.length > 1
      ? ` <a class="quiet" href="/languages?${escapeHtml(String(new URLSearchParams({ mail: lesson, right: language })))}" aria-label="Compare languages: ${say`Lesson ${day}`}">Compare languages</a>`
      : ''
  return `<li class="lesson">${timeOf(at, zone)}${RAIL}<div class="what"><p><span class="day">${say`Lesson ${day}`}</span> <a href="/#${escapeHtml(encodeURI(name))}">${'fault' in headline ? escapeHtml(name) : textIn(own, headline.subject)}</a>${compare}</p><p class="quiet">${passed}${there}</p>${notes.length > 0 ? `<ul class="notes">${notes.join('')}</ul>` : ''}</div></li>`
}

const note = (kind: string, html: string) => `<li${kind ? ` class="${kind}"` : ''}>${html}</li>`

function clockRow({ at, shiftMs, zone }: ClockChange): string {
  // Two UTC moments: the time that the zone's clock would show without the change, and the time that it shows.
  const to = at + offsetAt(at, zone)
  const shown = (local: number) =>
    (Math.abs(shiftMs) < DAY_MS ? '' : `${dateText(local, 'UTC')}, `) + timeText(local, 'UTC')
  const way = shiftMs > 0 ? 'forward' : 'back'
  const text = say`Clocks in ${zone} go ${way} by ${duration(Math.abs(shiftMs))}: ${shown(to - shiftMs)} becomes ${shown(to)}`
  return `<li class="clock">${timeOf(at, zone)}${RAIL}<p class="what">${text}</p></li>`
}

function timeOf(at: number, zone: string): string {
  return `<time datetime="${iso(at)}">${dateText(at, zone)} <b>${timeText(at, zone)}</b> <small>${offsetText(offsetAt(at, zone))}</small></time>`
}

/** `UTC+5:45` */
function offsetText(ms: number): string {
  const minutes = Math.abs(ms) / 60_000
  const rest = minutes % 60
  if (minutes === 0) return 'UTC'
  const past = rest === 0 ? '' : `:${String(Math.floor(rest)).padStart(2, '0')}`
  return `UTC${ms < 0 ? '−' : '+'}${Math.floor(minutes / 60)}${past}`
}

const DATE = { weekday: 'short', year: 'numeric', month: 'short', day: 'numeric' } as const
const dateFormat = new Intl.DateTimeFormat('en-US', { ...DATE, timeZone: 'UTC' })
const dateText = (at: number, zone: string) => dateFormat.format(at + offsetAt(at, zone))
const monthFormat = new Intl.DateTimeFormat('en-US', { timeZone: 'UTC', month: 'long', year: 'numeric' })

/** `10:00`, as a zone's clock shows it. */
const timeText = (instant: number, zone: string) => localText(instant, zone).slice(-5)

/** Whether a moment is the first or second with its local time, when the clock goes back; undefined if that time occurs once. */
function repeatOf(instant: number, zone: string): 'first' | 'second' | undefined {
  const offset = offsetAt(instant, zone)
  const [before, after] = [offsetAt(instant - DAY_MS / 2, zone), offsetAt(instant + DAY_MS / 2, zone)]
  // The other moment with this local time has the other offset.
  if (offset > after && offsetAt(instant + offset - after, zone) === after) return 'first'
  if (before > offset && offsetAt(instant + offset - before, zone) === before) return 'second'
  return undefined
}

/** `2026-03-27T10:00` as a zone's clock shows it; undefined for any other text. A day that is none is none. */
export function parseLocal(text: string, zone: string): number | undefined {
  const [, date, hour, minute] = /^(\d{4}-\d{2}-\d{2})T([01]\d|2[0-3]):([0-5]\d)(?::\d{2})?$/.exec(text) ?? []
  const midnight = Date.parse(`${date}T00:00:00Z`)
  if (date === undefined || Number.isNaN(midnight) || !new Date(midnight).toISOString().startsWith(date))
    return undefined
  return zones.instantOf(midnight / DAY_MS, Number(hour) * 60 + Number(minute), zone)
}

/** A moment as `2026-03-27T10:00`, as a zone's clock shows it. */
export const localText = (instant: number, zone: string) =>
  new Date(instant + offsetAt(instant, zone)).toISOString().slice(0, -8)

interface LessonStep {
  /** From 1. */
  readonly day: number
  readonly lesson: string
  /** UTC milliseconds at which it is due, when each lesson before was sent as soon as it was due. */
  readonly at: number
  /** The time that the spacing moves it from. */
  readonly spacedFrom?: number
  /** Minutes after midnight that the course asks for, and that the clock skips on this day. */
  readonly skipped?: number
  /** Set if the clock shows this local time twice: the first or the second of the two moments. */
  readonly repeated?: 'first' | 'second'
  /** The zone of the two above. */
  readonly zone: string
}

type TimelineEntry = LessonStep | ClockChange

/** The mails that a course sends after a confirmation, and the clock changes between; `timeZone` is the subscriber's own. */
export function timelineOf(
  plan: Plan,
  { confirmedAt, timeZone }: { readonly confirmedAt: number; readonly timeZone: string },
): readonly TimelineEntry[] {
  const { cadence } = plan
  const zone = cadence.kind === 'at' ? (cadence.zone ?? timeZone) : timeZone
  const steps: TimelineEntry[] = []
  let lastSentAt: number | undefined
  for (const [index, lesson] of plan.lessons.entries()) {
    const day = index + 1
    const planned = dueAt(plan, { confirmedAt, timeZone }, day, zones)
    const at = plan.spacingMs === 0 ? planned : dueAt(plan, { confirmedAt, timeZone, lastSentAt }, day, zones)
    const repeated = repeatOf(at, zone)
    const isSkipped =
      cadence.kind === 'at' && at === planned && timeText(at, zone) !== hourText(cadence.minute)
    steps.push({
      day,
      lesson,
      at,
      zone,
      ...(at > planned && { spacedFrom: planned }),
      ...(isSkipped && { skipped: cadence.minute }),
      ...(repeated && { repeated }),
    })
    lastSentAt = at
  }
  const end = steps.at(-1)?.at ?? confirmedAt
  const changes = [...new Set([timeZone, zone])].flatMap((one) => clockChanges(confirmedAt, end, one))
  return [...steps, ...changes].sort((one, other) => one.at - other.at || ('lesson' in one ? 1 : -1))
}
