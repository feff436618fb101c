import { escapeHtml } from '../../core/mail/render.ts'
import { type Page, page } from './layout.ts'

export function confirmedPage(): Page {
  return page({
    title: 'Confirmed',
    body: `<h1>You are in</h1>
<p>Your address is confirmed. The first lesson is on its way; after that, one comes every day for a week.</p>
<p class="quiet">Every lesson has a link that ends the course with one click.</p>`,
  })
}

/** The same link, by a button: whoever only looks at it confirms nothing. */
export function confirmPage(action: string): Page {
  return page({
    title: 'Confirm',
    body: `<h1>Confirm your address</h1>
<p>One click and the first lesson is on its way.</p>
<form method="post" action="${escapeHtml(action)}"><p><button type="submit">Confirm</button></p></form>
<p class="quiet">If you did not ask for the course, close this page and nothing happens.</p>`,
  })
}

/** Always says the same, for a genuine, a forged and an old link; the form undoes through the same link. */
export function unsubscribedPage(action: string): Page {
  return page({
    title: 'Unsubscribed',
    body: `<h1>You are unsubscribed</h1>
<p>No further lesson will be mailed to you.</p>
<form method="post" action="${escapeHtml(action)}"><input type="hidden" name="undo" value="1"><p><button type="submit">Undo: keep the lessons coming</button></p></form>
<p class="quiet">You can close this page.</p>`,
  })
}

export function resubscribedPage(): Page {
  return page({
    title: 'Welcome back',
    body: '<h1>Welcome back</h1>\n<p>If this link was yours, the lessons go on where they stopped.</p>',
  })
}

/** A lesson as a page: `body` is compiled from the template, so it is ours. */
export function lessonPage({
  title,
  day,
  last,
  body,
  script,
}: {
  /** The course's. */
  readonly title: string
  readonly day: number
  readonly last: number
  readonly body: string
  readonly script: string | undefined
}): Page {
  const link = (to: number, text: string) =>
    to < 1 || to > last ? '<span></span>' : `<a href="/lessons/${to}">${text}</a>`
  return page({
    title: `Day ${day} · ${title}`,
    wide: true,
    script,
    body: `<p class="quiet">${escapeHtml(title)} · day ${day} of ${last}</p>
<article class="lesson" data-lesson="day-${day}">${body}</article>
<nav aria-label="Lessons">${link(day - 1, `← Day ${day - 1}`)}${link(day + 1, `Day ${day + 1} →`)}</nav>`,
  })
}
