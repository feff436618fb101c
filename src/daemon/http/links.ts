import type { RouteContext } from './context.ts'
import { emptyResponse } from './respond.ts'
import type { Answer } from './route.ts'

/** Headers by which browsers and proxies mark a prefetch. */
const PURPOSES = ['sec-purpose', 'purpose', 'x-moz', 'x-purpose'] as const
const isPrefetch = (headers: Headers) =>
  PURPOSES.some((name) => /prefetch|preview|prerender/i.test(headers.get(name) ?? ''))

export const PREFETCHED: Answer<never> = {
  status: 204,
  description: 'A prefetch: nothing was looked at.',
  content: {},
}

/** The answer to HEAD and prefetches of a mail's link, which must change nothing; undefined for any other request. */
export function answerToPrefetch({ request: { method, headers } }: RouteContext): Response | undefined {
  if (method === 'HEAD') return emptyResponse(200)
  return isPrefetch(headers) ? emptyResponse() : undefined
}

/** Whether this request only gets a page whose button does what its link is for. */
export function needsButton({ request: { method, headers } }: RouteContext, by: 'link' | 'button'): boolean {
  return method === 'GET' && (by === 'button' || isScanner(headers))
}

/**
 * Did a program fetch this link, and no person follow it? Mail filters, link previews and prefetching browsers open
 * every link of a mail; a person's browser names HTML among what it accepts, and a program that means it asks for JSON.
 * A scanner that behaves as a browser in every respect cannot be told from one: `confirmation: 'button'` and
 * `unsubscription: 'button'` are for that.
 */
export function isScanner(headers: Headers): boolean {
  const accept = headers.get('accept') ?? ''
  if (!/\btext\/html\b|\bapplication\/(?:[\w.-]+\+)?json\b/i.test(accept)) return true
  return SCANNER.test(headers.get('user-agent') ?? '') || isPrefetch(headers)
}

const SCANNER =
  /bot\b|bot\/|crawl|spider|scanner|preview|prefetch|proofpoint|mimecast|barracuda|safelinks|safe links|urldefense|fireeye|trellix|symantec|sophos|forcepoint|ironport|fortinet|zscaler|virustotal|urlscan|checkpoint|trend ?micro|bitdefender|kaspersky|google-safety|google-read-aloud|googleimageproxy|ggpht|yahoomailproxy|yahoo pipes|microsoft office|ms-office|outlook-|facebookexternalhit|whatsapp|telegram|discord|slack|skypeuri|headlesschrome|phantomjs/i
