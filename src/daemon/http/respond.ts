import { randomUUID } from 'node:crypto'
import { parseAccept } from 'hono/utils/accept'
import { isLanguage } from '../../core/course/definition.ts'
import { ERRORS, type ErrorCode } from '../../core/errors.ts'
import type { Page } from '../pages/layout.ts'

/** On every answer: it must not be cached, sniffed, indexed or embedded by other sites, and its URL, which may hold a token, must not leak. */
const COMMON = {
  'Cache-Control': 'no-store',
  'X-Content-Type-Options': 'nosniff',
  'Referrer-Policy': 'no-referrer',
  'X-Robots-Tag': 'noindex',
  'Cross-Origin-Resource-Policy': 'same-origin',
} as const
const NOTHING = { 'Content-Security-Policy': "default-src 'none'; frame-ancestors 'none'" } as const

export const JSON_FIELDS = {
  ...COMMON,
  ...NOTHING,
  'Content-Type': 'application/json; charset=utf-8',
} as const

type Fields = Readonly<Record<string, string>>

export function jsonResponse(body: unknown, status = 200, headers: Fields = {}): Response {
  return new Response(JSON.stringify(body), { status, headers: { ...JSON_FIELDS, ...headers } })
}

export function htmlResponse({ html, policy }: Page, status = 200, more: Fields = {}): Response {
  const type = { 'Content-Type': 'text/html; charset=utf-8', 'Content-Security-Policy': policy }
  return new Response(html, { status, headers: { ...COMMON, ...type, ...more } })
}

export function textResponse(text: string, type: string): Response {
  return new Response(text, { headers: { ...COMMON, 'Content-Type': type } })
}

/** A picture that other sites may show; an answer that is a minute old says nothing new. */
export function pictureResponse(picture: string | Uint8Array<ArrayBuffer>, type: string): Response {
  const shared = { 'Cross-Origin-Resource-Policy': 'cross-origin', 'Cache-Control': 'public, max-age=60' }
  return new Response(picture, { headers: { ...COMMON, ...NOTHING, ...shared, 'Content-Type': type } })
}

/** An answer without a body, for HEAD and prefetches, which check nothing and change nothing. */
export function emptyResponse(status = 204, headers: Fields = {}): Response {
  return new Response(null, { status, headers: { ...COMMON, ...headers } })
}

/** No browser names more than a few dozen. */
const MOST_NAMES = 64

/** What an Accept or Accept-Language header names, in lower case, the best first. */
export const acceptedOf = (header: string | null | undefined) =>
  parseAccept(header ?? '')
    .slice(0, MOST_NAMES)
    .flatMap(({ type, q }) => (q > 0 ? [{ type: type.toLowerCase(), q }] : []))

/** The languages that a reader wants, the first first: that of the link, then those of the browser. */
export function languagesOf(request: Request, url: URL): readonly string[] {
  const asked = url.searchParams.get('language') ?? ''
  const wanted = acceptedOf(request.headers.get('accept-language'))
  return [asked.toLowerCase(), ...wanted.map(({ type }) => type)].filter(isLanguage)
}

/** True if an Accept header names HTML and does not prefer JSON (RFC 9110 §12.5.1), as browsers do. */
export function prefersHtml(accept: string | null | undefined): boolean {
  const form = /^(?:text\/html|application\/(?:xhtml\+xml|(?:[\w.-]+\+)?json))$/
  const found = acceptedOf(accept).find(({ type }) => form.test(type))
  return found !== undefined && !found.type.endsWith('json')
}

/** The standard error for what is no request, or comes before anything can answer it; a plain page for browsers. */
export function rawErrorResponse(
  code: ErrorCode,
  accept?: string | null,
  message: string = ERRORS[code].meaning,
) {
  const { status } = ERRORS[code]
  const requestId = randomUUID()
  const html = prefersHtml(accept)
  const headers: Fields = {
    ...JSON_FIELDS,
    ...(html && { 'Content-Type': 'text/html; charset=utf-8' }),
    'X-Request-Id': requestId,
    ...(status === 503 && { 'Retry-After': '1' }),
  }
  // The sentences are ours, so nothing needs escaping.
  const body = html
    ? `<!doctype html><html lang="en"><meta name="viewport" content="width=device-width"><title>${status}</title><h1>Not available just now</h1><p>${message}</p>`
    : JSON.stringify({ code, status, message, requestId })
  return { status, headers, body }
}

export function rawResponse(...asked: Parameters<typeof rawErrorResponse>): Response {
  const { body, ...init } = rawErrorResponse(...asked)
  return new Response(body, init)
}

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
export function preflight(request: Request, allowsOrigin: AllowsOrigin): Response | undefined {
  if (request.method !== 'OPTIONS' || !request.headers.has('access-control-request-method')) return undefined
  return emptyResponse(204, allowsOrigin(request.headers.get('origin') ?? '') ? MAY : {})
}

/** Never a wildcard and never credentials: an allowed origin is named, any other gets no header at all. */
export function addCorsHeaders(request: Request, response: Response, allowsOrigin: AllowsOrigin): void {
  const { headers } = response
  const origin = request.headers.get('origin')
  if (origin === null) return
  // A cache must not serve one origin's response to another.
  headers.append('Vary', 'Origin')
  if (!allowsOrigin(origin)) return
  headers.set('Access-Control-Allow-Origin', origin)
  headers.set('Access-Control-Expose-Headers', 'RateLimit, RateLimit-Policy, Retry-After, X-Request-Id')
}
