import { NOTICES } from '../../core/course/notices.ts'
import { escapeHtml } from '../../core/mail/render.ts'
import { ROUTES } from '../../core/routes.ts'
import type { Frame } from './frame.ts'
import { type Page, page } from './layout.ts'

/** Texts about a course, or about the stream of notices, which is joined and left in the same way. */
export function courseWords({ messages }: Pick<Frame, 'messages'>, course: string | null | undefined) {
  return course === NOTICES ? { ...messages.course, ...messages.notices.words } : messages.course
}

/** The sign-up form of a course. It needs no script; the endpoint answers it with a page. */
export function subscribeForm(options: {
  readonly frame: Pick<Frame, 'messages'>
  /** Undefined for the platform's first. */
  readonly course: string | undefined
  /** The visitor's input, if it was not a valid address. */
  readonly refused?: string
}): string {
  const { frame, course, refused } = options
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
  return `<form class="subscribe" method="post" action="${ROUTES.subscribe.path}">${hidden}
<label for="${field}-email">${T.subscribeLabel}</label>
<div><input id="${field}-email" name="email" type="email" autocomplete="email" required maxlength="254"${invalid}><button type="submit">${T.subscribeButton}</button></div>
${why}<p class="quiet">${T.subscribeNote}</p>
</form>`
}

/** The form again, with what is wrong with the address. */
export function subscribeRefusedPage(
  frame: Frame,
  { course, refused }: { readonly course: string | undefined; readonly refused: string },
): Page {
  const T = courseWords(frame, course)
  return page({
    frame,
    title: T.subscribeRefusedTitle,
    style: SUBSCRIBE_STYLE,
    body: `<h1>${T.subscribeRefusedTitle}</h1>\n${subscribeForm({ frame, course, refused })}`,
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
