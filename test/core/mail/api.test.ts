import { getEventListeners } from 'node:events'
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { expect, onTestFinished, test, vi } from 'vitest'
import { joinPieces } from '../../../src/core/mail/encoding.ts'
import { LINES, type Mail } from '../../../src/core/mail/mailer.ts'
import { HTTP_OUTCOMES, type HttpRow } from '../../../src/core/mail/outcome.ts'
import { jsonPiecesOf } from '../../../src/core/mail/transports/forms.ts'
import { useProxies } from '../../../src/core/network/proxy.ts'
import { MAIL_EXAMPLE, MAILER_KEY, mailerTo, tlsFixture, trust, WELCOME } from '../../support/mailers.ts'
import { serve, serveBodies, serveTcp, serveTls } from '../../support/servers.ts'

/** A provider that keeps what it is given and answers as told. */
async function provider(answer: (response: ServerResponse) => void) {
  const received: { request: string; headers: IncomingMessage['headers']; body: string }[] = []
  const sockets = new Set<Socket>()
  const root = await serveBodies((body, response, { method, url, headers, socket }) => {
    received.push({ request: `${method} ${url} ${headers.authorization}`, headers, body })
    sockets.add(socket)
    answer(response)
  })
  const url = `${root}/v1/emails?a=b`
  return { url, mailer: mailerTo(url), received, sockets }
}

const status =
  (code: number, headers: Record<string, string | string[]> = {}) =>
  (response: ServerResponse) =>
    void response.writeHead(code, headers).end('{}')
const says = (body: string) => (response: ServerResponse) => void response.end(body)
const OUR_KEY = expect.stringMatching(/^welcome\.[\w-]{32}$/)

test('the documented JSON goes out with the key, and the provider’s id comes back', async () => {
  const { url, received } = await provider(says('{"id":"msg_1"}'))
  const mailer = mailerTo(url, { from: { name: 'The "Course"', address: 'course@example.com' } })
  expect(await mailer.send(WELCOME)).toEqual({ kind: 'sent', id: 'msg_1' })
  const [first] = received
  expect(first).toMatchObject({
    request: `POST /v1/emails?a=b Bearer ${MAILER_KEY}`,
    headers: { 'content-type': 'application/json', 'idempotency-key': OUR_KEY },
  })
  expect(JSON.parse(first?.body ?? '')).toMatchObject({
    from: '"The \\"Course\\"" <course@example.com>',
    to: ['ada@example.com'],
    subject: 'Welcome',
    html: expect.stringContaining('https://www.example.com/'),
    text: expect.stringContaining('https://www.example.com/'),
    headers: { 'Message-ID': expect.stringMatching(/^<[\w-]{32}@example\.com>$/) },
  })
  await mailer.send(WELCOME)
  expect(received[1]?.headers['idempotency-key']).toBe(first?.headers['idempotency-key'])
  expect(received[1]?.body).toBe(first?.body)
})

/** The address of a provider behind a proxy. */
async function behind(proxy: (socket: Socket) => void): Promise<string> {
  useProxies({ HTTPS_PROXY: await serveTcp(proxy) })
  onTestFinished(() => useProxies({}))
  return 'https://mail.example/emails'
}
const refusing = (answer: string) => (socket: Socket) =>
  void socket.once('data', () => socket.end(`HTTP/1.1 ${answer}\r\n\r\n`))
const tlsProvider = async () =>
  `${(await serveTls(MAIL_EXAMPLE, (_, response) => void response.end('{}'))).replace('127.0.0.1', 'localhost')}/`
const trusted = () => {
  trust('ca.crt')
  return tlsProvider()
}
const plain = async (answer: (response: ServerResponse) => void) => (await provider(answer)).url

/** What statuses mean is shown with each provider. */
test.each<[row: HttpRow, how: string, url: () => Promise<string>, key?: string]>([
  ['certificate-refused', 'an unknown issuer', tlsProvider],
  ['certificate-refused', 'a certificate for another name', trusted],
  ['key-unusable', 'a key that was copied shortened', () => plain(status(200)), `${MAILER_KEY}…`],
  ['unreachable', 'no server', async () => 'http://127.0.0.1:1/emails'],
  ['unreachable', 'no such name', async () => 'http://mail.invalid/emails'],
  ['proxy-refused', 'a proxy that wants a password', () => behind(refusing('407 Authentication Required'))],
  ['proxy-refused', 'a proxy that finds no way', () => behind(refusing('502 Bad Gateway'))],
  ['proxy-refused', 'a proxy that hangs up', () => behind((socket) => void socket.destroy())],
  ['dropped', 'the request taken and the line dropped', () => plain((response) => void response.destroy())],
  ['dropped', 'no HTTP in the answer', () => plain((response) => void response.socket?.end('what?\r\n\r\n'))],
])('%s: %s: nothing is thrown, and the reason holds no secret', async (row, _, url, key) => {
  const outcome = await mailerTo(await url(), key === undefined ? {} : { key }).send(WELCOME)
  expect(outcome).toEqual(HTTP_OUTCOMES[row].outcome)
  expect(JSON.stringify(outcome)).not.toMatch(/canary|localhost|invalid/)
})

test('a proxy that says nothing is left after half a minute: the message has not been sent, and the mailer can be closed', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
  onTestFinished(() => void vi.useRealTimers())
  const silent: Socket[] = []
  const url = await behind((socket) => {
    silent.push(socket)
    socket.once('data', () => vi.advanceTimersByTime(30_000))
  })
  const mailer = mailerTo(url)
  expect(await mailer.send(WELCOME)).toEqual(HTTP_OUTCOMES['proxy-refused'].outcome)
  let isClosed = false
  const closing = mailer.close().then(() => {
    isClosed = true
  })
  await new Promise((resolve) => setImmediate(resolve))
  // An attempt that could still succeed is waited for.
  vi.advanceTimersByTime(59_999)
  await new Promise((resolve) => setImmediate(resolve))
  expect([isClosed, silent[0]?.destroyed]).toEqual([false, false])
  vi.advanceTimersByTime(1)
  await closing
  for (const socket of silent) await expect.poll(() => socket.destroyed).toBe(true)
})

test('a redirect is not followed: the key goes nowhere else', async () => {
  const elsewhere = await provider(status(200))
  for (const code of [301, 307]) {
    const { mailer } = await provider(status(code, { Location: elsewhere.url }))
    expect(await mailer.send(WELCOME)).toMatchObject({
      kind: 'transient',
      scope: 'connection',
      reason: `the mail provider’s address is wrong (${code})`,
    })
  }
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

const breaksOff = (code: number) => (response: ServerResponse) =>
  void response.writeHead(code, { 'Content-Length': '100' }).write('{"id":', () => response.destroy())

test.each<[how: string, answer: (response: ServerResponse) => void, id: unknown]>([
  ['no body', says(''), OUR_KEY],
  ['an id that is no text', says('{"id":7}'), OUR_KEY],
  ['null', says('null'), OUR_KEY],
  ['an id of two lines', says('{"id":"x\\ny"}'), OUR_KEY],
  ['an id with a space', says('{"id":"x y"}'), OUR_KEY],
  ['a body that breaks off', breaksOff(200), OUR_KEY],
  ['an id of 201 characters', says(`{"id":"${'x'.repeat(201)}"}`), 'x'.repeat(200)],
  ['40 KB beside the id', says(`{"id":"x","more":"${'y'.repeat(40_000)}"}`), 'x'],
  ['200 KB beside the id', says(`{"id":"x","more":"${'y'.repeat(200_000)}"}`), OUR_KEY],
])('an answer of 200 with %s is sent, under the provider’s id or else our key', async (_, answer, id) => {
  const { mailer } = await provider(answer)
  expect(await mailer.send(WELCOME)).toEqual({ kind: 'sent', id })
})

test('an answer of 400 whose body breaks off counts as its status says', async () => {
  const { mailer } = await provider(breaksOff(400))
  expect(await mailer.send(WELCOME)).toMatchObject({ kind: 'transient', scope: 'sender' })
})

const DATE = 'Sat, 21 Nov 2026 04:00:00 GMT'

test.each<[code: number, headers: Record<string, string | string[]>, ms: number | undefined]>([
  [429, { 'Retry-After': '0' }, 1000],
  [429, { 'Retry-After': '3601' }, 3_601_000],
  [503, { 'Retry-After': '999999' }, 999_999_000],
  [429, { 'Retry-After': '10000000' }, 10_000_000_000],
  [429, { 'Retry-After': '99999999999' }, 99_999_999_999_000],
  [429, { 'Retry-After': '-1' }, 1000],
  [429, { 'Retry-After': '1.5' }, 1000],
  [429, { 'Retry-After': '1e3' }, 1000],
  // A date counts by the provider's own clock.
  [429, { Date: DATE, 'Retry-After': 'Sat, 21 Nov 2026 04:02:00 GMT' }, 120_000],
  [429, { Date: DATE, 'Retry-After': 'Sun, 22 Nov 2026 04:02:00 GMT' }, 86_520_000],
  [429, { Date: DATE, 'Retry-After': 'Sat, 21 Nov 2026 03:59:00 GMT' }, 1000],
  [429, { Date: DATE, 'Retry-After': 'soon' }, 1000],
  [429, { Date: 'today', 'Retry-After': 'Sat, 21 Nov 2026 04:02:00 GMT' }, 1000],
  // Every answer after which the message is tried again may ask for a pause, and few have one without it.
  ...[403, 404, 408, 422, 500].flatMap((code): [number, Record<string, string>, number | undefined][] => [
    [code, { 'Retry-After': '7' }, 7000],
    [code, {}, undefined],
  ]),
  // Two of them are none: which one counts is not known. Joined, these would be a date.
  [503, { Date: DATE, 'Retry-After': ['Jan 1', '2030'] }, undefined],
])('the delay of an answer of %d with %j is %s ms', async (code, headers, ms) => {
  const outcome = await (await provider(status(code, headers))).mailer.send(WELCOME)
  expect(outcome.kind).toBe('transient')
  expect('retryAfterMs' in outcome ? outcome.retryAfterMs : undefined).toBe(ms)
})

/** Mails of different lengths, by their keys. */
async function manyMails(count: number) {
  const mailer = mailerTo('http://127.0.0.1:1/')
  const mails = Array.from({ length: count }, async (_, index) => {
    const startUrl = `https://www.example.com/${String(index).repeat(1 + (index % 40))}`
    const mail: Mail = { ...WELCOME, slots: { startUrl }, about: `user.${index}` }
    const { key, html, text } = await mailer.compose(mail)
    return [key, { mail, parts: { html, text } }] as const
  })
  return new Map(await Promise.all(mails))
}

test('200 mails at once arrive whole and under their own key, also when the answer comes before the body was read', async () => {
  const received = new Map<string, string>()
  // Answers when it has read the head, and takes its time with the body.
  const url = await serveTcp((socket) => {
    let bytes = Buffer.alloc(0)
    let answered = false
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
  const mails = await manyMails(200)
  const mailer = mailerTo(`${url}/emails`)
  const outcomes = await Promise.all([...mails.values()].map(({ mail }) => mailer.send(mail)))
  expect(new Set(outcomes.map(({ kind }) => kind))).toEqual(new Set(['sent']))
  await vi.waitFor(() => expect(received.size).toBe(200))
  for (const [key, { parts }] of mails) expect(JSON.parse(received.get(key) ?? '{}')).toMatchObject(parts)
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
    trust('loopback.crt')
    const loopback = { key: tlsFixture('loopback.key'), cert: tlsFixture('loopback.crt') }
    const url = await (scheme === 'http' ? serve(listener) : serveTls(loopback, listener))
    const mails = await manyMails(120)
    const mailer = mailerTo(`${url}/emails`)
    const outcomes = await Promise.all([...mails.values()].map(({ mail }) => mailer.send(mail)))
    expect(new Set(outcomes.map(({ kind }) => kind))).toEqual(new Set(['sent', 'unknown']))
    expect(received.length).toBeGreaterThan(60)
    for (const { key, body } of received) expect(JSON.parse(body)).toMatchObject(mails.get(key)?.parts ?? {})
  },
)

test('a mail abandoned while it waits for a connection passes its turn on', async () => {
  const held: ServerResponse[] = []
  const { mailer } = await provider((response) => void held.push(response))
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

test.each<[how: string, answer: (response: ServerResponse) => void, fault?: string]>([
  ['answers 200', status(200)],
  ['answers 400', status(400)],
  ['answers 404', status(404)],
  ['answers 501', status(501)],
  ['answers 505', status(505)],
  ['refuses the key (401)', status(401), 'the mail provider refused the key (401)'],
  ['refuses the key (403)', status(403), 'the mail provider refused the key (403)'],
  ['is away (502)', status(502), 'the mail provider cannot take the message now (502)'],
  ['is away (504)', status(504), 'the mail provider’s gateway timed out (504)'],
  ['drops the line', (response) => void response.destroy(), 'the mail provider does not answer'],
])('of a provider that %s to an empty request, verifying says so', async (_, answer, fault) => {
  const { mailer, received } = await provider(answer)
  const verified = mailer.verify()
  await (fault === undefined ? verified : expect(verified).rejects.toThrow(new Error(fault)))
  expect(received.map(({ request }) => request)).toEqual([`HEAD /v1/emails?a=b Bearer ${MAILER_KEY}`])
})

test('verifying says that there is no provider, and that the caller gave up', async () => {
  const none = mailerTo('http://127.0.0.1:1/emails')
  await expect(none.verify()).rejects.toThrow(new Error('the mail provider could not be reached'))
  const giveUp = new AbortController()
  const { mailer } = await provider(() => giveUp.abort())
  await expect(mailer.verify(giveUp.signal)).rejects.toThrow(new Error('the mail provider does not answer'))
})

test('mails one after the other share a connection, and leave nothing on the signal that they were given', async () => {
  const { mailer, received, sockets } = await provider(says('{"id":"x"}'))
  const { signal } = new AbortController()
  for (let n = 0; n < 10; n += 1) await mailer.send(WELCOME, signal)
  expect(received).toHaveLength(10)
  // One, but for an answer that comes before its body is known to be gone.
  expect(sockets.size).toBeLessThan(5)
  expect(getEventListeners(signal, 'abort')).toEqual([])
  const broken = await provider((response) => void response.destroy())
  await broken.mailer.send(WELCOME, signal)
  expect(getEventListeners(signal, 'abort')).toEqual([])
})

test('the JSON of a mail names the reply address, and is ASCII whatever it says', async () => {
  const { source: _, ...message } = await mailerTo('http://127.0.0.1:1/').compose(WELCOME)
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
