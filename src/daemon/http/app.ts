import type { IncomingMessage } from 'node:http'
import { Hono } from 'hono'
import { once } from '../../core/calls.ts'
import { framesOf, PlatformError, storeFault } from '../../core/errors.ts'
import { PATHS } from '../../core/paths.ts'
import { reportError } from '../../core/reporting/facade.ts'
import { WEB } from '../../core/service.ts'
import { frameOf } from '../pages/layout.ts'
import { type Counted, RouteContext } from './context.ts'
import type { Gate } from './gate.ts'
import { noteAnswer } from './poll.ts'
import { errorResponse } from './problem.ts'
import { type AllowsOrigin, addCorsHeaders, preflight } from './respond.ts'
import type { Handler, RouteRow, Site } from './route.ts'

/** A service as one `fetch`: routing, request ids, one error shape, one log line a request. */
export function createApp(site: Site, gate: Gate, counted: Counted, allowed: AllowsOrigin) {
  const { service, routes, platform, settings, clock, log } = site
  const frame = frameOf(platform, settings.site.siteUrl, service.name === WEB ? '' : undefined)
  const app = new Hono<{ Bindings: RouteContext }>()
  for (const route of routes) {
    const handler = lazyHandler(route, site)
    app.on([...route.methods], route.path, ({ env: c, req }) => {
      c.route = route
      c.params = req.param()
      return gate(route, c, handler)
    })
  }
  for (const route of routes) {
    const Allow = route.methods.join(', ').replace('GET', 'GET, HEAD')
    const error = new PlatformError('method_not_allowed', `This route takes ${Allow}.`)
    app.all(route.path, ({ env: c }) => {
      c.route = route
      return errorResponse(error, c, { Allow })
    })
  }
  app.notFound(({ env: c }) =>
    errorResponse(new PlatformError('not_found', 'There is no such page or route.'), c),
  )
  app.onError((error, { env: { requestId, route }, env: c }) => {
    if (!(error instanceof PlatformError)) {
      const [frame] = framesOf(error)
      const fields = { requestId, fault: error.name, at: frame?.trim().slice(0, 200) }
      log.error('request_failed', 'a request met a fault of the platform', fields)
      reportError(error, { service: service.name, route: route?.name, requestId })
    }
    return errorResponse(error, c)
  })

  // Other sites subscribe and send events; the other routes of web are for its own pages.
  const shared: readonly string[] = [PATHS.subscribe, PATHS.analytics]
  const isShared = ({ headers, url }: Request) =>
    service.name !== WEB || (headers.has('origin') && shared.includes(new URL(url).pathname))

  return async (request: Request, environment?: unknown): Promise<Response> => {
    const began = clock.monotonic()
    // What the listener passes with a request; nothing in an embedding program.
    const { incoming } = (environment ?? {}) as { readonly incoming?: Partial<IncomingMessage> }
    const c = new RouteContext(request, incoming?.socket?.remoteAddress, frame, counted)
    const allowsOrigin = isShared(request) ? allowed : undefined
    const refusal = tooLong(request, incoming?.rawHeaders)
    let response: Response
    try {
      response = refusal
        ? errorResponse(refusal, c)
        : ((allowsOrigin && preflight(request, allowsOrigin)) ?? (await app.fetch(request, c)))
    } finally {
      c.release()
    }
    response.headers.set('X-Request-Id', c.requestId)
    if (allowsOrigin) addCorsHeaders(request, response, allowsOrigin)
    const { path: route, limits } = c.route ?? {}
    const { status } = response
    const durationMs = clock.monotonic() - began
    // Forged requests that succeed count as any others: without them, a few refused ones would be most of all.
    const isForged = status < 400 ? undefined : c.isForged
    const answered = { service: service.name, method: request.method, route, status, durationMs, isForged }
    noteAnswer(site, answered, c.requestId, status === 200 && limits?.length === 0)
    return response
  }
}

/** A handler whose file is loaded with its first request; a file that cannot be loaded, because the build is being replaced, is tried again. */
export function lazyHandler({ load }: Pick<RouteRow, 'load'>, site: Site): Handler {
  const opened = once(async () => (await load()).route(site.platform, site.service).open(site))
  return async (c) => {
    const handler = await opened()
    try {
      return await handler(c)
    } catch (error) {
      if (storeFault(error) === 'busy') site.metrics.series.platformctl_pool_exhausted_total.inc()
      throw error
    }
  }
}

const LONGEST_URL = 4096
const MOST_HEADERS = 100

/** Limits the length of the URL and the number of headers. Node's parser only limits their bytes together. */
function tooLong({ url }: Request, { length }: readonly string[] = []): PlatformError | undefined {
  if (url.length > LONGEST_URL)
    return new PlatformError('uri_too_long', `Addresses here have at most ${LONGEST_URL} characters.`)
  return length > 2 * MOST_HEADERS
    ? new PlatformError('headers_too_large', `Requests here have at most ${MOST_HEADERS} header fields.`)
    : undefined
}
