import type { IncomingMessage, ServerResponse } from 'node:http'
import { once } from '../core/calls.ts'
import type { Handler } from './embedding.ts'
import { rawErrorResponse, rawResponse } from './http/respond.ts'

export const ADAPTED = {
  // The check of a load balancer by HTTP/1.0 names no host.
  hostname: 'localhost',
  // Only what the adapter itself refuses (a host or a target that is no URL) comes here: it gets the same error format.
  errorHandler: () => rawResponse('bad_request'),
} as const

/**
 * A service as a listener of `node:http`, and so of every framework on top of it: `createServer(nodeListener(platform.web))`,
 * `app.use(nodeListener(platform.web))`. It answers every request that it is given, unknown paths with 404, so it
 * must come last; and it reads bodies itself, so no body parser may come before it.
 */
export function nodeListener(
  handler: Handler,
): (incoming: IncomingMessage, outgoing: ServerResponse) => Promise<void> {
  // Programs whose host speaks Request and Response never load it.
  return lazyListener(async () => {
    const { getRequestListener } = await import('@hono/node-server')
    return getRequestListener((request, environment) => handler.fetch(request, environment), {
      ...ADAPTED,
      overrideGlobalObjects: false,
    })
  })
}

type Listener = (incoming: IncomingMessage, outgoing: ServerResponse) => Promise<unknown>

/** Loaded with its first request; one that cannot be, as while a build is replaced, costs that request a 503. */
export function lazyListener(load: () => Promise<Listener>) {
  let listener: Listener | undefined
  const loaded = once(async () => {
    listener = await load()
    return listener
  })
  return async (incoming: IncomingMessage, outgoing: ServerResponse) => {
    const known = listener ?? (await loaded().catch(() => undefined))
    if (known) await known(incoming, outgoing)
    else {
      const { status, headers, body } = rawErrorResponse('unavailable', incoming.headers.accept)
      outgoing.writeHead(status, { ...headers, Connection: 'close' }).end(body)
    }
  }
}
