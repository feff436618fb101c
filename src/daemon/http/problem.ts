import { ERRORS, PlatformError } from '../../core/errors.ts'
import { escapeHtml } from '../../core/mail/template.ts'
import { type Page, page } from '../pages/layout.ts'
import type { RouteContext } from './context.ts'
import { htmlResponse, jsonResponse } from './respond.ts'

type Asked = Pick<RouteContext, 'requestId' | 'wantsHtml' | 'route' | 'errorTexts' | 'frame'>

/** An error as a person sees it: what happened, what to do, and the number that finds it in the log. */
function errorPage({ code, message }: PlatformError, { requestId, route, errorTexts, frame }: Asked): Page {
  const { errors } = frame.messages
  const [heading, next = '', what = message] =
    errorTexts?.(errors)[code] ??
    (route && code === 'method_not_allowed' ? errors.forPrograms : errors.codes[code])
  const help = next.includes('href="/"') ? next : `${next} ${errors.start}`.trimStart()
  return page(
    frame,
    heading,
    `<h1>${escapeHtml(heading)}</h1>
<p>${escapeHtml(what)}</p>
<p>${help.replaceAll('href="/', `href="${escapeHtml(frame.pagesAt)}/`)}</p>
<p class="quiet">${escapeHtml(errors.line(ERRORS[code].status, requestId))}</p>`,
  )
}

/** The one error shape (CONTRACT §4), as JSON for programs and as a page for persons. Never an internal text. */
export function errorResponse(error: unknown, asked: Asked, fields: Readonly<Record<string, string>> = {}) {
  const known =
    error instanceof PlatformError
      ? error
      : new PlatformError('internal', 'The platform met a fault; the request id finds it in the log.')
  const { code, status, message, issues } = known
  const { retryAfterSeconds = code === 'store_unavailable' ? 1 : undefined } = known
  const headers = {
    ...(code === 'unauthenticated' && { 'WWW-Authenticate': 'Bearer' }),
    ...(retryAfterSeconds !== undefined && { 'Retry-After': String(retryAfterSeconds) }),
    ...fields,
  }
  return asked.wantsHtml
    ? htmlResponse(errorPage(known, asked), status, headers)
    : jsonResponse({ code, status, message, requestId: asked.requestId, issues }, status, headers)
}
