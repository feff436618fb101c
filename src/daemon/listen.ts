import type { Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { createAdaptorServer } from '@hono/node-server'
import type { Handler } from './platform.ts'

/** Node's defaults close no stalled socket within 12 s; these close all (field measure). */
const LIMITS = {
  headersTimeout: 5000,
  requestTimeout: 10_000,
  connectionsCheckingInterval: 1000,
  keepAliveTimeout: 5000,
  maxHeaderSize: 16 * 1024,
} as const
const MOST_REQUESTS_A_CONNECTION = 10_000
const CLOSE_DEADLINE_MS = 10_000

export interface Listener {
  /** The port that was really taken. */
  readonly port: number
  /** From now on requests reach this handler. */
  serve(handler: Handler): void
  /** Stops accepting, lets requests finish, and ends what has not finished by the deadline. */
  close(): Promise<void>
}

/** Takes a port; the handler comes afterwards, because its absolute links need the port. */
export async function listen({
  host,
  port,
}: {
  readonly host: string
  readonly port: number
}): Promise<Listener> {
  let handler: Handler | undefined
  const server = createAdaptorServer({
    fetch: (request, environment) =>
      handler?.fetch(request, environment) ?? new Response(null, { status: 503 }),
    serverOptions: LIMITS,
    overrideGlobalObjects: false,
  }) as Server
  server.maxRequestsPerSocket = MOST_REQUESTS_A_CONNECTION
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(port, host, resolve)
  })
  return {
    port: (server.address() as AddressInfo).port,
    serve(next) {
      handler = next
    },
    close: () =>
      new Promise((resolve) => {
        const deadline = setTimeout(() => server.closeAllConnections(), CLOSE_DEADLINE_MS)
        server.close(() => {
          clearTimeout(deadline)
          resolve()
        })
        server.closeIdleConnections()
      }),
  }
}
