import {
  createServer as createHttpServer,
  type IncomingMessage,
  type RequestListener,
  type Server,
  type ServerResponse,
} from 'node:http'
import { createServer as createHttpsServer, type ServerOptions } from 'node:https'
import {
  type AddressInfo,
  createServer as createTcpServer,
  type Socket,
  type Server as TcpServer,
} from 'node:net'
import { text } from 'node:stream/consumers'
import { onTestFinished } from 'vitest'

type Answer = (request: IncomingMessage, response: ServerResponse) => unknown

/** An HTTP server on loopback that goes away with the test; gives its root. */
export async function serve(answer: Answer, host = '127.0.0.1', port = 0): Promise<string> {
  const server = createHttpServer(async (request, response) => {
    try {
      await answer(request, response)
    } catch (error) {
      // Who goes away in the middle of a body, as a page does that is left, is no fault of the test.
      if (error !== request.errored) throw error
    }
  })
  return `http://${await listening(server, host, port)}`
}

/** As `serve`, for answers to a body. */
export function serveBodies(
  answer: (body: string, response: ServerResponse, request: IncomingMessage) => unknown,
): Promise<string> {
  return serve(async (request, response) => answer(await text(request), response, request))
}

export async function serveTls(
  options: ServerOptions,
  answer: RequestListener,
  host = '127.0.0.1',
): Promise<string> {
  return `https://${await listening(createHttpsServer(options, answer), host, 0)}`
}

/** A server of raw bytes: what no HTTP library would write. */
export async function serveTcp(connected: (socket: Socket) => void, host = '127.0.0.1'): Promise<string> {
  const server = createTcpServer((socket) => {
    socket.on('error', () => {})
    connected(socket)
  })
  return `http://${await listening(server, host, 0)}`
}

async function listening(server: Server | TcpServer, host: string, port: number): Promise<string> {
  const sockets = new Set<Socket>()
  server.on('connection', (socket: Socket) => {
    sockets.add(socket)
    socket.once('close', () => sockets.delete(socket))
  })
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(port, host, resolve)
  })
  onTestFinished(
    () =>
      new Promise<void>((resolve) => {
        server.close(() => resolve())
        for (const socket of sockets) socket.destroy()
      }),
  )
  const taken = (server.address() as AddressInfo).port
  return `${host.includes(':') ? `[${host}]` : host}:${taken}`
}

/** A health body as a service gives it. */
export function healthBody(parts: Record<string, unknown> = {}): string {
  return JSON.stringify({
    service: 'web',
    state: 'ok',
    build: null,
    startedAt: '2026-11-21T00:00:00.000Z',
    time: '2026-11-21T00:00:00.000Z',
    latencyMs: 1,
    probes: {},
    ...parts,
  })
}

/** A webhook for alerts on loopback, and what it was told so far, as `incident.opened store: its reason`. */
export async function alertWebhook(): Promise<{ readonly url: string; readonly told: readonly string[] }> {
  const told: string[] = []
  const url = await serveBodies((body, response) => {
    const { type, data } = JSON.parse(body)
    told.push(`${type} ${data.cause}: ${data.reason}`)
    response.end()
  })
  return { url, told }
}
