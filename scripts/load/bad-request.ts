import { createHmac } from 'node:crypto'
import type { Service } from '../../src/core/service.ts'
import { ROUTES } from '../../src/daemon/routes.ts'
import { healthPath, SERVICES } from '../../test/support/learning.ts'
import {
  CLAIMS,
  CONTENT_TYPES,
  HEADERS,
  JSON_CORPUS,
  METHODS,
  PATHS,
  RAW,
  SIGNATURES,
  TOKEN_HEADERS,
} from './corpus.ts'
import { type Dice, dice } from './random.ts'

export interface BadRequest {
  readonly service: Service
  readonly bytes: Buffer
  readonly method: string
  readonly path: string
  /** Complete and framed, so it must be answered; otherwise the server may also just close the connection. */
  readonly framed: boolean
  /** May the answer to an error be a page? */
  readonly maySeePage: boolean
}

export interface Credentials {
  readonly dispatch: string
  readonly identity: string
  /** Key for payment events and tokens, so that some of them have a valid signature. */
  readonly webhook: string
  readonly jwt: string
  /** UTC milliseconds, for what must be of this time. */
  readonly now: number
}

/** The request of a number: the same for the same seed, whatever ran before it. */
export function badRequest(seed: number, index: number, credentials: Credentials): BadRequest {
  const random = dice((seed ^ Math.imul(index + 1, 0x9e3779b1)) >>> 0)
  const service = random.chance(0.8) ? 'web' : random.pick(SERVICES)
  if (random.chance(0.04)) return garbage(random, service)
  const signed = random.chance(0.04) ? webhook(random, credentials) : undefined
  if (signed) return signed
  const route =
    service === 'web' ? random.pick(Object.values(ROUTES)) : { path: healthPath(service), methods: ['GET'] }
  const ownPath = random.chance(0.7)
  const path = ownPath ? mutatePath(random, route.path.replace(':day', '1')) : random.pick(PATHS)
  const method = ownPath && random.chance(0.7) ? random.pick<string>(route.methods) : random.pick(METHODS)
  const headers = [
    `Host: ${random.chance(0.97) ? 'localhost' : random.pick(['', 'evil.example', 'a b', '[::1', 'x:99999', 'a@b'])}`,
  ]
  // Mostly from a new client each time, so that requests only sometimes hit the rate limit.
  headers.push(`X-Forwarded-For: 10.${random.below(256)}.${random.below(256)}.${random.below(256)}`)
  if (random.chance(0.3))
    headers.push(`Authorization: Bearer ${random.pick([credentials.dispatch, credentials.identity])}`)
  if (random.chance(0.05)) headers.push(`Authorization: Bearer ${badToken(random, credentials)}`)
  for (let extra = random.chance(0.5) ? random.below(4) : 0; extra > 0; extra -= 1)
    headers.push(random.pick(HEADERS))
  if (random.chance(0.01)) for (let n = 0; n < 150; n += 1) headers.push(`X-Many-${n}: ${n}`)
  if (random.chance(0.005)) headers.push(`X-Long: ${'x'.repeat(20_000)}`)

  const bodied = method !== 'GET' && method !== 'HEAD' ? random.chance(0.9) : random.chance(0.05)
  // Sometimes send a valid body, to reach the code behind the schemas.
  const good = ownPath && random.chance(0.25) ? GOOD[route.path]?.(random) : undefined
  const body = !bodied
    ? Buffer.alloc(0)
    : good === undefined
      ? makeBody(random)
      : Buffer.from(JSON.stringify(good))
  if (bodied && random.chance(0.95)) {
    headers.push(`Content-Type: ${random.chance(0.75) ? 'application/json' : random.pick(CONTENT_TYPES)}`)
  }
  let framed = headers.every(
    (line) => !/^(?:content-length|transfer-encoding|upgrade|expect|host: $)/i.test(line),
  )
  let payload = body
  if (bodied && random.chance(0.15)) {
    headers.push('Transfer-Encoding: chunked')
    payload = chunked(random, body)
    if (random.chance(0.1)) {
      headers.push(`Content-Length: ${body.length}`)
      framed = false
    }
  } else if (bodied) {
    const wrong = random.chance(0.03)
    headers.push(`Content-Length: ${wrong ? body.length + random.below(20) - 10 : body.length}`)
    framed &&= !wrong
  }
  const version = random.chance(0.98)
    ? 'HTTP/1.1'
    : random.pick(['HTTP/1.0', 'HTTP/2.0', 'HTTP/9', 'http/1.1', ''])
  if (version !== 'HTTP/1.1' || !/^[A-Z]+$/.test(method) || method === 'CONNECT' || path.includes('\0'))
    framed = false
  const head = `${method} ${path} ${version}\r\n${headers.join('\r\n')}\r\n\r\n`
  return {
    service,
    bytes: Buffer.concat([Buffer.from(head, 'latin1'), payload]),
    method,
    path,
    framed,
    maySeePage: headers.some((line) => /^accept:.*text\/html/i.test(line)),
  }
}

const GOOD: Readonly<Record<string, (random: Dice) => unknown>> = {
  [ROUTES.subscribe.path]: (random) => ({ email: `fuzz-${random.below(100_000)}@example.com` }),
  [ROUTES.email.path]: () => ({ template: 'welcome', inputs: {} }),
  [ROUTES.dispatch.path]: (random) => ({ limit: 1 + random.below(10_000) }),
  [ROUTES.checkout.path]: () => ({ price: 'pro-monthly' }),
  [ROUTES.analytics.path]: (random) => ({
    batch: `b-${random.below(100_000)}`,
    events: [
      {
        kind: 'page.viewed',
        at: new Date(1_763_700_000_000).toISOString(),
        properties: { took: random.below(9) },
      },
    ],
  }),
}

function mutatePath(random: Dice, path: string): string {
  if (random.chance(0.6)) return path
  return random.pick([
    `${path}/`,
    `${path}?${random.pick(['deep=1', 'limit=5', 'token=x', 's=abcdefgh.1&t=y', 'undo=1', '%', '&&', '__proto__=1'])}`,
    path.toUpperCase(),
    path.replace('/', '//'),
    `${path}%00`,
    `${path};x=1`,
    `/./${path}`,
    path.replace(/e/g, '%65'),
    `${path}${String.fromCharCode(random.below(256))}`,
  ])
}

function makeBody(random: Dice): Buffer {
  if (random.chance(0.45)) return Buffer.from(random.pick(JSON_CORPUS))
  if (random.chance(0.5)) return Buffer.from(JSON.stringify(generated(random, 4)))
  if (random.chance(0.5)) {
    // A good text with some bytes changed, cut or doubled: UTF-8 breaks as often as JSON does.
    const bytes = Buffer.from(random.pick(JSON_CORPUS))
    for (let n = random.below(4); n >= 0 && bytes.length > 0; n -= 1)
      bytes[random.below(bytes.length)] = random.below(256)
    return random.chance(0.5) ? bytes : bytes.subarray(0, random.below(bytes.length + 1))
  }
  if (random.chance(0.1)) return Buffer.alloc(random.pick([8193, 70_000, 1_100_000]), 'x')
  return Buffer.from(
    random.pick([
      'undo=1',
      'List-Unsubscribe=One-Click',
      'a=b&a=c',
      '<x/>',
      '--x\r\n\r\n1\r\n--x--',
      '\0\0\0',
      '\x1f\x8b\b',
    ]),
    'latin1',
  )
}

const KEYS = [
  'email',
  'template',
  'inputs',
  'price',
  'limit',
  'events',
  'batch',
  'kind',
  'at',
  'properties',
  '__proto__',
  'a',
  '',
]

function generated(random: Dice, depth: number): unknown {
  const kind = random.below(depth > 0 ? 8 : 6)
  if (kind === 0) return null
  if (kind === 1) return random.chance(0.5)
  if (kind === 2) return (random.next() - 0.5) * 10 ** random.below(300)
  if (kind === 3) return random.below(20_000) - 100
  if (kind < 6)
    return random.pick([
      'a@example.com',
      'welcome',
      'lesson.viewed',
      'pro-monthly',
      '\ud800',
      '\0',
      'x'.repeat(random.below(200)),
      '2026-11-21T00:00:00Z',
    ])
  if (kind === 6) return Array.from({ length: random.below(6) }, () => generated(random, depth - 1))
  return Object.fromEntries(
    Array.from({ length: random.below(5) }, () => [random.pick(KEYS), generated(random, depth - 1)]),
  )
}

function chunked(random: Dice, body: Buffer): Buffer {
  const parts: Buffer[] = []
  for (let at = 0; at < body.length; ) {
    const size = 1 + random.below(body.length - at)
    const extension = random.chance(0.05) ? `;${'x'.repeat(1 + random.below(100))}` : ''
    parts.push(
      Buffer.from(`${size.toString(16)}${extension}\r\n`),
      body.subarray(at, at + size),
      Buffer.from('\r\n'),
    )
    at += size
  }
  parts.push(Buffer.from('0\r\n\r\n'))
  return Buffer.concat(parts)
}

/** Bytes that are no request, or the beginning of one. */
function garbage(random: Dice, service: Service): BadRequest {
  const bytes = random.chance(0.5)
    ? Buffer.from(Array.from({ length: 1 + random.below(200) }, () => random.below(256)))
    : Buffer.from(
        random.pick([
          ...RAW,
          'GET\r\n\r\n',
          '\r\n\r\n\r\n',
          'GET / HTTP/1.1\r\n\r\n',
          'GET / HTTP/1.1\nHost: x\n\n',
          'GET  /  HTTP/1.1\r\nHost: x\r\n\r\n',
          'GET / HTTP/1.1\r\nHost : x\r\n\r\n',
          'GET / HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n',
          'POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n',
          'POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n',
          'POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\n',
          'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n',
          '\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03',
          'GET / HTTP/1.1\r\nHost: x\r\nX: a\r\n b\r\n\r\n',
        ]),
        'latin1',
      )
  return { service, bytes, method: '', path: '', framed: false, maySeePage: false }
}

/** A token whose signature is often right, and whose header or claims are not. */
function badToken(random: Dice, { jwt, now }: Credentials): string {
  const part = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url')
  const header = part(random.chance(0.6) ? { alg: 'HS256' } : random.pick(TOKEN_HEADERS))
  const seconds = Math.floor(now / 1000)
  const claims = { sub: 'person-1', email: 'person@example.com', aud: 'fuzz', exp: seconds + 7200 }
  const body = part(random.chance(0.9) ? { ...claims, ...random.pick(CLAIMS) } : random.pick(JSON_CORPUS))
  const signature = createHmac('sha256', random.chance(0.8) ? jwt : 'another').update(`${header}.${body}`)
  const token = `${header}.${body}.${signature.digest('base64url')}`
  return random.chance(0.1) ? token.slice(0, random.below(token.length)) : token
}

/** A payment event that is signed for what it is, or for nearly that. */
function webhook(random: Dice, { webhook: secret, now }: Credentials): BadRequest {
  const event = { id: `evt_${random.below(1e6)}`, type: 'a.b', created: Math.floor(now / 1000), data: {} }
  const text = random.pick([JSON.stringify(event), ...JSON_CORPUS])
  const seconds = Math.floor(now / 1000) + random.pick([0, 0, 0, -299, -301, 301, 1e9])
  const v1 = createHmac('sha256', secret).update(`${seconds}.${text}`).digest('hex')
  const header = random.chance(0.6) ? `t=${seconds},v1=${v1}` : random.pick(SIGNATURES)(seconds, v1)
  const sent = Buffer.from(random.pick([text, text, `\ufeff${text}`, ` ${text}`, text.slice(1), `${text}\0`]))
  const head = `POST ${ROUTES.paymentsWebhook.path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nX-Forwarded-For: 10.${random.below(256)}.${random.below(256)}.1\r\nStripe-Signature: ${header}\r\nContent-Length: ${sent.length}\r\n\r\n`
  return {
    service: 'web',
    bytes: Buffer.concat([Buffer.from(head, 'latin1'), sent]),
    method: 'POST',
    path: ROUTES.paymentsWebhook.path,
    framed: true,
    maySeePage: false,
  }
}
