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
/** The bytes of a request with these lines in its head. */
const request = (line: string, ...headers: string[]) =>
  [`${line} HTTP/1.1`, 'Host: x', ...headers, '', ''].join('\r\n')
const HIDDEN = request('GET /lessons/7')
const CHUNKED = 'Transfer-Encoding: chunked'

test.each<[what: string, headers: string[], body?: string]>([
  ['both lengths', [`Content-Length: ${HIDDEN.length + 5}`, CHUNKED], '0\r\n\r\n'],
  ['two different lengths', ['Content-Length: 0', `Content-Length: ${HIDDEN.length}`]],
  ['a list of lengths', [`Content-Length: 0, ${HIDDEN.length}`]],
  ['a signed length', ['Content-Length: +0']],
  ['a coding before chunked twice', ['Transfer-Encoding: chunked, identity'], '0\r\n\r\n'],
  ['a dressed-up coding', ['Transfer-Encoding: xchunked'], '0\r\n\r\n'],
  ['white space before the colon', ['Transfer-Encoding : chunked', 'Content-Length: 5'], '0\r\n\r\n'],
  ['a folded header', ['Transfer-Encoding:\r\n chunked', 'Content-Length: 5'], '0\r\n\r\n'],
  ['a chunk size that is no number', [CHUNKED], '0x0\r\n\r\n'],
  ['a chunk size too long to hold', [CHUNKED], 'fffffffffffffffff0\r\n\r\n'],
  ['two hosts', ['Host: y']],
  ['bare line feeds', []],
])('a request with %s hides no second one', async (what, headers, body = '') => {
  const first = request('POST /', ...headers)
  const text = await exchange(
    `${what === 'bare line feeds' ? first.replaceAll('\r\n', '\n') : first}${body}${HIDDEN}`,
  )
  expect(text).not.toContain('day 7 of 7')
  expect(statuses(text).at(-1)).toBe(400)
  expect(text).toMatch(/\r\nConnection: close\r\n/)
  expect(text).toMatch(/"code":"bad_request"/)
})

const CLOSE = 'Connection: close'

test('answers two well-framed requests separately', async () => {
  expect(statuses(await exchange(`${HIDDEN}${request('GET /lessons/7', CLOSE)}`))).toEqual([200, 200])
})

test.each([
  ['a line break in a header', request('GET /', 'X-Request-Id: aaaaaaaa\rSet-Cookie: a=b')],
  ['a NUL in a header', request('GET /', 'X-Request-Id: aaaaaaaa\0')],
  ['escapes in the path', request('GET /lessons/1%0d%0aSet-Cookie:%20a=b', CLOSE)],
  ['escapes in a query', request('GET /api/email/confirm?token=a%0d%0aSet-Cookie:%20a=b', CLOSE)],
  ['an id that is none', request('GET /', 'X-Request-Id: "><script>alert(1)</script>', CLOSE)],
])('%s does not come back as a header', async (_, bytes) => {
  const [head = ''] = (await exchange(bytes)).split('\r\n\r\n')
  expect(head).toMatch(/^HTTP\/1\.1 /)
  expect(head).not.toMatch(/set-cookie|<script/i)
  expect(head).toMatch(/\r\nx-request-id: [\w.-]{8,64}(?:\r\n|$)/i)
})

test.each([
  ['a long address', request(`GET /?${'a'.repeat(5000)}`, CLOSE), 414, 'uri_too_long'],
  ['a long header', request('GET /', `X-Long: ${'a'.repeat(20_000)}`), 431, 'headers_too_large'],
  ['many headers', request('GET /', CLOSE, ...Array<string>(120).fill('X-A: b')), 431, 'headers_too_large'],
  ['no host', 'GET / HTTP/1.1\r\nConnection: close\r\n\r\n', 400, 'bad_request'],
  ['no HTTP at all', '\x16\x03\x01\x02\x00', 400, 'bad_request'],
  ['a tunnel', request('CONNECT evil.example:443'), 400, 'bad_request'],
])('%s is refused in the one error shape', async (_, bytes, status, code) => {
  const text = await exchange(bytes)
  expect(statuses(text)).toEqual([status])
  const body = JSON.parse(text.slice(text.indexOf('\r\n\r\n') + 4)) as Record<string, unknown>
  expect(body).toEqual({ code, status, message: expect.stringMatching(/\.$/), requestId: expect.any(String) })
})

const JSON_TYPE = 'Content-Type: application/json'
const MANY = `[${'1,'.repeat(60_000)}1]`
const chunk = `2000\r\n${'a'.repeat(0x2000)}\r\n`

test.each<[what: string, headers: string[], body: string, status: number, path?: string]>([
  ['that says how large it is', ['Content-Length: 10000'], '', 413],
  ['that comes in chunks and never ends', [CHUNKED], chunk.repeat(4), 413],
  ['that is compressed', ['Content-Encoding: gzip', 'Content-Length: 3'], '\x1f\x8b\b', 415],
  ['with more values than any form here', [`Content-Length: ${MANY.length}`], MANY, 400, '/api/analytics'],
  ['nested deeper than any form here', ['Content-Length: 8000'], '['.repeat(8000), 400],
])('a body %s is refused', async (_, headers, body, status, path = '/api/email/subscribe') => {
  const head = request(`POST ${path}`, CLOSE, JSON_TYPE, ...headers)
  expect(statuses(await exchange(head + body))).toEqual([status])
})

test.each(['/lessons/1', '/api/health'])(
  'ends a connection that pipelines %s more than 32 times',
  async (target) => {
    const page = request(`GET ${target}`)
    expect(statuses(await exchange(page.repeat(200))).length).toBeLessThanOrEqual(32)
    expect(statuses(await exchange(page.repeat(9) + request('GET /', CLOSE)))).toHaveLength(10)
  },
)

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
      await exchange(request(`POST ${target}`, CLOSE, JSON_TYPE, `Content-Length: ${body.length}`) + body)
  }
  expect(({} as { polluted?: unknown }).polluted).toBeUndefined()
  expect(Object.getOwnPropertyNames(Object.prototype).sort()).toEqual(before)
})
