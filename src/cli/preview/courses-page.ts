import { type CourseDefinition, isLanguage, isTimeZone } from '../../core/course/definition.ts'
import type { Zones } from '../../core/course/schedule.ts'
import { DAY_MS, durationText } from '../../core/durations.ts'
import { escapeHtml } from '../../core/mail/render.ts'
import { duration } from '../../core/messages/en.ts'
import { documentOf, type LocalPage } from '../local-page.ts'
import { cadenceText, hourText } from '../output/course-text.ts'
import { languageText, type MailLanguages } from './languages-page.ts'
import { FOLLOW, filled, followed, pageLinks, selectField, textIn } from './page.ts'
import { PAGES_STYLE } from './style.ts'
import { PREVIEW_TEXTS as T } from './texts.ts'
import { localText, minuteAt, offsetAt, parseLocal, type TimelineEntry, timelineOf } from './timeline.ts'
import type { Headline } from './workshop.ts'

/** The course and subscriber shown. */
export interface CourseChoice {
  readonly course: CourseDefinition
  readonly zone: string
  /** UTC milliseconds. */
  readonly confirmedAt: number
  readonly language: string
  /** One sentence for each part of the address that cannot be used, by field. */
  readonly faults: Readonly<Partial<Record<'course' | 'zone' | 'start' | 'language', string>>>
}

/** Reads the choice out of the page's address; undefined when there is no course to choose. */
export function chooseCourse(
  query: URLSearchParams,
  platform: {
    readonly courses: readonly CourseDefinition[]
    readonly language: string
    /** Where the reader is. */
    readonly zone: string
    readonly now: number
    readonly zones: Zones
  },
): CourseChoice | undefined {
  const [asked, zoneText, start, tag] = ['course', 'zone', 'start', 'language'].map(
    (name) => query.get(name)?.trim() || undefined,
  )
  const course = platform.courses.find(({ id }) => id === asked) ?? platform.courses[0]
  if (course === undefined) return undefined
  const zoneFault = zoneText !== undefined && !isTimeZone(zoneText)
  const zone = zoneFault ? 'UTC' : (zoneText ?? platform.zone)
  const confirmedAt = start === undefined ? undefined : parseLocal(start, zone, platform.zones)
  const language = tag !== undefined && isLanguage(tag) ? tag : platform.language
  const wanted = start?.slice(0, 16) ?? ''
  const local = confirmedAt === undefined ? '' : localText(confirmedAt, zone)
  const sameDay = local.slice(0, 10) === wanted.slice(0, 10)
  const clock = (text: string) => (sameDay ? text.slice(11) : text.replace('T', ' '))
  return {
    course,
    zone,
    confirmedAt: confirmedAt ?? Math.floor(platform.now / 60_000) * 60_000,
    language,
    faults: {
      ...(asked !== undefined &&
        course.id !== asked && { course: filled(T.unknownCourse, { course: asked }) }),
      ...(zoneFault && { zone: filled(T.unknownZone, { zone: zoneText }) }),
      ...(start !== undefined &&
        (confirmedAt === undefined
          ? { start: filled(T.unknownStart, { start }) }
          : local !== wanted && {
              start: filled(T.skippedStart, { start: clock(wanted), zone, local: clock(local) }),
            })),
      ...(tag !== undefined &&
        language !== tag && {
          language: filled(T.unknownLanguage, { language: tag, fallback: languageText(language) }),
        }),
    },
  }
}

export interface CoursesView {
  readonly courses: readonly CourseDefinition[]
  readonly choice: CourseChoice | undefined
  readonly mails: MailLanguages
  readonly headlines: Readonly<Record<string, Headline>>
  readonly zones: Zones
  /** Every name that a zone can be chosen by. */
  readonly zoneNames: readonly string[]
}

/** The page of the courses: one as a timeline, for a chosen subscriber. */
export function coursesPage(view: CoursesView): LocalPage {
  const { choice } = view
  return documentOf({
    title: `${choice ? `${choice.course.title} · ` : ''}${T.pages.courses} · platformctl preview`,
    style: PAGES_STYLE,
    body: `<header><h1>${T.pages.courses}</h1>${pageLinks('courses')}<p id="status" role="status">${T.watching}</p></header>
<main>${choice ? courseMain(view, choice) : `<p class="blank"><strong>${T.noCourses}.</strong> ${T.noCoursesFix}</p>`}</main>`,
    script: FOLLOW,
  })
}

function courseMain(view: CoursesView, choice: CourseChoice): string {
  const { course, zone, confirmedAt, language, faults } = choice
  const tags = [...new Set([...view.mails.languages, language])]
  return `<form id="choice" method="get"${followed()}>
${selectField({ name: 'course', label: T.course, chosen: course.id, groups: [{ options: view.courses.map(({ id, title }) => [id, title]) }] })}
${inputField({ name: 'zone', label: T.zone, fault: faults.zone, attributes: `value="${escapeHtml(zone)}" list="zones" spellcheck="false" autocapitalize="off"` })}
${inputField({ name: 'start', label: T.start, fault: faults.start, attributes: `type="datetime-local" value="${localText(confirmedAt, zone)}"` })}
${selectField({ name: 'language', label: T.language, chosen: language, groups: [{ options: tags.map((tag) => [tag, `${languageText(tag)} (${tag})`]) }] })}
<p class="field"><button>${T.show}</button></p>
<datalist id="zones">${view.zoneNames.map((name) => `<option value="${name}"></option>`).join('')}</datalist>
</form>
<div id="shown">${faultsText(faults)}${timeline(view, choice)}</div>`
}

function inputField(field: {
  name: string
  label: string
  fault: string | undefined
  attributes: string
}): string {
  const { name, label, fault, attributes } = field
  return `<p class="field"><label for="${name}">${label}</label><input id="${name}" name="${name}" ${attributes}${fault ? ' aria-invalid="true" aria-describedby="faults"' : ''}></p>`
}

function faultsText(faults: CourseChoice['faults']): string {
  const list = Object.values(faults)
  return `<div id="faults" role="alert">${list.map((fault) => `<p>${fault}</p>`).join('')}</div>`
}

function timeline(view: CoursesView, choice: CourseChoice): string {
  const { course, zone, confirmedAt, language } = choice
  const steps = timelineOf(course, { confirmedAt, timeZone: zone }, view.zones)
  const end = steps.at(-1)?.at ?? confirmedAt
  const untranslated = course.lessons.filter(
    (lesson) => view.mails.inLanguage(lesson, language).missing,
  ).length
  const facts = [
    filled(course.lessons.length === 1 ? T.oneLesson : T.lessons, { count: course.lessons.length }),
    escapeHtml(cadenceText(course.cadence)),
    ...(course.spacingMs > 0 ? [filled(T.spacing, { spacing: durationText(course.spacingMs) })] : []),
    ...(course.follow === 'latest' ? [T.latest] : []),
  ]
  const summary = [
    end === confirmedAt
      ? T.atOnce
      : filled(T.span, { duration: duration(end - confirmedAt), end: dateText(end, zone) }),
    ...(untranslated > 0
      ? [
          filled(T.untranslated, {
            language: languageText(language),
            count: untranslated,
            all: course.lessons.length,
          }),
        ]
      : []),
  ]
  const rows = [
    {
      at: confirmedAt,
      html: `<li class="begin">${timeOf(confirmedAt, zone)}${RAIL}<p class="what"><strong>${T.confirmed}</strong></p></li>`,
    },
    ...steps.map((step) => ({
      at: step.at,
      html: step.kind === 'lesson' ? lessonRow(view, choice, step) : clockRow(step),
    })),
  ]
  return `<h2>${escapeHtml(course.title)}</h2>
<p class="quiet">${facts.join(' · ')}</p>
<p>${summary.join(' ')}</p>
${byMonth(rows, zone)}
<p class="quiet">${T.assumption}</p>`
}

const RAIL = '<span class="rail" aria-hidden="true"><i></i></span>'

function byMonth(rows: readonly { at: number; html: string }[], zone: string): string {
  const months = Map.groupBy(rows, ({ at }) => monthFormat.format(at + offsetAt(at, zone)))
  return [...months]
    .map(
      ([month, list]) =>
        `<h3>${month}</h3>\n<ol class="timeline">${list.map(({ html }) => html).join('\n')}</ol>`,
    )
    .join('\n')
}

function lessonRow(
  { mails, headlines }: CoursesView,
  { course, zone, confirmedAt, language }: CourseChoice,
  step: Extract<TimelineEntry, { kind: 'lesson' }>,
): string {
  const { day, lesson, at } = step
  const { name, language: own, missing } = mails.inLanguage(lesson, language)
  const headline = headlines[name] ?? { fault: T.broken }
  const fixed = course.cadence.kind === 'at' ? course.cadence.zone : undefined
  const time = hourText(minuteAt(at, step.zone))
  const notes = [
    ...('fault' in headline ? [note('error', escapeHtml(headline.fault))] : []),
    ...(missing
      ? [
          note(
            'warning',
            filled(T.missing, { language: languageText(language), fallback: languageText(own) }),
          ),
        ]
      : []),
    ...(step.spacedFrom === undefined
      ? []
      : [
          note(
            '',
            filled(T.spaced, {
              time: `${dateText(step.spacedFrom, zone)}, ${hourText(minuteAt(step.spacedFrom, zone))}`,
            }),
          ),
        ]),
    ...(step.skipped === undefined
      ? []
      : [note('warning', filled(T.skipped, { zone: step.zone, wanted: hourText(step.skipped), time }))]),
    ...(step.repeated === undefined
      ? []
      : [note('warning', filled(T[step.repeated], { time, zone: step.zone }))]),
  ]
  const passed = at === confirmedAt ? T.sharply : filled(T.after, { duration: duration(at - confirmedAt) })
  const there = fixed && fixed !== zone ? ` · ${filled(T.there, { time, zone: fixed })}` : ''
  const compare =
    mails.languages.length > 1
      ? ` <a class="quiet" href="/languages?${escapeHtml(String(new URLSearchParams({ mail: lesson, right: language })))}" aria-label="${T.compare}: ${filled(T.lesson, { day })}">${T.compare}</a>`
      : ''
  return `<li class="lesson">${timeOf(at, zone)}${RAIL}<div class="what"><p><span class="day">${filled(T.lesson, { day })}</span> <a href="/#${escapeHtml(encodeURI(name))}">${'fault' in headline ? escapeHtml(name) : textIn(own, headline.subject)}</a>${compare}</p><p class="quiet">${passed}${there}</p>${notes.length > 0 ? `<ul class="notes">${notes.join('')}</ul>` : ''}</div></li>`
}

const note = (kind: string, html: string) => `<li${kind ? ` class="${kind}"` : ''}>${html}</li>`

function clockRow({ at, shiftMs, zone }: Extract<TimelineEntry, { kind: 'clock' }>): string {
  // Two UTC moments: the time that the zone's clock would show without the change, and the time that it shows.
  const to = at + offsetAt(at, zone)
  const shown = (local: number) =>
    (Math.abs(shiftMs) < DAY_MS ? '' : `${dateText(local, 'UTC')}, `) + hourText(minuteAt(local, 'UTC'))
  const text = filled(shiftMs > 0 ? T.forward : T.back, {
    zone,
    duration: duration(Math.abs(shiftMs)),
    from: shown(to - shiftMs),
    to: shown(to),
  })
  return `<li class="clock">${timeOf(at, zone)}${RAIL}<p class="what">${text}</p></li>`
}

function timeOf(at: number, zone: string): string {
  return `<time datetime="${new Date(at).toISOString()}">${dateText(at, zone)} <b>${hourText(minuteAt(at, zone))}</b> <small>${offsetText(offsetAt(at, zone))}</small></time>`
}

/** `UTC+5:45` */
function offsetText(ms: number): string {
  const minutes = Math.abs(ms) / 60_000
  const [hour, rest] = [Math.floor(minutes / 60), minutes % 60]
  if (minutes === 0) return 'UTC'
  return `UTC${ms < 0 ? '−' : '+'}${hour}${rest === 0 ? '' : `:${String(Math.floor(rest)).padStart(2, '0')}`}`
}

const dates = new Map<string, Intl.DateTimeFormat>()

function dateText(at: number, zone: string): string {
  const format = dates.get(zone) ?? new Intl.DateTimeFormat('en-US', { timeZone: zone, dateStyle: 'medium' })
  dates.set(zone, format)
  return `${weekday(at, zone)}, ${format.format(at)}`
}

const weekdays = ['Sun', 'Mon', 'Tue', 'Wed', 'Thu', 'Fri', 'Sat']
const weekday = (at: number, zone: string) => weekdays[new Date(at + offsetAt(at, zone)).getUTCDay()] ?? ''

const monthFormat = new Intl.DateTimeFormat('en-US', { timeZone: 'UTC', month: 'long', year: 'numeric' })
