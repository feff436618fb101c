import { UNKNOWN_CLIENT } from '../../core/access/client.ts'
import type { Identify, Identity } from '../../core/access/identity.ts'
import { PlatformError } from '../../core/errors.ts'
import type { RouteName } from '../../core/routes.ts'
import type { Frame } from '../pages/layout.ts'

/** Input of a route handler: the request, the path's parameters, and the client. */
export interface RouteRequest {
  readonly request: Request
  readonly url: URL
  readonly params: Readonly<Record<string, string>>
  readonly requestId: string
  /** Name of the declared route; undefined if none matches. */
  readonly route: RouteName | undefined
  /** The client as limits count it: an IPv4 address, an IPv6 /56, or `embedded` when there is no socket. */
  readonly client: string
  /** The client that an untrusted proxy names in X-Forwarded-For; undefined without one. */
  readonly behind: string | undefined
  /** The request comes from this machine itself, and through no proxy. */
  readonly isLocal: boolean
  /** Call this as soon as the request's secret has proved right. */
  passed: () => void
  /** Language, name and colors shared by all pages of the platform. */
  readonly frame: Frame
  /** True if a browser asked, which gets a page; programs get JSON. */
  readonly wantsHtml: boolean
  readonly bodyShare: BodyShare
  /** HEAD and prefetches must change nothing. */
  readonly isPassive: boolean
}

export type RouteHandler = (request: RouteRequest) => Response | Promise<Response>

/** A service's table: each declared route with what answers it. */
export type RouteTable = Partial<Record<RouteName, RouteHandler>>

/** The identity that a request proves, or 401. */
export async function requireIdentity(
  identify: Identify,
  { request, passed }: Pick<RouteRequest, 'request' | 'passed'>,
): Promise<Identity> {
  const identity = await identify(request)
  if (identity === undefined)
    throw new PlatformError('unauthenticated', 'This route needs the token of a signed-in account.')
  passed()
  return identity
}

/**
 * Did a program fetch this link, and no person follow it? Mail filters, link previews and prefetching browsers open
 * every link of a mail; a person's browser names HTML among what it accepts, and a program that means it asks for JSON.
 * A scanner that behaves as a browser in every respect cannot be told from one: `confirmation: 'button'` and `unsubscription: 'button'` are
 * for that.
 */
export function isScanner(headers: Headers): boolean {
  const accept = headers.get('accept') ?? ''
  if (!/\btext\/html\b|\bapplication\/(?:[\w.-]+\+)?json\b/i.test(accept)) return true
  if (SCANNER.test(headers.get('user-agent') ?? '')) return true
  return PURPOSES.some((name) => /prefetch|preview|prerender/i.test(headers.get(name) ?? ''))
}

/** Headers by which browsers and proxies mark a prefetch. */
export const PURPOSES = ['sec-purpose', 'purpose', 'x-moz', 'x-purpose'] as const

const SCANNER =
  /bot\b|bot\/|crawl|spider|scanner|preview|prefetch|proofpoint|mimecast|barracuda|safelinks|safe links|urldefense|fireeye|trellix|symantec|sophos|forcepoint|ironport|fortinet|zscaler|virustotal|urlscan|checkpoint|trend ?micro|bitdefender|kaspersky|google-safety|google-read-aloud|googleimageproxy|ggpht|yahoomailproxy|yahoo pipes|microsoft office|ms-office|outlook-|facebookexternalhit|whatsapp|telegram|discord|slack|skypeuri|headlesschrome|phantomjs/i

/** One request's share of the memory for bodies. */
export interface BodyShare {
  /** Takes bytes that have arrived; throws when this client or all together hold too many. */
  take(bytes: number): void
  /** Gives everything back, once the request is answered. */
  release(): void
}

/** A client's share of the memory: one that floods leaves the rest to others. */
const CLIENT_PART = 8

/**
 * Bounds the bytes of request bodies that are held at once, in all and by one client (docs/limits.md). Counted as they
 * arrive and given back with the answer, because until then the text and what was parsed of it are in memory.
 */
export function bodyMemory(mostBytes: number): (client: string) => BodyShare {
  const held = new Map<string, number>()
  let all = 0
  return (client) => {
    let mine = 0
    const share = client === UNKNOWN_CLIENT ? mostBytes : mostBytes / CLIENT_PART
    return {
      take(bytes) {
        const ofClient = held.get(client) ?? 0
        if (ofClient + bytes > share)
          throw new PlatformError(
            'rate_limited',
            'Too many large requests at once; send them one after the other.',
            { retryAfterSeconds: 1 },
          )
        if (all + bytes > mostBytes)
          throw new PlatformError('unavailable', 'Too many large requests at once; try again in a second.', {
            retryAfterSeconds: 1,
          })
        mine += bytes
        all += bytes
        held.set(client, ofClient + bytes)
      },
      release() {
        all -= mine
        const left = (held.get(client) ?? 0) - mine
        if (left > 0) held.set(client, left)
        else held.delete(client)
        mine = 0
      },
    }
  }
}
