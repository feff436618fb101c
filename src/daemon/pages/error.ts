import { ERRORS, type ErrorCode } from '../../core/errors.ts'
import { escapeHtml } from '../../core/mail/render.ts'
import type { RouteName } from '../../core/routes.ts'
import { type Page, page } from './layout.ts'

interface Wording {
  readonly heading: string
  /** What to do now; ours, so it may hold links. */
  readonly help: string
}

const START = '<a href="/">To the start page</a>'
const LATER = `Wait a little and try again. ${START}.`

/** The page of last resort for each code. */
const EVERYWHERE: Readonly<Record<ErrorCode, Wording>> = {
  bad_request: { heading: 'That did not work', help: `${START}.` },
  token_invalid: { heading: 'This link does not work', help: `${START}.` },
  token_expired: { heading: 'This link has expired', help: `${START}.` },
  signature_invalid: { heading: 'That did not work', help: `${START}.` },
  challenge_failed: { heading: 'Please try once more', help: `${START}.` },
  unauthenticated: { heading: 'Sign in to continue', help: `Sign in and try again. ${START}.` },
  locked: { heading: 'This is locked', help: `Your plan does not cover it. ${START}.` },
  not_found: { heading: 'There is nothing here', help: `The address may be mistyped, or old. ${START}.` },
  method_not_allowed: { heading: 'That is not possible here', help: `${START}.` },
  request_timeout: { heading: 'That took too long', help: LATER },
  conflict: { heading: 'That did not work', help: LATER },
  payload_too_large: { heading: 'That is too much at once', help: `${START}.` },
  uri_too_long: { heading: 'This address is too long', help: `It may be mistyped. ${START}.` },
  unsupported_media_type: { heading: 'That did not work', help: `${START}.` },
  rate_limited: { heading: 'A little slower, please', help: LATER },
  headers_too_large: { heading: 'That is too much at once', help: `${START}.` },
  internal: {
    heading: 'Something went wrong',
    help: `It is our fault, and it is in our log under the number below. ${START}.`,
  },
  unavailable: { heading: 'Not available just now', help: LATER },
  store_not_persistent: { heading: 'Not available here', help: `${START}.` },
  store_unavailable: { heading: 'Not available just now', help: `Nothing was changed. ${LATER}` },
  payments_not_configured: {
    heading: 'Payments are not set up here',
    help: `Everything that is free works. ${START}.`,
  },
}

const FOR_PROGRAMS: Wording = {
  heading: 'This address is for programs',
  help: `<a href="/openapi.json">What it takes</a>. ${START}.`,
}

/** Where a route can say more than the code. */
const ON_ROUTE: Readonly<Partial<Record<RouteName, Readonly<Partial<Record<ErrorCode, Wording>>>>>> = {
  lesson: {
    not_found: {
      heading: 'There is no such lesson',
      help: `The course has seven: ${[1, 2, 3, 4, 5, 6, 7].map((day) => `<a href="/lessons/${day}">day ${day}</a>`).join(', ')}.`,
    },
  },
  status: {
    unauthenticated: {
      heading: 'For operators',
      help: `The <a href="/">status page</a> is open to everybody.`,
    },
  },
  confirm: {
    // The message says that the link does not work, and what to do; the heading what that means.
    token_invalid: { heading: 'Not confirmed', help: `${START}.` },
    token_expired: { heading: 'Not confirmed', help: `${START}.` },
    store_unavailable: {
      heading: 'Not confirmed yet',
      help: 'The link stays good: open it again in a few minutes.',
    },
  },
  unsubscribe: {
    store_unavailable: {
      heading: 'Not unsubscribed yet',
      help: 'The link stays good: open it again in a few minutes.',
    },
  },
  checkout: { unavailable: { heading: 'Not available just now', help: `Nothing was charged. ${LATER}` } },
}

/** An error as a person sees it: what happened, what to do, and the number that finds it in the log. */
export function errorPage({
  code,
  message,
  requestId,
  route,
  pagesAt,
}: {
  readonly code: ErrorCode
  readonly message: string
  readonly requestId: string
  readonly route: RouteName | undefined
  /** What stands before a path of the web service in links. */
  readonly pagesAt: string
}): Page {
  const { heading, help } =
    (route && ON_ROUTE[route]?.[code]) ??
    (route && code === 'method_not_allowed' ? FOR_PROGRAMS : EVERYWHERE[code])
  return page({
    title: heading,
    body: `<h1>${escapeHtml(heading)}</h1>
<p>${escapeHtml(message)}</p>
<p>${help.replaceAll('href="/', `href="${escapeHtml(pagesAt)}/`)}</p>
<p class="quiet">Error ${ERRORS[code].status} · request ${escapeHtml(requestId)}</p>`,
  })
}
