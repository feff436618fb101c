import { randomUUID } from 'node:crypto'
import { type Context, Hono } from 'hono'
import { cors } from 'hono/cors'
import type { Peer } from '../../core/access/client.ts'
import { PlatformError } from '../../core/errors.ts'
import type { Log } from '../../core/log.ts'
import { ROUTES, type RouteName } from '../../core/routes.ts'
import type { Service } from '../../core/service.ts'
import type { Gate } from './gate.ts'
import { errorResponse } from './problem.ts'
import type { RouteRequest, RouteTable } from './route.ts'

export interface AppOptions {
  readonly service: Service
  readonly gate: Gate
  /** The client's key for the limits, from its socket and X-Forwarded-For. */
  readonly clientOf: (peer: Peer) => string
  /** Which origins may call from a browser; undefined: none, the service is for its own pages. */
  readonly allowsOrigin?: ((origin: string) => boolean) | undefined
  readonly table: RouteTable
  readonly log: Log
  readonly monotonic: () => number
}

/** A service as one `fetch`: routing, request ids, one error shape, one log line a request. */
export function createApp({
  service,
  table,
  gate,
  clientOf,
  allowsOrigin,
  log,
  monotonic,
}: AppOptions): (request: Request, environment?: unknown) => Promise<Response> {
  const app = new Hono()
  if (allowsOrigin) {
    // Never a wildcard and never credentials: an allowed origin is named, any other gets no header at all.
    app.use(
      cors({
        origin: (origin) => (allowsOrigin(origin) ? origin : null),
        allowMethods: ['GET', 'POST'],
        allowHeaders: ['Content-Type', 'Authorization'],
        maxAge: 600,
      }),
    )
  }
  const methods = new Map<string, string[]>()
  for (const [name, handler] of Object.entries(table) as [RouteName, NonNullable<RouteTable[RouteName]>][]) {
    const route = ROUTES[name]
    methods.set(
      route.path,
      route.methods.flatMap((method) => (method === 'GET' ? ['GET', 'HEAD'] : [method])),
    )
    app.on([...route.methods], route.path, async (context) => {
      factsOf(context.req.raw).route = route.path
      return gate(name, routeRequest(context, clientOf), handler)
    })
  }
  for (const [path, allowed] of methods) {
    app.all(path, (context) => {
      const error = new PlatformError('method_not_allowed', `This route takes ${allowed.join(', ')}.`)
      return errorResponse(error, routeRequest(context, clientOf), { Allow: allowed.join(', ') })
    })
  }
  app.notFound((context) =>
    errorResponse(
      new PlatformError('not_found', 'There is no such page or route.'),
      routeRequest(context, clientOf),
    ),
  )
  app.onError((error, context) => {
    if (!(error instanceof PlatformError)) {
      log.error('request_failed', 'a request met a fault of the platform', {
        requestId: factsOf(context.req.raw).id,
        fault: error.name,
        at: firstFrame(error),
      })
    }
    return errorResponse(error, routeRequest(context, clientOf))
  })

  return async (request, environment) => {
    const began = monotonic()
    const response = await app.fetch(request, environment as object | undefined)
    const facts = factsOf(request)
    log.info('request', 'a request was answered', {
      service,
      method: request.method,
      route: facts.route,
      status: response.status,
      durationMs: Math.round((monotonic() - began) * 10) / 10,
      requestId: facts.id,
    })
    return response
  }
}

interface Facts {
  /** The caller's own id when it is well-formed, so that logs on both sides meet; else a new one. */
  readonly id: string
  /** The declared path, never the one asked for: that one can hold a token. */
  route: string
}

const FACTS = new WeakMap<Request, Facts>()

function factsOf(request: Request): Facts {
  const known = FACTS.get(request)
  if (known) return known
  const given = request.headers.get('x-request-id') ?? ''
  const facts = { id: /^[A-Za-z0-9_.-]{8,64}$/.test(given) ? given : randomUUID(), route: '(none)' }
  FACTS.set(request, facts)
  return facts
}

function routeRequest(context: Context, clientOf: AppOptions['clientOf']): RouteRequest {
  const request = context.req.raw
  const headers = request.headers
  const accept = headers.get('accept') ?? ''
  const prefetch = [
    headers.get('sec-purpose'),
    headers.get('purpose'),
    headers.get('x-moz'),
    headers.get('x-purpose'),
  ]
  const incoming = (context.env as { incoming?: { socket?: { remoteAddress?: string } } } | undefined)
    ?.incoming
  return {
    request,
    url: new URL(request.url),
    params: context.req.param() as Record<string, string>,
    requestId: factsOf(request).id,
    client: clientOf({ socket: incoming?.socket?.remoteAddress, forwarded: headers.get('x-forwarded-for') }),
    wantsHtml: /\btext\/html\b/.test(accept),
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
