import { randomUUID } from 'node:crypto'
import { type Context, Hono } from 'hono'
import type { Peer } from '../../core/access/client.ts'
import { PlatformError } from '../../core/errors.ts'
import type { Log } from '../../core/log.ts'
import { reportError } from '../../core/reporting/facade.ts'
import { ROUTES, type RouteName } from '../../core/routes.ts'
import type { Service } from '../../core/service.ts'
import type { Answered } from '../metrics/metrics.ts'
import { prefersHtml } from './accept.ts'
import { type AllowsOrigin, preflight, shareWith } from './cors.ts'
import type { Gate } from './gate.ts'
import { errorResponse } from './problem.ts'
import type { RouteRequest, RouteTable } from './route.ts'

export interface AppOptions {
  readonly service: Service
  readonly gate: Gate
  /** The client's key for the limits, from its socket and X-Forwarded-For. */
  readonly clientOf: (peer: Peer) => string
  /** Which origins may call from a browser; undefined: none, the service is for its own pages. */
  readonly allowsOrigin?: AllowsOrigin | undefined
  /** What stands before a path of the web service in links: nothing on that service itself. */
  readonly pagesAt: string
  readonly table: RouteTable
  readonly log: Log
  readonly monotonic: () => number
  /** Told of every answer, for the metrics. */
  readonly onAnswer: (answered: Answered) => void
}

/** A service as one `fetch`: routing, request ids, one error shape, one log line a request. */
export function createApp({
  service,
  table,
  gate,
  clientOf,
  allowsOrigin,
  pagesAt,
  log,
  monotonic,
  onAnswer,
}: AppOptions): (request: Request, environment?: unknown) => Promise<Response> {
  const app = new Hono()
  const methods = new Map<string, { readonly name: RouteName; readonly allowed: string[] }>()
  for (const [name, handler] of Object.entries(table) as [RouteName, NonNullable<RouteTable[RouteName]>][]) {
    const route = ROUTES[name]
    const allowed = route.methods.flatMap((method) => (method === 'GET' ? ['GET', 'HEAD'] : [method]))
    methods.set(route.path, { name, allowed })
    app.on([...route.methods], route.path, async (context) => {
      factsOf(context.req.raw).route = name
      return gate(name, routeRequest(context, { clientOf, pagesAt }), handler)
    })
  }
  for (const [path, { name, allowed }] of methods) {
    app.all(path, (context) => {
      factsOf(context.req.raw).route = name
      const error = new PlatformError('method_not_allowed', `This route takes ${allowed.join(', ')}.`)
      return errorResponse(error, routeRequest(context, { clientOf, pagesAt }), { Allow: allowed.join(', ') })
    })
  }
  app.notFound((context) =>
    errorResponse(
      new PlatformError('not_found', 'There is no such page or route.'),
      routeRequest(context, { clientOf, pagesAt }),
    ),
  )
  app.onError((error, context) => {
    if (!(error instanceof PlatformError)) {
      log.error('request_failed', 'a request met a fault of the platform', {
        requestId: factsOf(context.req.raw).id,
        fault: error.name,
        at: firstFrame(error),
      })
      reportError(error, {
        service,
        route: factsOf(context.req.raw).route,
        requestId: factsOf(context.req.raw).id,
      })
    }
    return errorResponse(error, routeRequest(context, { clientOf, pagesAt }))
  })

  return async (request, environment) => {
    const began = monotonic()
    const facts = factsOf(request)
    const refusal = tooLong(request, environment)
    const response = refusal
      ? errorResponse(refusal, {
          requestId: facts.id,
          route: undefined,
          pagesAt,
          wantsHtml: prefersHtml(request.headers.get('accept') ?? ''),
        })
      : ((allowsOrigin && preflight(request, facts.id, allowsOrigin)) ??
        (await app.fetch(request, environment as Environment | undefined)))
    if (allowsOrigin) shareWith(request, response, allowsOrigin)
    const durationMs = monotonic() - began
    const route = facts.route === undefined ? undefined : ROUTES[facts.route].path
    onAnswer({ service, method: request.method, route, status: response.status, durationMs })
    // Polls that find nothing wrong would be most of the log.
    const quiet = response.status === 200 && facts.route !== undefined && POLLED.has(facts.route)
    log[quiet ? 'debug' : 'info']('request', 'a request was answered', {
      service,
      method: request.method,
      route: route ?? '(none)',
      status: response.status,
      durationMs: Math.round(durationMs * 10) / 10,
      requestId: facts.id,
    })
    return response
  }
}

const POLLED: ReadonlySet<RouteName> = new Set(['webHealth', 'apiHealth', 'agentHealth', 'metrics'])

/** What the listener gives beside a request; an embedding program has none. */
interface Environment {
  readonly incoming?: {
    readonly rawHeaders?: readonly string[]
    readonly socket?: { readonly remoteAddress?: string }
  }
}

const LONGEST_URL = 4096
const MOST_HEADERS = 100

/** The parser bounds the bytes of URL and headers together; these bound what is looked at afterwards. */
function tooLong(request: Request, environment: unknown): PlatformError | undefined {
  if (request.url.length > LONGEST_URL)
    return new PlatformError('uri_too_long', `Addresses here have at most ${LONGEST_URL} characters.`)
  const fields = (environment as Environment | undefined)?.incoming?.rawHeaders?.length ?? 0
  if (fields > 2 * MOST_HEADERS)
    return new PlatformError('headers_too_large', `Requests here have at most ${MOST_HEADERS} header fields.`)
  return undefined
}

interface Facts {
  /** The caller's own id when it is well-formed, so that logs on both sides meet; else a new one. */
  readonly id: string
  /** The declared route, never the path asked for: that one can hold a token. */
  route: RouteName | undefined
}

/** A caller's id that is taken over. */
export const REQUEST_ID = /^[A-Za-z0-9_.-]{8,64}$/

const FACTS = new WeakMap<Request, Facts>()

function factsOf(request: Request): Facts {
  const known = FACTS.get(request)
  if (known) return known
  const given = request.headers.get('x-request-id') ?? ''
  const facts: Facts = { id: REQUEST_ID.test(given) ? given : randomUUID(), route: undefined }
  FACTS.set(request, facts)
  return facts
}

function routeRequest(
  context: Context,
  { clientOf, pagesAt }: Pick<AppOptions, 'clientOf' | 'pagesAt'>,
): RouteRequest {
  const request = context.req.raw
  const headers = request.headers
  const prefetch = [
    headers.get('sec-purpose'),
    headers.get('purpose'),
    headers.get('x-moz'),
    headers.get('x-purpose'),
  ]
  const socket = (context.env as Environment | undefined)?.incoming?.socket
  return {
    request,
    url: new URL(request.url),
    params: context.req.param() as Record<string, string>,
    requestId: factsOf(request).id,
    route: factsOf(request).route,
    client: clientOf({ socket: socket?.remoteAddress, forwarded: headers.get('x-forwarded-for') }),
    pagesAt,
    wantsHtml: prefersHtml(headers.get('accept') ?? ''),
    isPassive:
      request.method === 'HEAD' || prefetch.some((value) => /prefetch|preview|prerender/i.test(value ?? '')),
  }
}

function firstFrame(error: Error): string | undefined {
  return error.stack
    ?.split('\n')
    .find((line) => /^\s+at /.test(line))
    ?.trim()
    .slice(0, 200)
}
