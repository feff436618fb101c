import { NOTICES, type Plan } from '../../core/course/definition.ts'
import { DAY_MS } from '../../core/durations.ts'
import { escapeHtml } from '../../core/mail/template.ts'
import type { Messages } from '../../core/messages/en.ts'
import { PATHS } from '../../core/paths.ts'
import { type Frame, type Page, page } from './layout.ts'

/** A page of a heading, a sentence and what else there is to say, in HTML of ours. */
const cardPage = (frame: Frame, title: string, heading: string, text: string, more = ''): Page =>
  page(frame, title, `<h1>${heading}</h1>\n<p>${text}</p>\n${more}`)
const quiet = (text: string) => `<p class="quiet">${text}</p>`

/** After the click. Says when the lessons come; nothing of it where the platform has no course any more. */
export function confirmedPage(frame: Frame, course: string | undefined, plan: Plan | undefined): Page {
  const T = courseWords(frame, course)
  const when = plan === undefined ? '' : cadenceText(frame.messages, plan)
  const text = course === NOTICES ? frame.messages.notices.words.confirmed : when
  return cardPage(frame, T.confirmedTitle, T.confirmedHeading, text, quiet(T.confirmedEnd))
}

function cadenceText({ course, time }: Messages, { cadence, spacingMs }: Plan): string {
  const often = cadence.kind === 'every' ? cadence.ms : (7 * DAY_MS) / (cadence.weekdays.length || 7)
  if (cadence.kind === 'every' || spacingMs > often) return course.confirmedEvery(Math.max(spacingMs, often))
  const { minute, zone, weekdays } = cadence
  const days =
    weekdays.length === time.weekdays.length ? [] : weekdays.flatMap((day) => time.weekdays[day - 1] ?? [])
  const clock = [Math.floor(minute / 60), minute % 60].map((part) => String(part).padStart(2, '0')).join(':')
  return course.confirmedAt(days, clock, zone)
}

const button = (action: string, label: string, hidden = '') =>
  `<form method="post" action="${escapeHtml(action)}">${hidden}<p><button type="submit">${label}</button></p></form>`

/** Before the click: a page with a button, so that opening the link alone confirms nothing. */
export function confirmPage(frame: Frame, action: string, course: string | undefined): Page {
  const T = courseWords(frame, course)
  const more = `${button(action, T.confirmButton)}\n${quiet(T.confirmElse)}`
  return cardPage(frame, T.confirmTitle, T.confirmHeading, T.confirm, more)
}

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
export function unsubscribePage(frame: Frame, link: UnsubscribeLink): Page {
  const T = courseWords(frame, link.course)
  const more = `${button(link.action, T.unsubscribeButton)}\n${quiet(T.unsubscribeElse)}${preferences(frame, link, '')}`
  return cardPage(frame, T.unsubscribeTitle, T.unsubscribeTitle, T.unsubscribe, more)
}

/** Always says the same, for a genuine, a forged and an old link; the form undoes through the same link. */
export function unsubscribedPage(frame: Frame, link: UnsubscribeLink): Page {
  const T = courseWords(frame, link.course)
  const undo = '<input type="hidden" name="undo" value="1">'
  const more = `${button(link.action, T.undo, undo)}\n${quiet(T.closePage)}${preferences(frame, link, undo)}`
  return cardPage(frame, T.unsubscribedTitle, T.unsubscribedTitle, T.unsubscribed, more)
}

/** A form for language and time zone. It shows none of the reader's, which a forged link must not reveal. */
function preferences({ messages: { course: T, language } }: Frame, link: UnsubscribeLink, hidden: string) {
  const { action, course, choice } = link
  if (choice === undefined || course === NOTICES) return ''
  const names = new Intl.DisplayNames(language, { type: 'language', fallback: 'code' })
  const select = (name: string, label: string, all: readonly string[], textOf = (value: string) => value) =>
    all.length === 0
      ? ''
      : `<p><label>${label} <select name="${name}"><option value="">${T.unchanged}</option>${all
          .map((value) => `<option value="${escapeHtml(value)}">${escapeHtml(textOf(value))}</option>`)
          .join('')}</select></label></p>`
  const languages = select('language', T.language, choice.languages, (tag) => names.of(tag) ?? tag)
  const zones = select('timeZone', T.timeZone, choice.hasZone ? Intl.supportedValuesOf('timeZone') : [])
  return `
<h2>${T.preferencesHeading}</h2>
${button(action, T.keep, `${hidden}<input type="hidden" name="preferences" value="1">${languages}${zones}`)}`
}

export function preferredPage(frame: Frame): Page {
  const T = frame.messages.course
  return cardPage(frame, T.preferredTitle, T.preferredTitle, T.preferred)
}

export function resubscribedPage(frame: Frame, course: string | undefined): Page {
  const T = courseWords(frame, course)
  return cardPage(frame, T.resubscribedTitle, T.resubscribedTitle, T.resubscribed)
}

/** Texts about a course, or about the stream of notices, which is joined and left in the same way. */
function courseWords({ messages }: Frame, course: string | undefined) {
  return course === NOTICES ? { ...messages.course, ...messages.notices.words } : messages.course
}

/** The sign-up form of a course, the first when left out; it needs no script. `refused` is input that was no address. */
export function subscribeForm(frame: Frame, course?: string, language?: string, refused?: string): string {
  const T = courseWords(frame, course)
  const field = course === undefined ? 'subscribe' : `subscribe-${course}`
  const hidden = Object.entries({ course, language })
    .map(([name, value = '']) => value && `<input type="hidden" name="${name}" value="${escapeHtml(value)}">`)
    .join('')
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
export function subscribeRefusedPage(frame: Frame, fields: Record<string, string | undefined>): Page {
  const { course, language, email = '' } = fields
  const title = courseWords(frame, course).subscribeRefusedTitle
  const form = subscribeForm(frame, course, language, email)
  return page(frame, title, `<h1>${title}</h1>\n${form}`, { style: SUBSCRIBE_STYLE })
}

/** The same for every address, known or not; `sent` is false when the platform can mail nobody. */
export function subscribedPage(frame: Frame, sent: boolean, course: string | undefined): Page {
  const T = courseWords(frame, course)
  const [title, text, end] = sent
    ? [T.subscribedTitle, T.subscribed, T.subscribedEnd]
    : [T.notMailedTitle, T.notMailed, T.closePage]
  return cardPage(frame, title, title, text, quiet(end))
}

export const SUBSCRIBE_STYLE = `
.subscribe { max-width: 42rem; margin: 1rem 0; }
.subscribe label { display: block; font-weight: 600; margin-bottom: .3rem; }
.subscribe div { display: flex; flex-wrap: wrap; gap: .6rem; margin-bottom: .6rem; }
.subscribe input[type=email] { flex: 1 1 14rem; min-width: 0; min-height: 44px; font: inherit; color: var(--ink); background: var(--paper); border: 1px solid var(--quiet); border-radius: 8px; padding: .5rem .8rem; }
.subscribe button { min-height: 44px; }
.signup { max-width: 42rem; margin: 2rem auto 0; }
@media print { .subscribe, .signup { display: none; } }
`
