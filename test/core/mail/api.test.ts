import { getEventListeners } from 'node:events'
import { readFileSync } from 'node:fs'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { createServer as createSecureServer } from 'node:https'
import { type AddressInfo, createServer as createSocketServer, type Socket } from 'node:net'
import tls from 'node:tls'
import { expect, onTestFinished, test, vi } from 'vitest'
import { joinPieces } from '../../../src/core/mail/encoding.ts'
import { LINES, type Mail } from '../../../src/core/mail/mailer.ts'
import { openMailer } from '../../../src/core/mail/open.ts'
import { HTTP_OUTCOMES, type HttpRow } from '../../../src/core/mail/outcome.ts'
import { jsonPiecesOf } from '../../../src/core/mail/transports/forms.ts'
import { useProxies } from '../../../src/core/network/proxy.ts'
import { secret } from '../../../src/core/secret.ts'
import { compiledMails } from '../../support/learning.ts'

const WELCOME: Mail = {
  template: 'welcome',
  slots: { startUrl: 'https://www.example.com/' },
  to: { name: undefined, address: 'ada@example.com' },
  about: 'user.1',
  date: new Date('2026-11-21T04:00:00Z'),
}

interface Received {
  readonly headers: IncomingMessage['headers']
  readonly body: Record<string, unknown>
}

/** A provider that keeps what it is given and answers as told. */
async function provider(answer: (response: ServerResponse) => void) {
  const received: Received[] = []
  const server = createServer((request, response) => {
    let text = ''
    request.on('data', (chunk) => {
      text += chunk
    })
    request.on('end', () => {
      received.push({ headers: request.headers, body: JSON.parse(text) as Record<string, unknown> })
      answer(response)
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(async () => {
    server.closeAllConnections()
    await new Promise<void>((resolve) => server.close(() => resolve()))
  })
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/emails`
  return { url, mailer: mailerOf(url), received }
}

function mailerOf(url: string, key = 'provider-key') {
  const mailer = openMailer({
    compiled: compiledMails,
    mail: {
      key: secret(key),
      route: { kind: 'api', url },
      from: { name: 'The "Course"', address: 'course@example.com' },
      replyTo: undefined,
    },
  })
  onTestFinished(() => mailer.close())
  return mailer
}

const status =
  (code: number, headers: Record<string, string | string[]> = {}) =>
  (response: ServerResponse) =>
    void response.writeHead(code, headers).end('{}')

test('the documented JSON goes out with the key, and the provider’s id comes back', async () => {
  const { mailer, received } = await provider((response) => void response.end('{"id":"msg_1"}'))
  expect(await mailer.send(WELCOME)).toEqual({ kind: 'sent', id: 'msg_1' })
  const [first] = received
  expect(first?.headers).toMatchObject({
    authorization: 'Bearer provider-key',
    'content-type': 'application/json',
  })
  expect(first?.headers['idempotency-key']).toMatch(/^welcome\.[\w-]{32}$/)
  expect(first?.body).toMatchObject({
    from: '"The \\"Course\\"" <course@example.com>',
    to: ['ada@example.com'],
    subject: 'Welcome',
    html: expect.stringContaining('https://www.example.com/'),
    text: expect.stringContaining('https://www.example.com/'),
    headers: { 'Message-ID': expect.stringMatching(/^<[\w-]{32}@example\.com>$/) },
  })
  await mailer.send(WELCOME)
  expect(received[1]?.headers['idempotency-key']).toBe(first?.headers['idempotency-key'])
  expect(received[1]?.body).toEqual(first?.body)
})

/** The answers and faults of a provider, and the row of the table that decides. */
const CASES: readonly (readonly [row: HttpRow, how: string, url: () => Promise<string>, key?: string])[] = [
  ...(
    [
      ['rate-limited', 429],
      ['key-refused', 401],
      ['key-refused', 402],
      ['key-refused', 403],
      ['wrong-address', 301],
      ['wrong-address', 308],
      ['wrong-address', 404],
      ['wrong-address', 405],
      ['message-too-large', 413],
      ['message-deferred', 408],
      ['message-deferred', 409],
      ['message-deferred', 425],
      ['message-deferred', 500],
      ['message-deferred', 503],
      ['request-refused', 410],
      ['request-refused', 400],
      ['request-refused', 422],
      ['request-refused', 451],
    ] as const
  ).map(
    ([row, code]) =>
      [
        row,
        String(code),
        async () => (await provider(status(code, { Location: '/elsewhere' }))).url,
      ] as const,
  ),
  ['certificate-refused', 'an unknown issuer', () => tlsProvider()],
  [
    'certificate-refused',
    'a certificate for another name',
    async () => {
      const before = tls.getCACertificates('default')
      tls.setDefaultCACertificates([...before, fixture('ca.crt')])
      onTestFinished(() => tls.setDefaultCACertificates(before))
      return tlsProvider()
    },
  ],
  [
    'key-unusable',
    'a key that was copied shortened',
    async () => (await provider(status(200))).url,
    'provider-key…',
  ],
  ['unreachable', 'no server', async () => 'http://127.0.0.1:1/emails'],
  ['unreachable', 'no such name', async () => 'http://mail.invalid/emails'],
  [
    'proxy-refused',
    'a proxy that wants a password',
    () => behindRefusing('407 Proxy Authentication Required'),
  ],
  ['proxy-refused', 'a proxy that finds no way', () => behindRefusing('502 Bad Gateway')],
  ['proxy-refused', 'a proxy that hangs up', () => behindRefusing(undefined)],
  [
    'dropped',
    'the request taken and the line dropped',
    async () => (await provider((response) => void response.destroy())).url,
  ],
  [
    'dropped',
    'an answer that is not HTTP',
    async () => (await provider((response) => void response.socket?.end('what?\r\n\r\n'))).url,
  ],
]

/** The address of a provider behind a proxy that answers so to whoever wants to get through. */
async function behindRefusing(answer: string | undefined): Promise<string> {
  const proxy = createSocketServer((socket) => {
    socket.on('error', () => {})
    socket.once('data', () => (answer ? socket.end(`HTTP/1.1 ${answer}\r\n\r\n`) : socket.destroy()))
  })
  await new Promise<void>((resolve) => proxy.listen(0, '127.0.0.1', resolve))
  useProxies({ HTTPS_PROXY: `http://127.0.0.1:${(proxy.address() as AddressInfo).port}` })
  onTestFinished(() => {
    useProxies({})
    proxy.close()
  })
  return 'https://mail.example/emails'
}

test('a proxy that says nothing is left after half a minute, and the message has not been sent', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
  onTestFinished(() => void vi.useRealTimers())
  const sockets: Socket[] = []
  const proxy = createSocketServer((socket) => {
    sockets.push(socket)
    socket.once('data', () => vi.advanceTimersByTime(30_000))
  })
  await new Promise<void>((resolve) => proxy.listen(0, '127.0.0.1', resolve))
  useProxies({ HTTPS_PROXY: `http://127.0.0.1:${(proxy.address() as AddressInfo).port}` })
  onTestFinished(() => {
    useProxies({})
    proxy.close()
  })
  const mailer = mailerOf('https://mail.example/emails')
  expect(await mailer.send(WELCOME)).toEqual(HTTP_OUTCOMES['proxy-refused'].outcome)
  for (const socket of sockets) socket.destroy()
})

/** A server whose certificate this test trusts while it lasts. */
function loopbackServer(listener: (request: IncomingMessage, response: ServerResponse) => void) {
  const before = tls.getCACertificates('default')
  tls.setDefaultCACertificates([...before, fixture('loopback.crt')])
  onTestFinished(() => tls.setDefaultCACertificates(before))
  return createSecureServer({ key: fixture('loopback.key'), cert: fixture('loopback.crt') }, listener)
}

const fixture = (name: string) => readFileSync(new URL(`../../fixtures/tls/${name}`, import.meta.url), 'utf8')

async function tlsProvider(): Promise<string> {
  const server = createSecureServer(
    { key: fixture('mail.example.com.key'), cert: fixture('mail.example.com.crt') },
    (_, response) => void response.end('{}'),
  )
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  return `https://localhost:${(server.address() as AddressInfo).port}/emails`
}

test('every row of the table has a provider that misbehaves so', () => {
  // These two are shown with the providers that have them.
  const elsewhere = ['recipient-inactive', 'not-recorded']
  expect([...new Set(CASES.map(([row]) => row)), ...elsewhere].sort()).toEqual(
    Object.keys(HTTP_OUTCOMES).sort(),
  )
})

test.each(CASES.map(([row, how, url, key]) => ({ row, how, url, key })))(
  '$row: $how: nothing is thrown, and the reason holds no secret',
  async ({ row, url, key }) => {
    const outcome = await mailerOf(await url(), key).send(WELCOME)
    const expected = HTTP_OUTCOMES[row].outcome
    expect(outcome).toEqual({ ...expected, reason: expect.stringContaining(expected?.reason ?? '?') })
    expect(JSON.stringify(outcome)).not.toMatch(/provider-key|localhost|invalid/)
  },
)

test('a redirect is not followed: the key goes nowhere else', async () => {
  const elsewhere = await provider(status(200))
  const { mailer } = await provider(status(307, { Location: elsewhere.url }))
  expect((await mailer.send(WELCOME)).kind).toBe('transient')
  expect(elsewhere.received).toEqual([])
})

test.each([
  ['that floods', 64 * 1024],
  ['that drips', 1],
])('an answer without end %s is cut, and its status counts', async (_, bytes) => {
  const { mailer } = await provider((response) => {
    response.writeHead(200)
    const more = () => {
      if (response.destroyed) return
      if (vi.isFakeTimers()) vi.advanceTimersByTime(5000)
      response.write(Buffer.alloc(bytes, ' '), () => setImmediate(more))
    }
    more()
  })
  if (bytes === 1) {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
    onTestFinished(() => void vi.useRealTimers())
  }
  expect(await mailer.send(WELCOME)).toMatchObject({ kind: 'sent' })
  await mailer.close()
})

test('refuses an address that a provider’s parser could misread before sending', async () => {
  const { mailer, received } = await provider(status(200))
  for (const address of ['"a@b.example,c"@example.com', '"a b"@example.com'])
    expect(await mailer.send({ ...WELCOME, to: { name: undefined, address } })).toMatchObject({
      kind: 'permanent',
    })
  expect(received).toEqual([])
})

test.each(['', 'taken', '{"id":7}', '[]', 'null'])(
  'an answer of 200 with the body %j is sent, under our own key',
  async (body) => {
    const { mailer } = await provider((response) => void response.end(body))
    expect(await mailer.send(WELCOME)).toEqual({ kind: 'sent', id: expect.stringMatching(/^welcome\./) })
  },
)

test.each([
  [200, { kind: 'sent', id: expect.stringMatching(/^welcome\./) }],
  [400, { kind: 'transient', scope: 'sender' }],
])('an answer of %d whose body breaks off counts as its status says', async (code, outcome) => {
  const { mailer } = await provider((response) => {
    response.writeHead(code, { 'Content-Length': '100' }).write('{"id":', () => response.destroy())
  })
  expect(await mailer.send(WELCOME)).toMatchObject(outcome)
})

test('honors the provider’s retry delay', async () => {
  expect(await (await provider(status(429, { 'Retry-After': '90' }))).mailer.send(WELCOME)).toMatchObject({
    retryAfterMs: 90_000,
  })
  expect(await (await provider(status(503, { 'Retry-After': '999999' }))).mailer.send(WELCOME)).toMatchObject(
    { retryAfterMs: 999_999_000 },
  )
})

test('turns the provider’s retry date into a delay by the provider’s own clock', async () => {
  const sent = async (retryAfter: string) => {
    const headers = { Date: 'Sat, 21 Nov 2026 04:00:00 GMT', 'Retry-After': retryAfter }
    return (await provider(status(429, headers))).mailer.send(WELCOME)
  }
  expect(await sent('Sat, 21 Nov 2026 04:02:00 GMT')).toMatchObject({ retryAfterMs: 120_000 })
  expect(await sent('Sun, 22 Nov 2026 04:02:00 GMT')).toMatchObject({ retryAfterMs: 86_520_000 })
  for (const past of ['Sat, 21 Nov 2026 03:59:00 GMT', 'soon'])
    expect(await sent(past)).toMatchObject({ retryAfterMs: 1000 })
  // Two of them are none: which one counts is not known. Joined, these would be a date.
  const headers = { Date: 'Sat, 21 Nov 2026 04:00:00 GMT', 'Retry-After': ['Jan 1', '2030'] }
  expect(await (await provider(status(503, headers))).mailer.send(WELCOME)).not.toHaveProperty('retryAfterMs')
})

test('500 mails at once arrive whole and under their own key, also when the answer comes before the body was read', async () => {
  const received = new Map<string, string>()
  // Answers when it has read the head, and takes its time with the body.
  const server = createSocketServer((socket) => {
    let bytes = Buffer.alloc(0)
    let answered = false
    socket.on('error', () => {})
    socket.on('data', (chunk) => {
      bytes = Buffer.concat([bytes, chunk])
      for (;;) {
        const end = bytes.indexOf('\r\n\r\n')
        if (end === -1) return
        const head = bytes.subarray(0, end).toString()
        const length = Number(/content-length: (\d+)/i.exec(head)?.[1])
        if (!answered) {
          answered = true
          socket.write('HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\n{"id":"x"}')
          socket.pause()
          setTimeout(() => socket.resume(), received.size % 7)
        }
        if (bytes.length < end + 4 + length) return
        const body = bytes.subarray(end + 4, end + 4 + length).toString()
        received.set(/idempotency-key: (\S+)/i.exec(head)?.[1] ?? '', body)
        bytes = bytes.subarray(end + 4 + length)
        answered = false
      }
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => void server.close())
  const mailer = mailerOf(`http://127.0.0.1:${(server.address() as AddressInfo).port}/emails`)
  const mails = Array.from({ length: 500 }, (_, index): Mail => {
    const startUrl = `https://www.example.com/${String(index).repeat(1 + (index % 40))}`
    return { ...WELCOME, slots: { startUrl }, about: `user.${index}` }
  })
  const outcomes = await Promise.all(mails.map((mail) => mailer.send(mail)))
  expect(new Set(outcomes.map(({ kind }) => kind))).toEqual(new Set(['sent']))
  await vi.waitFor(() => expect(received.size).toBe(500))
  for (const mail of mails) {
    const { key, html, text } = await mailer.compose(mail)
    expect(JSON.parse(received.get(key) ?? '{}')).toMatchObject({ html, text })
  }
})

test.each(['http', 'https'])(
  'on %s connections that break at any moment, no mail goes out under the key of another',
  async (scheme) => {
    const received: { readonly key: string; readonly body: string }[] = []
    let requests = 0
    const listener = (request: IncomingMessage, response: ServerResponse) => {
      const chunks: Buffer[] = []
      requests += 1
      const turn = requests % 5
      if (turn === 0) return void request.socket.destroy()
      request.on('error', () => {})
      request.on('data', (chunk: Buffer) => chunks.push(chunk))
      request.on('end', () => {
        received.push({
          key: String(request.headers['idempotency-key']),
          body: Buffer.concat(chunks).toString(),
        })
        response.end('{"id":"x"}', () => {
          if (turn === 1) request.socket.destroy()
        })
      })
    }
    const server = scheme === 'http' ? createServer(listener) : loopbackServer(listener)
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    onTestFinished(() => void server.close())
    const mailer = mailerOf(`${scheme}://127.0.0.1:${(server.address() as AddressInfo).port}/emails`)
    const mails = new Map(
      await Promise.all(
        Array.from({ length: 400 }, async (_, index) => {
          const startUrl = `https://www.example.com/${String(index).repeat(1 + (index % 40))}`
          const mail: Mail = { ...WELCOME, slots: { startUrl }, about: `user.${index}` }
          return [(await mailer.compose(mail)).key, mail] as const
        }),
      ),
    )
    const outcomes = await Promise.all([...mails.values()].map((mail) => mailer.send(mail)))
    expect(new Set(outcomes.map(({ kind }) => kind))).toEqual(new Set(['sent', 'unknown']))
    expect(received.length).toBeGreaterThan(200)
    for (const { key, body } of received) {
      const { html, text } = await mailer.compose(mails.get(key) ?? WELCOME)
      expect(JSON.parse(body)).toMatchObject({ html, text })
    }
  },
)

test('a mail abandoned while it waits for a connection passes its turn on', async () => {
  const held: ServerResponse[] = []
  const server = createServer((request, response) => {
    request.resume()
    held.push(response)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  const mailer = mailerOf(`http://127.0.0.1:${(server.address() as AddressInfo).port}/emails`)
  const mail = (index: number): Mail => ({ ...WELCOME, about: `user.${index}` })
  const out = Array.from({ length: LINES.api }, (_, index) => mailer.send(mail(index)))
  await vi.waitFor(() => expect(held.length).toBe(LINES.api))
  const giveUp = new AbortController()
  const givenUp = mailer.send(mail(100), giveUp.signal)
  const next = mailer.send(mail(101))
  // Both are in line by then.
  await new Promise((resolve) => setImmediate(resolve))
  giveUp.abort()
  held[0]?.end('{"id":"x"}')
  await vi.waitFor(() => expect(held.length).toBe(LINES.api + 1))
  for (const response of held) response.end('{"id":"x"}')
  expect((await givenUp).kind).toBe('transient')
  expect((await next).kind).toBe('sent')
  await Promise.all(out)
})

test('a closed transport sends nothing, and reports each mail as not sent', async () => {
  const { mailer, received } = await provider(status(200))
  await mailer.send(WELCOME)
  await mailer.close()
  expect(await mailer.send(WELCOME)).toMatchObject({ kind: 'transient', scope: 'connection' })
  expect(received).toHaveLength(1)
})

test('a mail aborted before it began was not sent; aborted while it waits for the answer, its outcome is unknown', async () => {
  const stopped = new AbortController()
  stopped.abort()
  const { mailer, received } = await provider(() => running.abort())
  const running = new AbortController()
  expect(await mailer.send(WELCOME, stopped.signal)).toMatchObject({ kind: 'transient' })
  expect(await mailer.send(WELCOME, running.signal)).toMatchObject({ kind: 'unknown' })
  expect(received).toHaveLength(1)
})

/** A provider that notes each request's first line and headers, and answers with this. */
async function asked(answer: (response: ServerResponse) => void) {
  const requests: string[] = []
  const sockets = new Set<unknown>()
  const server = createServer((request, response) => {
    sockets.add(request.socket)
    requests.push(`${request.method} ${request.url} ${request.headers.authorization}`)
    request.resume().on('end', () => answer(response))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  const { port } = server.address() as AddressInfo
  return { requests, sockets, mailer: mailerOf(`http://127.0.0.1:${port}/v1/emails?a=b`) }
}

test.each([200, 204, 400, 404, 405, 500, 501, 505])(
  'takes the answer %i to an empty request as an accepted key',
  async (code) => {
    const { mailer, requests } = await asked(status(code))
    await mailer.verify()
    expect(requests).toEqual(['HEAD /v1/emails?a=b Bearer provider-key'])
  },
)

test.each<[fault: string, reason: string, answer: (response: ServerResponse) => void]>([
  ['refuses the key (401)', 'the mail provider refused the key (401)', status(401)],
  ['refuses the key (403)', 'the mail provider refused the key (403)', status(403)],
  ['is away (502)', 'the mail provider cannot take the message now (502)', status(502)],
  ['is away (503)', 'the mail provider cannot take the message now (503)', status(503)],
  ['is away (504)', 'the mail provider cannot take the message now (504)', status(504)],
  ['drops the line', 'the mail provider does not answer', (response) => void response.destroy()],
])('verifying says that a provider %s', async (_, reason, answer) => {
  const { mailer } = await asked(answer)
  await expect(mailer.verify()).rejects.toThrow(new Error(reason))
})

test('verifying says that there is no provider, and that the caller gave up', async () => {
  const none = mailerOf('http://127.0.0.1:1/emails')
  await expect(none.verify()).rejects.toThrow(new Error('the mail provider could not be reached'))
  const giveUp = new AbortController()
  const { mailer } = await asked(() => giveUp.abort())
  await expect(mailer.verify(giveUp.signal)).rejects.toThrow(new Error('the mail provider does not answer'))
})

test('mails one after the other share a connection, and leave nothing on the signal that they were given', async () => {
  const { mailer, requests, sockets } = await asked((response) => void response.end('{"id":"x"}'))
  const { signal } = new AbortController()
  for (let n = 0; n < 10; n += 1) await mailer.send(WELCOME, signal)
  expect(requests).toEqual(Array(10).fill('POST /v1/emails?a=b Bearer provider-key'))
  // One, but for an answer that comes before its body is known to be gone.
  expect(sockets.size).toBeLessThan(5)
  expect(getEventListeners(signal, 'abort')).toEqual([])
  const broken = await asked((response) => void response.destroy())
  await broken.mailer.send(WELCOME, signal)
  expect(getEventListeners(signal, 'abort')).toEqual([])
})

test.each([
  [`"id":"${'x'.repeat(200)}"`, 'x'.repeat(200)],
  [`"id":"${'x'.repeat(201)}"`, 'x'.repeat(200)],
  [`"id":"x","more":"${'y'.repeat(40_000)}"`, 'x'],
  [`"id":"x","more":"${'y'.repeat(200_000)}"`, undefined],
])('reads the id from answer %#, up to its limits', async (fields, id) => {
  const { mailer } = await asked((response) => void response.end(`{${fields}}`))
  expect(await mailer.send(WELCOME)).toEqual({ kind: 'sent', id: id ?? expect.stringMatching(/^welcome\./) })
})

test.each([
  ['0', 1000],
  ['3600', 3_600_000],
  ['3601', 3_601_000],
  ['-1', 1000],
  ['1.5', 1000],
  ['1e3', 1000],
])('Retry-After: %s is %s ms', async (header, ms) => {
  const { mailer } = await asked(status(429, { 'Retry-After': header }))
  expect(await mailer.send(WELCOME)).toEqual({
    kind: 'transient',
    scope: 'connection',
    reason: 'the mail provider limits our rate (429)',
    retryAfterMs: ms,
  })
})

test('the JSON of a mail names the reply address, and is ASCII whatever it says', async () => {
  const { source: _, ...message } = await mailerOf('http://127.0.0.1:1/').compose(WELCOME)
  const bytes = joinPieces(
    jsonPiecesOf({
      ...message,
      from: { name: undefined, address: 'course@bücher.example' },
      replyTo: { name: 'A\\B "C"', address: 'help@example.com' },
      subject: 'Ü\n\u007f"',
      html: '',
      text: '🙂',
    }),
  )
  expect(bytes.toString('latin1')).toMatch(/^[\x20-\x7f]*$/)
  expect(JSON.parse(bytes.toString())).toEqual({
    from: 'course@xn--bcher-kva.example',
    to: ['ada@example.com'],
    reply_to: '"A\\\\B \\"C\\"" <help@example.com>',
    subject: 'Ü\n\u007f"',
    html: '',
    text: '🙂',
    headers: { ...message.headers, 'Message-ID': `<${message.messageId}>` },
  })
})
