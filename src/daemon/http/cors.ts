import { emptyResponse } from './respond.ts'

/** Until origins are configured, only pages served from this machine may call (CONTRACT §2, site). */
const LOCALHOST = /^https?:\/\/(?:localhost|127\.0\.0\.1|\[::1\])(?::\d{1,5})?$/

/** Whether a page of an origin may call. Compared as serialized origins (RFC 6454 §6.2), never by prefix. */
export function originPolicy(configured: readonly string[] | undefined): (origin: string) => boolean {
  const allowed = new Set(configured)
  return configured === undefined ? (origin) => LOCALHOST.test(origin) : (origin) => allowed.has(origin)
}

export type AllowsOrigin = (origin: string) => boolean

const MAY = {
  'Access-Control-Allow-Methods': 'GET, POST',
  'Access-Control-Allow-Headers': 'Authorization, Content-Type, X-Request-Id',
  'Access-Control-Max-Age': '600',
} as const

/** A browser's question before the request itself (Fetch standard, CORS-preflight); undefined when it is none. */
export function preflight(
  request: Request,
  requestId: string,
  allowsOrigin: AllowsOrigin,
): Response | undefined {
  if (request.method !== 'OPTIONS' || !request.headers.has('access-control-request-method')) return undefined
  const origin = request.headers.get('origin') ?? ''
  return emptyResponse({ requestId, headers: allowsOrigin(origin) ? MAY : {} })
}

/** Never a wildcard and never credentials: an allowed origin is named, any other gets no header at all. */
export function addCorsHeaders(request: Request, response: Response, allowsOrigin: AllowsOrigin): void {
  const origin = request.headers.get('origin')
  if (origin === null) return
  // A cache must not serve one origin's response to another.
  response.headers.append('Vary', 'Origin')
  if (!allowsOrigin(origin)) return
  response.headers.set('Access-Control-Allow-Origin', origin)
  response.headers.set(
    'Access-Control-Expose-Headers',
    'RateLimit, RateLimit-Policy, Retry-After, X-Request-Id',
  )
}
