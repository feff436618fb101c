import { ERRORS, PlatformError } from '../../core/errors.ts'
import { errorPage } from '../pages/error.ts'
import { htmlResponse, jsonResponse } from './respond.ts'
import type { RouteRequest } from './route.ts'

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
