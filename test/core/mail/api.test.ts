import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { expect, onTestFinished, test } from 'vitest'
import type { Mail } from '../../../src/core/mail/mailer.ts'
import { openMailer } from '../../../src/core/mail/open.ts'
import { secret } from '../../../src/core/secret.ts'

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
  const mailer = openMailer({
    mail: {
      key: secret('provider-key'),
      route: { kind: 'api', url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/emails` },
      from: { name: 'The "Course"', address: 'course@example.com' },
      replyTo: undefined,
    },
  })
  onTestFinished(async () => {
    await mailer.close()
    server.closeAllConnections()
    await new Promise<void>((resolve) => server.close(() => resolve()))
  })
  return { mailer, received }
}

const status =
  (code: number, headers: Record<string, string> = {}) =>
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

test.each([
  [400, { kind: 'permanent', hardBounce: false }],
  [401, { kind: 'transient', scope: 'connection' }],
  [403, { kind: 'transient', scope: 'connection' }],
  [408, { kind: 'transient', scope: 'message' }],
  [409, { kind: 'transient', scope: 'message' }],
  [422, { kind: 'permanent', hardBounce: false }],
  [429, { kind: 'transient', scope: 'connection' }],
  [500, { kind: 'transient', scope: 'message' }],
  [503, { kind: 'transient', scope: 'message' }],
])('an answer of %d has its outcome', async (code, outcome) => {
  expect(await (await provider(status(code))).mailer.send(WELCOME)).toMatchObject(outcome)
})

test('a waiting time that the provider names is kept, and an absurd one is cut to an hour', async () => {
  expect(await (await provider(status(429, { 'Retry-After': '90' }))).mailer.send(WELCOME)).toMatchObject({
    retryAfterMs: 90_000,
  })
  expect(await (await provider(status(503, { 'Retry-After': '999999' }))).mailer.send(WELCOME)).toMatchObject(
    { retryAfterMs: 3_600_000 },
  )
})

test('a line that drops after the message was taken leaves the outcome unknown', async () => {
  const { mailer } = await provider((response) => void response.destroy())
  expect(await mailer.send(WELCOME)).toMatchObject({ kind: 'unknown' })
})

test('a provider that is not there is a fault of the connection, and its address is in no reason', async () => {
  const { mailer } = await provider(() => {})
  const gone = openMailer({
    mail: {
      key: secret('k'),
      route: { kind: 'api', url: 'http://127.0.0.1:1/canary' },
      from: { name: undefined, address: 'a@example.com' },
      replyTo: undefined,
    },
  })
  onTestFinished(() => gone.close())
  const outcome = await gone.send(WELCOME)
  expect(outcome).toMatchObject({ kind: 'transient', scope: 'connection' })
  expect(JSON.stringify(outcome)).not.toContain('canary')
  expect(mailer.transport).toBe('api')
})
