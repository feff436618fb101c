import { once } from 'node:events'
import { createServer, type IncomingMessage, type Server, type ServerResponse, STATUS_CODES } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import type { ErrorCode } from '../core/errors.ts'
import { within } from '../core/host.ts'
import type { Service } from '../core/service.ts'
import type { Handler } from './embedding.ts'
import type { Poll } from './http/poll.ts'
import { rawErrorResponse, rawResponse } from './http/respond.ts'
import { ADAPTED, lazyListener } from './node-listener.ts'

/** Node's defaults close no stalled socket within 12 s; these close all (test/load/stalled-sockets). */
const LIMITS = {
  headersTimeout: 5000,
  requestTimeout: 10_000,
  connectionsCheckingInterval: 1000,
  keepAliveTimeout: 5000,
  maxHeaderSize: 16 * 1024,
  // Explicit, though it is the default: the strict parser keeps a second request from hiding inside the first.
  insecureHTTPParser: false,
  // Refused below with the standard error body; Node would send an empty one.
  requireHostHeader: false,
} as const
/** A client that pipelines requests and reads no answers fills this process's memory: answers are larger than requests. */
const MOST_AT_ONCE_A_CONNECTION = 32
/** A connection without progress at two checks in a row is closed, so after 10 to 15 s. */
const LOOK_MS = 5000
const STALLED_LOOKS = 2
const MOST_REQUESTS_A_CONNECTION = 10_000
const CLOSE_DEADLINE_MS = 10_000
/** Handlers whose connections were ended get this long to record what they did. */
const SETTLE_MS = 2000
/** Requests that arrive during the start wait this long for their handler. */
const START_MS = 5000

export type Listener = Awaited<ReturnType<typeof listen>>

/** A service's port could not be taken; `cause` says why. */
export class ListenError extends Error {
  override readonly name = 'ListenError'
  readonly service: Service
  readonly port: number

  constructor(service: Service, port: number, cause: unknown) {
    super(`the port ${port} of ${service} could not be taken`, { cause })
    this.service = service
    this.port = port
  }
}

/** Takes a port; the handler comes afterwards, because its absolute links need the port. */
export async function listen(host: string, port: number) {
  let handler: Handler | undefined
  let poll: Poll | undefined
  let draining = false
  let settled = () => {}
  const begun = Promise.withResolvers<void>()
  let running = 0
  // Not a Set of answers: a Set that changes with each request keeps dead answers alive until a full collection.
  const connections = new WeakMap<Socket, Connection>()

  const answer = lazyListener(async () => {
    // Loaded with the first request that is not a poll, because loading the adapter doubles the start time.
    const { getRequestListener } = await import('@hono/node-server')
    return getRequestListener(
      async (request, environment) => {
        if (handler === undefined) await within(START_MS, begun.promise, () => {})
        const outgoing = environment.outgoing as ServerResponse
        if (handler === undefined) {
          // A connection that is kept would hold up a process whose start failed.
          outgoing.shouldKeepAlive = false
          const accept = request.headers.get('accept')
          return rawResponse('unavailable', accept, 'The platform is starting; try again in a moment.')
        }
        running += 1
        return handler.fetch(request, environment).finally(() => settle(outgoing))
      },
      { ...ADAPTED, overrideGlobalObjects: true },
    )
  })
  const settle = (outgoing: ServerResponse) => {
    if (draining) outgoing.shouldKeepAlive = false
    running -= 1
    if (running === 0) settled()
  }
  const server = createServer(LIMITS, (incoming, outgoing) => {
    const connection = connections.get(incoming.socket) ?? { requests: 0, open: 0, answer: outgoing }
    if (connection.requests === 0) connections.set(incoming.socket, connection)
    connection.requests += 1
    connection.answer = outgoing
    if (draining || connection.requests >= MOST_REQUESTS_A_CONNECTION) outgoing.shouldKeepAlive = false
    // One that waits for the answer to another has no socket yet: it is counted below.
    if (outgoing.socket !== null && poll?.(incoming, outgoing, settle)) {
      running += 1
      return
    }
    connection.open += 1
    outgoing.once('close', () => {
      connection.open -= 1
    })
    if (connection.open > MOST_AT_ONCE_A_CONNECTION) incoming.socket.destroy()
    else if (hasWrongHost(incoming)) {
      const { status, headers, body } = rawErrorResponse('bad_request')
      const fields = { ...headers, 'Content-Length': Buffer.byteLength(body), Connection: 'close' }
      outgoing.writeHead(status, fields).end(body)
    } else void answer(incoming, outgoing)
  })
  const stopWatching = endStalled(server, (socket) => connections.get(socket))
  server.on('checkExpectation', (incoming: IncomingMessage, outgoing: ServerResponse) =>
    server.emit('request', incoming, outgoing),
  )
  server.on('connect', (_: IncomingMessage, socket: Duplex) => refuse(socket, 'bad_request'))
  server.on('clientError', (error: NodeJS.ErrnoException, socket: Socket) => {
    // Don't write an error into the middle of an answer, or to a client that has disconnected.
    const last = connections.get(socket)?.answer
    const answering = last?.headersSent === true && !last.writableFinished
    if (!socket.writable || answering || error.code === 'ECONNRESET') socket.destroy()
    else refuse(socket, PARSE_FAULTS[error.code ?? ''] ?? 'bad_request')
  })
  // The system could not accept a connection: the next one may succeed. A port that is taken rejects below.
  server.on('error', () => {})
  await once(server.listen(port, host), 'listening')

  return {
    /** The port that was really taken. */
    port: (server.address() as AddressInfo).port,
    /** From now on requests reach this handler, first those that have been waiting. */
    serve(next: Handler, nextPoll?: Poll) {
      handler = next
      poll = nextPoll
      begun.resolve()
    },
    /** From now on each answer ends its connection, so that clients turn elsewhere. */
    drain() {
      draining = true
    },
    /** Stops accepting, lets requests finish, and ends what has not finished by the deadline. */
    async close({ deadlineMs = CLOSE_DEADLINE_MS } = {}) {
      draining = true
      stopWatching()
      begun.resolve()
      const deadline = setTimeout(() => server.closeAllConnections(), deadlineMs)
      const closed = new Promise((resolve) => server.close(resolve))
      server.closeIdleConnections()
      await closed
      clearTimeout(deadline)
      if (running === 0) return
      // A handler outlives its connection: what it sent must still be recorded.
      const recorded = Promise.withResolvers<void>()
      settled = recorded.resolve
      await within(SETTLE_MS, recorded.promise, () => {})
    },
  }
}

/** Whether a request has two Host headers, or none by HTTP/1.1 (RFC 9112 §3.2): Node keeps the first, a proxy perhaps not. */
function hasWrongHost({ rawHeaders, httpVersion }: IncomingMessage): boolean {
  let hosts = 0
  for (let index = 0; index < rawHeaders.length; index += 2) {
    const name = rawHeaders[index]
    if (name?.length === 4 && name.toLowerCase() === 'host') hosts += 1
  }
  return httpVersion === '1.0' ? hosts > 1 : hosts !== 1
}

/**
 * Ends connections that Node's own limits miss. Those end a client that stops within a request; this one ends a client
 * that reads no answers, and one that keeps a connection open by an empty line now and then.
 */
function endStalled(server: Server, connectionOf: (socket: Socket) => Connection | undefined): () => void {
  const seen = new Map<Socket, { left: number; requests: number; looks: number }>()
  server.on('connection', (socket: Socket) => {
    seen.set(socket, { left: 0, requests: 0, looks: 0 })
    socket.once('close', () => seen.delete(socket))
  })
  const timer = setInterval(() => {
    for (const [socket, before] of seen) {
      const left = socket.writableLength
      const { requests = 0, open = 0 } = connectionOf(socket) ?? {}
      const stalled = left > 0 ? left === before.left : open === 0 && requests === before.requests
      const looks = stalled ? before.looks + 1 : 0
      if (looks === STALLED_LOOKS) socket.destroy()
      else seen.set(socket, { left, requests, looks })
    }
  }, LOOK_MS)
  timer.unref()
  return () => clearInterval(timer)
}

interface Connection {
  requests: number
  open: number
  answer: ServerResponse
}

const PARSE_FAULTS: Readonly<Record<string, ErrorCode>> = {
  ERR_HTTP_REQUEST_TIMEOUT: 'request_timeout',
  HPE_HEADER_OVERFLOW: 'headers_too_large',
  HPE_CHUNK_EXTENSIONS_OVERFLOW: 'payload_too_large',
}

/** Sends an error for input that could not be parsed as a request, and closes the connection. */
function refuse(socket: Duplex, code: ErrorCode): void {
  const { status, headers, body } = rawErrorResponse(code)
  const fields = Object.entries({
    ...headers,
    'Content-Length': Buffer.byteLength(body),
    Connection: 'close',
  })
  socket.end(
    `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n${fields.map(([name, value]) => `${name}: ${value}\r\n`).join('')}\r\n${body}`,
    // Disconnect the client, which may still be sending.
    () => socket.destroy(),
  )
}
