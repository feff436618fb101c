import { mkdtemp, rm } from 'node:fs/promises'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { RunningDaemon } from '../../src/daemon/start.ts'
import { startLearningDaemon } from '../support/daemon.ts'

let daemon: RunningDaemon
let dataFolder: string
let port: number

beforeAll(async () => {
  dataFolder = await mkdtemp(path.join(tmpdir(), 'platformctl-wire-'))
  daemon = await startLearningDaemon({ env: { RATE_LIMIT_PER_MINUTE: '100000' }, dataFolder })
  port = Number(new URL(daemon.urls.web ?? '').port)
})
afterAll(async () => {
  await daemon.close()
  await rm(dataFolder, { recursive: true, force: true })
})

/** Everything that comes back for these bytes until the other side closes. */
function exchange(bytes: string): Promise<string> {
  return new Promise((resolve) => {
    let text = ''
    const socket = connect(port, '127.0.0.1', () => socket.write(bytes, 'latin1'))
    socket.setEncoding('latin1').on('data', (chunk: string) => {
      text += chunk
    })
    socket.on('error', () => {}).on('close', () => resolve(text))
  })
}
const statuses = (text: string) =>
  [...text.matchAll(/HTTP\/1\.1 (\d{3}) /g)].map(([, status]) => Number(status))
const HIDDEN = 'GET /lessons/7 HTTP/1.1\r\nHost: x\r\n\r\n'

test.each([
  [
    'both lengths',
    `POST / HTTP/1.1\r\nHost: x\r\nContent-Length: ${HIDDEN.length + 5}\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n${HIDDEN}`,
  ],
  [
    'two different lengths',
    `POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\nContent-Length: ${HIDDEN.length}\r\n\r\n${HIDDEN}`,
  ],
  ['a list of lengths', `POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 0, ${HIDDEN.length}\r\n\r\n${HIDDEN}`],
  ['a signed length', `POST / HTTP/1.1\r\nHost: x\r\nContent-Length: +0\r\n\r\n${HIDDEN}`],
  [
    'a coding before chunked twice',
    `POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n${HIDDEN}`,
  ],
  [
    'a dressed-up coding',
    `POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: xchunked\r\n\r\n0\r\n\r\n${HIDDEN}`,
  ],
  [
    'white space before the colon',
    `POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding : chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n${HIDDEN}`,
  ],
  [
    'a folded header',
    `POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding:\r\n chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n${HIDDEN}`,
  ],
  ['bare line feeds', `GET / HTTP/1.1\nHost: x\n\n${HIDDEN}`],
  [
    'a chunk size that is no number',
    `POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n0x0\r\n\r\n${HIDDEN}`,
  ],
  [
    'a chunk size too long to hold',
    `POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nfffffffffffffffff0\r\n\r\n${HIDDEN}`,
  ],
  ['two hosts', `GET / HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n${HIDDEN}`],
])('a request with %s hides no second one', async (_, bytes) => {
  const text = await exchange(bytes)
  expect(text).not.toContain('day 7 of 7')
  expect(statuses(text).at(-1)).toBe(400)
  expect(text).toMatch(/\r\nConnection: close\r\n/)
  expect(text).toMatch(/"code":"bad_request"/)
})

test('answers two well-framed requests separately', async () => {
  expect(
    statuses(await exchange(`${HIDDEN}${HIDDEN.replace('\r\n\r\n', '\r\nConnection: close\r\n\r\n')}`)),
  ).toEqual([200, 200])
})

test.each([
  [
    'a line break in a header',
    'GET / HTTP/1.1\r\nHost: x\r\nX-Request-Id: aaaaaaaa\rSet-Cookie: a=b\r\n\r\n',
  ],
  ['a NUL in a header', 'GET / HTTP/1.1\r\nHost: x\r\nX-Request-Id: aaaaaaaa\0\r\n\r\n'],
  [
    'escapes in the path',
    'GET /lessons/1%0d%0aSet-Cookie:%20a=b HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n',
  ],
  [
    'escapes in a query',
    'GET /api/email/confirm?token=a%0d%0aSet-Cookie:%20a=b HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n',
  ],
  [
    'an id that is none',
    'GET / HTTP/1.1\r\nHost: x\r\nX-Request-Id: "><script>alert(1)</script>\r\nConnection: close\r\n\r\n',
  ],
])('%s does not come back as a header', async (_, bytes) => {
  const [head = ''] = (await exchange(bytes)).split('\r\n\r\n')
  expect(head).toMatch(/^HTTP\/1\.1 /)
  expect(head).not.toMatch(/set-cookie|<script/i)
  expect(head).toMatch(/\r\nx-request-id: [\w.-]{8,64}(?:\r\n|$)/i)
})

test.each([
  [
    'a long address',
    `GET /?${'a'.repeat(5000)} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`,
    414,
    'uri_too_long',
  ],
  [
    'a long header',
    `GET / HTTP/1.1\r\nHost: x\r\nX-Long: ${'a'.repeat(20_000)}\r\n\r\n`,
    431,
    'headers_too_large',
  ],
  [
    'many headers',
    `GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n${'X-A: b\r\n'.repeat(120)}\r\n`,
    431,
    'headers_too_large',
  ],
  ['no host', 'GET / HTTP/1.1\r\nConnection: close\r\n\r\n', 400, 'bad_request'],
  ['no HTTP at all', '\x16\x03\x01\x02\x00', 400, 'bad_request'],
  ['a tunnel', 'CONNECT evil.example:443 HTTP/1.1\r\nHost: evil.example\r\n\r\n', 400, 'bad_request'],
])('%s is refused in the one error shape', async (_, bytes, status, code) => {
  const text = await exchange(bytes)
  expect(statuses(text)).toEqual([status])
  const body = JSON.parse(text.slice(text.indexOf('\r\n\r\n') + 4)) as Record<string, unknown>
  expect(body).toEqual({ code, status, message: expect.stringMatching(/\.$/), requestId: expect.any(String) })
})

const POST =
  'POST /api/email/subscribe HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Type: application/json\r\n'
const MANY = `[${'1,'.repeat(60_000)}1]`
const chunk = `2000\r\n${'a'.repeat(0x2000)}\r\n`

test.each([
  ['that says how large it is', `${POST}Content-Length: 10000\r\n\r\n`, 413],
  ['that comes in chunks and never ends', `${POST}Transfer-Encoding: chunked\r\n\r\n${chunk.repeat(4)}`, 413],
  ['that is compressed', `${POST}Content-Encoding: gzip\r\nContent-Length: 3\r\n\r\n\x1f\x8b\b`, 415],
  [
    'with more values than any form here',
    `${POST.replace('email/subscribe', 'analytics')}Content-Length: ${MANY.length}\r\n\r\n${MANY}`,
    400,
  ],
  ['nested deeper than any form here', `${POST}Content-Length: 8000\r\n\r\n${'['.repeat(8000)}`, 400],
])('a body %s is refused', async (_, bytes, status) => {
  expect(statuses(await exchange(bytes))).toEqual([status])
})

test('ends a connection that pipelines more than 32 pages', async () => {
  const text = await exchange('GET /lessons/1 HTTP/1.1\r\nHost: x\r\n\r\n'.repeat(200))
  expect(statuses(text).length).toBeLessThanOrEqual(32)
  const few = 'GET /lessons/1 HTTP/1.1\r\nHost: x\r\n\r\n'.repeat(9)
  expect(
    statuses(await exchange(`${few}GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`)),
  ).toHaveLength(10)
})

test('keys that name the prototype pollute nothing', async () => {
  const before = Object.getOwnPropertyNames(Object.prototype).sort()
  for (const body of [
    '{"__proto__":{"polluted":true},"email":"a@example.com"}',
    '{"constructor":{"prototype":{"polluted":true}},"email":"a@example.com"}',
    '{"events":[{"kind":"page.viewed","at":1763700000000,"properties":{"__proto__":"polluted","constructor":"x"}}]}',
    '{"template":"__proto__","inputs":{"__proto__":{"polluted":true}}}',
  ]) {
    for (const target of [
      '/api/email/subscribe',
      '/api/analytics',
      '/api/email',
      '/api/email/unsubscribe?__proto__[polluted]=1',
    ])
      await exchange(
        `POST ${target} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
      )
  }
  expect(({} as { polluted?: unknown }).polluted).toBeUndefined()
  expect(Object.getOwnPropertyNames(Object.prototype).sort()).toEqual(before)
})
