import { tracingChannel } from 'node:diagnostics_channel'
import { Server as HttpServer, STATUS_CODES } from 'node:http'
import { connect, Server } from 'node:net'
import { expect, onTestFinished, test, vi } from 'vitest'
import type { Poll } from '../../src/daemon/http/poll.ts'
import { type Listener, listen } from '../../src/daemon/listen.ts'

type Answer = (request: Request) => Response | Promise<Response>

/** A listener on loopback that answers so. */
async function listening(answer?: Answer, poll?: Poll): Promise<Listener> {
  const listener = await listen('127.0.0.1', 0)
  onTestFinished(() => listener.close({ deadlineMs: 0 }))
  if (answer) listener.serve({ fetch: async (request) => answer(request) }, poll)
  return listener
}

/** A connection that said these bytes, and what came back so far. */
function say({ port }: Listener, bytes: string) {
  const it = { text: '', closed: false }
  const socket = connect(port, '127.0.0.1', () => socket.write(bytes, 'latin1'))
  onTestFinished(() => void socket.destroy())
  const closed = new Promise<string>((resolve) => {
    socket
      .setEncoding('latin1')
      .on('data', (chunk: string) => {
        it.text += chunk
      })
      .on('error', () => {})
      .on('close', () => {
        it.closed = true
        resolve(it.text)
      })
  })
  return Object.assign(it, { socket, end: closed })
}

/** A listener whose answers wait until they are given, with its handler's first call. */
async function holding() {
  const asked = Promise.withResolvers<void>()
  const held = Promise.withResolvers<Response>()
  const listener = await listening(() => {
    asked.resolve()
    return held.promise
  })
  return { listener, asked: asked.promise, answer: (text: string) => held.resolve(new Response(text)) }
}

/** A closing, and whether it is over. */
function closingOf(listener: Listener, options?: Parameters<Listener['close']>[0]) {
  const state = { over: false }
  const done = listener.close(options).then(() => {
    state.over = true
  })
  return Object.assign(state, { done })
}

const GET = 'GET / HTTP/1.1\r\nHost: x\r\n\r\n'
const statuses = (text: string) =>
  [...text.matchAll(/HTTP\/1\.1 (\d{3}) /g)].map(([, status]) => Number(status))

/** One answer with the standard error, whole, after which the connection ends. */
function expectRefusal(text: string, status: number, code: string): void {
  expect(statuses(text)).toEqual([status])
  const [head = '', rest = ''] = text.split('\r\n\r\n')
  expect(head.split('\r\n')[0]).toBe(`HTTP/1.1 ${status} ${STATUS_CODES[status]}`)
  const body = /\{.*\}/.exec(rest)?.[0] ?? ''
  expect(JSON.parse(body)).toMatchObject({ code, status })
  const fields = new Map(
    head
      .toLowerCase()
      .split('\r\n')
      .slice(1)
      .map((line) => line.split(': ') as [string, string]),
  )
  expect(fields.get('connection')).toBe('close')
  expect(fields.get('x-request-id')).toBe(JSON.parse(body).requestId)
  expect(fields.get('transfer-encoding') ?? fields.get('content-length')).toMatch(
    new RegExp(`^(?:chunked|${body.length})$`),
  )
}

test.each([
  [
    'a long header',
    `GET / HTTP/1.1\r\nHost: x\r\nX-Long: ${'a'.repeat(16 * 1024)}\r\n\r\n`,
    431,
    'headers_too_large',
  ],
  [
    'long extensions of a chunk',
    `POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n1;${'a'.repeat(17_000)}\r\na\r\n`,
    413,
    'payload_too_large',
  ],
  ['no HTTP at all', '\x16\x03\x01\x02\x00', 400, 'bad_request'],
  ['a tunnel', 'CONNECT evil.example:443 HTTP/1.1\r\nHost: evil.example\r\n\r\n', 400, 'bad_request'],
  ['no host', 'GET / HTTP/1.1\r\n\r\n', 400, 'bad_request'],
  ['two hosts', 'GET / HTTP/1.1\r\nHost: x\r\nhOST: y\r\n\r\n', 400, 'bad_request'],
])('%s is refused with a whole answer, and the connection ends', async (_, bytes, status, code) => {
  // A handler that waits for a body which never comes whole.
  const listener = await listening(async (request) => new Response(await request.text()))
  expectRefusal(await say(listener, bytes).end, status, code)
})

test.each([
  ['a head', 'GET / HTTP/1.1\r\nHost: x\r\n'],
  ['a body', 'POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\na'],
])('a request of which %s does not arrive in time is refused with 408', async (_, bytes) => {
  const listens = vi.spyOn(Server.prototype, 'listen')
  onTestFinished(() => listens.mockRestore())
  const listener = await listening(async (request) => new Response(await request.text()))
  const [server] = listens.mock.contexts
  if (!(server instanceof HttpServer)) throw new TypeError('it listens by node:http')
  expect(server).toMatchObject({ headersTimeout: 5000, requestTimeout: 10_000, keepAliveTimeout: 5000 })
  // The limits, without the seconds: Node looks for what is late each second.
  Object.assign(server, { headersTimeout: 1, requestTimeout: 1 })
  expectRefusal(await say(listener, bytes).end, 408, 'request_timeout')
})

test('an expectation that nobody knows is no reason to refuse a request', async () => {
  const listener = await listening(() => new Response('here'))
  const text = await say(listener, 'GET / HTTP/1.1\r\nHost: x\r\nExpect: cake\r\nConnection: close\r\n\r\n')
    .end
  expect(text).toMatch(/^HTTP\/1\.1 200 [\s\S]*here/)
})

test('a load balancer that checks by HTTP/1.0 need not name a host', async () => {
  const listener = await listening((request) => new Response(new URL(request.url).pathname))
  const text = await say(listener, 'GET /api/health HTTP/1.0\r\n\r\n').end
  expect(text).toMatch(/^HTTP\/1\.1 200 [\s\S]*\/api\/health/)
})

test('a connection may ask 32 things at once, and is ended with the thirty-third', async () => {
  const held: (() => void)[] = []
  const listener = await listening(async () => {
    await new Promise<void>((resolve) => held.push(resolve))
    return new Response('')
  })
  const patient = say(listener, GET.repeat(32))
  await expect.poll(() => held.length).toBe(32)
  for (const release of held.splice(0)) release()
  await expect.poll(() => statuses(patient.text).length).toBe(32)
  // What was answered counts no more.
  patient.socket.write(GET.repeat(32))
  await expect.poll(() => held.length).toBe(32)
  expect(patient.closed).toBe(false)
  patient.socket.write(GET)
  await patient.end
  for (const release of held) release()
})

test('a connection is ended politely with its ten thousandth request', async () => {
  const listener = await listening(
    () => new Response(''),
    (_, outgoing, beforeAnswer) => {
      setImmediate(() => {
        beforeAnswer(outgoing)
        outgoing.end()
      })
      return true
    },
  )
  const client = say(listener, GET)
  const next = () => void client.socket.write(GET)
  client.socket.on('data', next)
  const text = await client.end
  expect(statuses(text)).toHaveLength(10_000)
  expect(text.match(/connection: close/gi)).toHaveLength(1)
})

test('while it drains, an answer that is already being made ends its connection', async () => {
  const { listener, asked, answer } = await holding()
  const one = say(listener, GET)
  await asked
  listener.drain()
  answer('here')
  expect(await one.end).toMatch(/connection: close[\s\S]*here/i)
  // It still takes requests: a load balancer needs a moment to see that it drains.
  const late = say(listener, GET)
  expect(await late.end).toMatch(/^HTTP\/1\.1 200 /)
})

/** The timers of the listener alone; Node's servers have their own. */
function fakeTimers() {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'setInterval', 'clearInterval'] })
  onTestFinished(() => void vi.useRealTimers())
}
const turns = async (count = 20) => {
  for (let turn = 0; turn < count; turn += 1) await new Promise((resolve) => setImmediate(resolve))
}

/** A request that waits for the start, under timers that stand still. */
async function waiting(listener: Listener, accept = '*/*') {
  const timers = vi.getTimerCount()
  const early = say(listener, GET.replace('\r\n\r\n', `\r\nAccept: ${accept}\r\n\r\n`))
  while (vi.getTimerCount() === timers) await turns()
  return early
}

test('a request that arrives during the start waits and is served', async () => {
  fakeTimers()
  const listener = await listening()
  const early = await waiting(listener)
  listener.serve({ fetch: async () => new Response('here') })
  await expect.poll(() => early.text).toMatch(/^HTTP\/1\.1 200 [\s\S]*here/)
})

test.each([
  ['a browser', 'text/html,*/*;q=0.8', /Content-Type: text\/html[\s\S]*<h1>Not available just now/i],
  ['a program', 'application/json', /"code":"unavailable".*The platform is starting/],
])('a start that fails answers %s that it may try again', async (_, accept, expected) => {
  fakeTimers()
  const listener = await listen('127.0.0.1', 0)
  const early = await waiting(listener, accept)
  await listener.close()
  const text = await early.end
  expect(text).toMatch(/^HTTP\/1\.1 503 [\s\S]*Retry-After: 1\r\n/i)
  expect(text).toMatch(/\r\nConnection: close\r\n/i)
  expect(text).toMatch(expected)
})

test('a request waits five seconds for a start that hangs, and no longer', async () => {
  fakeTimers()
  const listener = await listening()
  const early = await waiting(listener)
  await vi.advanceTimersByTimeAsync(4_999)
  await turns()
  expect(early.text).toBe('')
  await vi.advanceTimersByTimeAsync(1)
  while (early.text === '') await turns()
  expect(early.text).toMatch(/^HTTP\/1\.1 503 /)
})

test('closing waits for an answer until the deadline, then for its handler two seconds, and leaves no timer', async () => {
  fakeTimers()
  const { listener, asked, answer } = await holding()
  const one = say(listener, GET)
  await asked
  const closing = closingOf(listener)
  await vi.advanceTimersByTimeAsync(9_999)
  await turns()
  expect(one.closed).toBe(false)
  await vi.advanceTimersByTimeAsync(1)
  await one.end
  await turns()
  await vi.advanceTimersByTimeAsync(1_999)
  expect(closing.over).toBe(false)
  await vi.advanceTimersByTimeAsync(1)
  await closing.done
  expect(vi.getTimerCount()).toBe(0)
  answer('far too late')
})

test('a handler that records what it did after its connection was ended is waited for, and no longer', async () => {
  fakeTimers()
  const { listener, asked, answer } = await holding()
  const one = say(listener, GET)
  await asked
  const closing = closingOf(listener, { deadlineMs: 300 })
  await vi.advanceTimersByTimeAsync(300)
  await one.end
  await turns()
  expect(closing.over).toBe(false)
  answer('late')
  await closing.done
  expect(vi.getTimerCount()).toBe(0)
})

test('an idle connection is ended after two looks without a request, and one that is being answered is not', async () => {
  fakeTimers()
  const asked = Promise.withResolvers<void>()
  const held = Promise.withResolvers<void>()
  const listener = await listening(async ({ url }) => {
    if (!url.endsWith('/slow')) return new Response('')
    asked.resolve()
    await held.promise
    return new Response('')
  })
  const silent = say(listener, '')
  const busy = say(listener, GET.replace('/', '/slow'))
  const polite = say(listener, GET)
  await asked.promise
  await expect.poll(() => statuses(polite.text)).toEqual([200])
  const closed = () => [silent.closed, busy.closed, polite.closed]
  const look = async () => {
    await vi.advanceTimersByTimeAsync(5000)
    await turns()
  }
  await look()
  expect(closed()).toEqual([false, false, false])
  polite.socket.write(GET)
  await expect.poll(() => statuses(polite.text)).toEqual([200, 200])
  await look()
  // Sooner than Node's own limit ends it.
  await expect.poll(closed, { timeout: 2000 }).toEqual([true, false, false])
  await look()
  expect(closed()).toEqual([true, false, false])
  await look()
  await expect.poll(closed, { timeout: 2000 }).toEqual([true, false, true])
  held.resolve()
  await expect.poll(() => statuses(busy.text)).toEqual([200])
})

test('closing with nothing to wait for ends idle connections at once and leaves no timer', async () => {
  fakeTimers()
  const listener = await listen('127.0.0.1', 0)
  listener.serve({ fetch: async () => new Response('') })
  const one = say(listener, GET)
  await expect.poll(() => statuses(one.text)).toEqual([200])
  await listener.close()
  await one.end
  expect(vi.getTimerCount()).toBe(0)
})

test('bytes that are no request get no answer in the middle of another one', async () => {
  const listener = await listening(
    () => new Response(new ReadableStream({ start: (on) => on.enqueue(new TextEncoder().encode('begun')) })),
  )
  const one = say(listener, GET)
  await expect.poll(() => one.text).toContain('begun')
  one.socket.write('\x16\x03\x01\r\n\r\n')
  expect(await one.end).not.toContain('bad_request')
})

test('a port that is taken is an error, not a listener', async () => {
  const { port } = await listening()
  await expect(listen('127.0.0.1', port)).rejects.toMatchObject({ code: 'EADDRINUSE' })
})

test('a connection that the system cannot accept ends nothing: the next one is answered', async () => {
  const opened: unknown[] = []
  const channel = tracingChannel('net.server.listen')
  const begun = { asyncStart: ({ server }: { server?: unknown }) => void opened.push(server) } as never
  channel.subscribe(begun)
  onTestFinished(() => void channel.unsubscribe(begun))
  const listener = await listening(() => new Response('here'))
  const [server] = opened as Server[]
  for (const code of ['ENFILE', 'ENOBUFS'])
    server?.emit('error', Object.assign(new Error('accept'), { code }))
  expect(server).toBeInstanceOf(Server)
  expect(await (await fetch(`http://127.0.0.1:${listener.port}/`)).text()).toBe('here')
})
