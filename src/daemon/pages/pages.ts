import type { EventDefinition } from '../../core/analytics/events.ts'
import { escapeHtml } from '../../core/mail/render.ts'
import { type Page, page } from './layout.ts'

const T = {
  confirmedTitle: 'Confirmed',
  confirmedHeading: 'You are in',
  // Neither page knows when the next dispatch is, so neither promises a time.
  confirmed: 'Your address is confirmed. Lessons come once a day, beginning with the next delivery.',
  confirmedEnd: 'Every lesson has a link that ends the course with one click.',
  confirmTitle: 'Confirm',
  confirmHeading: 'Confirm your address',
  confirm: 'One click confirms that this address is yours and starts the course.',
  confirmButton: 'Confirm',
  confirmElse: 'If you did not ask for the course, close this page and nothing happens.',
  unsubscribedTitle: 'Unsubscribed',
  unsubscribedHeading: 'You are unsubscribed',
  // A forged or broken link gets the same page, which so cannot promise more.
  unsubscribed: 'If this link was complete, no further lessons will be mailed to you.',
  undo: 'Undo: keep the lessons coming',
  unsubscribedEnd: 'You can close this page.',
  resubscribedTitle: 'Welcome back',
  resubscribed: 'If this link was complete, the lessons continue where they stopped.',
  lessons: 'Lessons',
} as const

export function confirmedPage(): Page {
  return page({
    title: T.confirmedTitle,
    body: `<h1>${T.confirmedHeading}</h1>
<p>${T.confirmed}</p>
<p class="quiet">${T.confirmedEnd}</p>`,
  })
}

/** The same link, by a button: whoever only looks at it confirms nothing. */
export function confirmPage(action: string): Page {
  return page({
    title: T.confirmTitle,
    body: `<h1>${T.confirmHeading}</h1>
<p>${T.confirm}</p>
<form method="post" action="${escapeHtml(action)}"><p><button type="submit">${T.confirmButton}</button></p></form>
<p class="quiet">${T.confirmElse}</p>`,
  })
}

/** Always says the same, for a genuine, a forged and an old link; the form undoes through the same link. */
export function unsubscribedPage(action: string): Page {
  return page({
    title: T.unsubscribedTitle,
    body: `<h1>${T.unsubscribedHeading}</h1>
<p>${T.unsubscribed}</p>
<form method="post" action="${escapeHtml(action)}"><input type="hidden" name="undo" value="1"><p><button type="submit">${T.undo}</button></p></form>
<p class="quiet">${T.unsubscribedEnd}</p>`,
  })
}

export function resubscribedPage(): Page {
  return page({
    title: T.resubscribedTitle,
    body: `<h1>${T.resubscribedTitle}</h1>\n<p>${T.resubscribed}</p>`,
  })
}

/** A lesson as a page: `body` is compiled from the template, so it is ours. */
export function lessonPage({
  title,
  day,
  last,
  body,
  script,
  events,
}: {
  /** The course's. */
  readonly title: string
  readonly day: number
  readonly last: number
  readonly body: string
  readonly script: string | undefined
  /** The kinds that the script records. */
  readonly events: readonly EventDefinition[]
}): Page {
  const link = (to: number, text: string) =>
    to < 1 || to > last ? '<span></span>' : `<a href="/lessons/${to}">${text}</a>`
  return page({
    title: `Day ${day} · ${title}`,
    wide: true,
    script,
    ...(script !== undefined && { data: events }),
    body: `<p class="quiet course">${escapeHtml(title)} · day ${day} of ${last}</p>
<article class="lesson" data-lesson="day-${day}">${body}</article>
<nav aria-label="${T.lessons}">${link(day - 1, `← Day ${day - 1}`)}${link(day + 1, `Day ${day + 1} →`)}</nav>`,
  })
}
