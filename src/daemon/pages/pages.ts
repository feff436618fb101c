import type { EventDefinition } from '../../core/analytics/events.ts'
import type { Cadence } from '../../core/course/definition.ts'
import { NOTICES } from '../../core/course/notices.ts'
import { escapeHtml } from '../../core/mail/render.ts'
import type { Messages } from '../../core/messages/en.ts'
import { directionOf } from '../../core/messages/messages.ts'
import { PATHS } from '../../core/paths.ts'
import { type Frame, type Page, page } from './layout.ts'

/** The stream of notices has a page of its own words. */
export function confirmedNoticesPage(frame: Frame): Page {
  const T = courseWords(frame, NOTICES)
  return page({
    frame,
    title: T.confirmedTitle,
    body: `<h1>${T.confirmedHeading}</h1>
<p>${frame.messages.notices.words.confirmed}</p>
<p class="quiet">${T.confirmedEnd}</p>`,
  })
}

/** Says when the lessons come; nothing of it where the platform has no course any more. */
export function confirmedPage(frame: Frame, cadence: Cadence | undefined): Page {
  const T = frame.messages.course
  return page({
    frame,
    title: T.confirmedTitle,
    body: `<h1>${T.confirmedHeading}</h1>
${cadence === undefined ? '' : `<p>${cadenceText(frame.messages, cadence)}</p>\n`}<p class="quiet">${T.confirmedEnd}</p>`,
  })
}

function cadenceText({ course, time }: Messages, cadence: Cadence): string {
  if (cadence.kind === 'every') return course.confirmedEvery(cadence.ms)
  const { minute, zone, weekdays } = cadence
  const days =
    weekdays.length === time.weekdays.length ? [] : weekdays.flatMap((day) => time.weekdays[day - 1] ?? [])
  const clock = [Math.floor(minute / 60), minute % 60].map((part) => String(part).padStart(2, '0')).join(':')
  return course.confirmedAt(days, clock, zone)
}

/** A confirmation page with a button, so that opening the link alone confirms nothing. */
export function confirmPage(frame: Frame, action: string, course: string | undefined): Page {
  const T = courseWords(frame, course)
  return page({
    frame,
    title: T.confirmTitle,
    body: `<h1>${T.confirmHeading}</h1>
<p>${T.confirm}</p>
<form method="post" action="${escapeHtml(action)}"><p><button type="submit">${T.confirmButton}</button></p></form>
<p class="quiet">${T.confirmElse}</p>`,
  })
}

/** What a reader can choose on the page of an unsubscribe link. */
export interface Choice {
  /** Tags; empty: there is only one. */
  readonly languages: readonly string[]
  readonly hasZone: boolean
}

interface UnsubscribeLink {
  readonly action: string
  readonly course: string | undefined
  readonly choice: Choice | undefined
}

/** A page with a button that unsubscribes; the same for a genuine and a forged link. */
export function unsubscribePage(frame: Frame, { action, course, choice }: UnsubscribeLink): Page {
  const T = courseWords(frame, course)
  return page({
    frame,
    title: T.unsubscribeTitle,
    body: `<h1>${T.unsubscribeTitle}</h1>
<p>${T.unsubscribe}</p>
<form method="post" action="${escapeHtml(action)}"><p><button type="submit">${T.unsubscribeButton}</button></p></form>
<p class="quiet">${T.unsubscribeElse}</p>${preferences(frame, { action, course, choice }, '')}`,
  })
}

/** Always says the same, for a genuine, a forged and an old link; the form undoes through the same link. */
export function unsubscribedPage(frame: Frame, { action, course, choice }: UnsubscribeLink): Page {
  const T = courseWords(frame, course)
  const undo = '<input type="hidden" name="undo" value="1">'
  return page({
    frame,
    title: T.unsubscribedTitle,
    body: `<h1>${T.unsubscribedHeading}</h1>
<p>${T.unsubscribed}</p>
<form method="post" action="${escapeHtml(action)}">${undo}<p><button type="submit">${T.undo}</button></p></form>
<p class="quiet">${T.unsubscribedEnd}</p>${preferences(frame, { action, course, choice }, undo)}`,
  })
}

/** A form for language and time zone. It shows none of the reader's, which a forged link must not reveal. */
function preferences(
  { messages: { course: T, language } }: Frame,
  { action, course, choice }: UnsubscribeLink,
  hidden: string,
): string {
  if (choice === undefined || course === NOTICES) return ''
  const names = new Intl.DisplayNames(language, { type: 'language', fallback: 'code' })
  const select = (name: string, label: string, options: readonly (readonly [string, string])[]) =>
    `<p><label>${label} <select name="${name}"><option value="">${T.unchanged}</option>${options
      .map(([value, text]) => `<option value="${escapeHtml(value)}">${escapeHtml(text)}</option>`)
      .join('')}</select></label></p>`
  const zones = choice.hasZone ? Intl.supportedValuesOf('timeZone') : []
  return `
<h2>${T.preferencesHeading}</h2>
<form method="post" action="${escapeHtml(action)}">${hidden}<input type="hidden" name="preferences" value="1">${
    choice.languages.length === 0
      ? ''
      : select(
          'language',
          T.language,
          choice.languages.map((tag) => [tag, names.of(tag) ?? tag]),
        )
  }${
    zones.length === 0
      ? ''
      : select(
          'timeZone',
          T.timeZone,
          zones.map((zone) => [zone, zone]),
        )
  }<p><button type="submit">${T.keep}</button></p></form>`
}

export function preferredPage(frame: Frame): Page {
  const T = frame.messages.course
  return page({
    frame,
    title: T.preferredTitle,
    body: `<h1>${T.preferredTitle}</h1>\n<p>${T.preferred}</p>`,
  })
}

export function resubscribedPage(frame: Frame, course: string | undefined): Page {
  const T = courseWords(frame, course)
  return page({
    frame,
    title: T.resubscribedTitle,
    body: `<h1>${T.resubscribedTitle}</h1>\n<p>${T.resubscribed}</p>`,
  })
}

/** A lesson as a page: `body` is compiled from the template, so it is ours. */
export function lessonPage(input: {
  readonly frame: Frame
  /** The course's. */
  readonly title: string
  /** Names the course in links to its lessons; empty for the first. */
  readonly query: string
  /** Otherwise only its link opens it, and it leads to no other lesson. */
  readonly isPublic: boolean
  readonly day: number
  readonly last: number
  readonly body: string
  /** The form that subscribes to the course; undefined where nobody can. */
  readonly signUp: string | undefined
  readonly script: string | undefined
  /** The kinds that the script records. */
  readonly events: readonly EventDefinition[]
}): Page {
  const { frame, title, query, isPublic, day, last, body, signUp, script, events } = input
  const T = frame.messages.course
  const link = (to: number, text: string) =>
    to < 1 || to > last || !isPublic ? '<span></span>' : `<a href="/lessons/${to}${query}">${text}</a>`
  // The lesson is in its owners' language, which the engine need not speak.
  const spoken =
    frame.language === frame.messages.language
      ? ''
      : ` lang="${escapeHtml(frame.language)}" dir="${directionOf(frame.language)}"`
  return page({
    frame,
    title: `${T.lesson(day)} · ${title}`,
    wide: true,
    style: signUp === undefined ? '' : SUBSCRIBE_STYLE,
    head: isPublic ? '' : '\n<meta name="robots" content="noindex, nofollow">',
    script,
    ...(script !== undefined && { data: events }),
    body: `<p class="quiet course">${escapeHtml(title)} · ${T.lessonOf(day, last)}</p>
<article class="lesson" data-lesson="day-${day}"${spoken}>${body}</article>
<nav aria-label="${T.lessons}">${link(day - 1, `← ${T.lesson(day - 1)}`)}${link(day + 1, `${T.lesson(day + 1)} →`)}</nav>${signUp === undefined ? '' : `\n<section class="signup"><h2>${T.subscribeHeading}</h2>\n${signUp}</section>`}`,
  })
}

/** Texts about a course, or about the stream of notices, which is joined and left in the same way. */
function courseWords({ messages }: Frame, course: string | undefined) {
  return course === NOTICES ? { ...messages.course, ...messages.notices.words } : messages.course
}

/**
 * The sign-up form of a course, the platform's first when left out. It needs no script; the endpoint answers it with a
 * page. `refused` is the visitor's input, if it was not a valid address.
 */
export function subscribeForm(frame: Frame, course?: string, refused?: string): string {
  const T = courseWords(frame, course)
  const field = course === undefined ? 'subscribe' : `subscribe-${course}`
  const hidden =
    course === undefined ? '' : `<input type="hidden" name="course" value="${escapeHtml(course)}">`
  const invalid =
    refused === undefined
      ? ''
      : ` value="${escapeHtml(refused)}" aria-invalid="true" aria-describedby="${field}-refused" autofocus`
  const why =
    refused === undefined ? '' : `<p id="${field}-refused" class="failing">${T.subscribeRefused}</p>`
  return `<form class="subscribe" method="post" action="${PATHS.subscribe}">${hidden}
<label for="${field}-email">${T.subscribeLabel}</label>
<div><input id="${field}-email" name="email" type="email" autocomplete="email" required maxlength="254"${invalid}><button type="submit">${T.subscribeButton}</button></div>
${why}<p class="quiet">${T.subscribeNote}</p>
</form>`
}

/** The form again, with what is wrong with the address. */
export function subscribeRefusedPage(frame: Frame, course: string | undefined, refused: string): Page {
  const T = courseWords(frame, course)
  return page({
    frame,
    title: T.subscribeRefusedTitle,
    style: SUBSCRIBE_STYLE,
    body: `<h1>${T.subscribeRefusedTitle}</h1>\n${subscribeForm(frame, course, refused)}`,
  })
}

/** The same for every address, known or not; `sent` is false when the platform can mail nobody. */
export function subscribedPage(frame: Frame, sent: boolean, course: string | undefined): Page {
  const T = courseWords(frame, course)
  const [title, text, end] = sent
    ? [T.subscribedTitle, T.subscribed, T.subscribedEnd]
    : [T.notMailedTitle, T.notMailed, T.notMailedEnd]
  return page({ frame, title, body: `<h1>${title}</h1>\n<p>${text}</p>\n<p class="quiet">${end}</p>` })
}

export const SUBSCRIBE_STYLE = `
.subscribe { max-width: 42rem; margin: 1rem 0; }
.subscribe label { display: block; font-weight: 600; margin-bottom: .3rem; }
.subscribe div { display: flex; flex-wrap: wrap; gap: .6rem; margin-bottom: .6rem; }
.subscribe input[type=email] { flex: 1 1 14rem; min-width: 0; min-height: 44px; font: inherit; color: var(--ink); background: var(--paper); border: 1px solid var(--quiet); border-radius: 8px; padding: .5rem .8rem; }
.subscribe input:focus-visible { outline: 3px solid var(--accent); outline-offset: 2px; }
.subscribe button { min-height: 44px; }
.signup { max-width: 42rem; margin: 2rem auto 0; }
@media print { .subscribe, .signup { display: none; } }
`
