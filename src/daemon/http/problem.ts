import { ERRORS, type ErrorCode, PlatformError } from '../../core/errors.ts'
import { escapeHtml } from '../../core/mail/render.ts'
import type { ErrorTexts, Messages } from '../../core/messages/en.ts'
import type { RouteName } from '../../core/routes.ts'
import { type Frame, type Page, page } from '../pages/layout.ts'
import { htmlResponse, jsonResponse } from './respond.ts'
import type { RouteRequest } from './route.ts'

/** With more lessons than this, the page shows no links to them: they would fill it. */
const MOST_LESSON_LINKS = 10

/** Texts for routes that can say more than the error code does. */
function onRoute({ messages: { errors }, lessons }: Frame): OnRoute {
  const links = Array.from({ length: lessons <= MOST_LESSON_LINKS ? lessons : 0 }, (_, index) => index + 1)
    .map((number) => `<a href="/lessons/${number}">${errors.lessonLink(number)}</a>`)
    .join(', ')
  return {
    lesson: { not_found: errors.noLesson(links, lessons) },
    status: { unauthenticated: errors.operatorsOnly },
    confirm: {
      token_invalid: errors.linkInvalid,
      token_expired: errors.linkExpired,
      store_unavailable: errors.notConfirmedYet,
    },
    unsubscribe: { store_unavailable: errors.notUnsubscribedYet },
    checkout: { unavailable: errors.notCharged },
  }
}

type OnRoute = Readonly<Partial<Record<RouteName, Readonly<Partial<Record<ErrorCode, ErrorTexts>>>>>>

function textsOf(
  { errors }: Messages,
  code: ErrorCode,
  route: RouteName | undefined,
  routes: OnRoute,
): ErrorTexts {
  const own = route && routes[route]?.[code]
  return own ?? (route && code === 'method_not_allowed' ? errors.forPrograms : errors.codes[code])
}

/** An error as a person sees it: what happened, what to do, and the number that finds it in the log. */
function errorPage(input: {
  readonly code: ErrorCode
  readonly message: string
  readonly requestId: string
  readonly route: RouteName | undefined
  readonly frame: Frame
}): Page {
  const { code, message, requestId, route, frame } = input
  const { heading, help, what } = textsOf(frame.messages, code, route, onRoute(frame))
  return page({
    frame,
    title: heading,
    body: `<h1>${escapeHtml(heading)}</h1>
<p>${escapeHtml(what ?? message)}</p>
<p>${help.replaceAll('href="/', `href="${escapeHtml(frame.pagesAt)}/`)}</p>
<p class="quiet">${escapeHtml(frame.messages.errors.line(ERRORS[code].status, requestId))}</p>`,
  })
}

/** The one error shape (CONTRACT §4), as JSON for programs and as a page for persons. Never an internal text. */
export function errorResponse(
  error: unknown,
  request: Pick<RouteRequest, 'requestId' | 'wantsHtml' | 'route' | 'frame'>,
  headers: Readonly<Record<string, string>> = {},
): Response {
  const known =
    error instanceof PlatformError
      ? error
      : new PlatformError('internal', 'The platform met a fault; the request id finds it in the log.')
  const { status } = ERRORS[known.code]
  const authenticate: Record<string, string> =
    known.code === 'unauthenticated' ? { 'WWW-Authenticate': 'Bearer' } : {}
  const retry: Record<string, string> =
    known.retryAfterSeconds === undefined ? {} : { 'Retry-After': String(known.retryAfterSeconds) }
  const all = { ...authenticate, ...retry, ...headers }
  if (request.wantsHtml)
    return htmlResponse({
      status,
      requestId: request.requestId,
      headers: all,
      ...errorPage({
        code: known.code,
        message: known.message,
        requestId: request.requestId,
        route: request.route,
        frame: request.frame,
      }),
    })
  const body = {
    code: known.code,
    status,
    message: known.message,
    requestId: request.requestId,
    ...(known.issues ? { issues: known.issues } : {}),
  }
  return jsonResponse(body, { status, requestId: request.requestId, headers: all })
}
