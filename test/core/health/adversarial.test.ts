import { once } from 'node:events'
import type { RequestListener } from 'node:http'
import { createServer, type Socket } from 'node:net'
import { gzipSync } from 'node:zlib'
import { beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { probeRemote } from '../../../src/core/health/prober.ts'
import { reachable, serviceState } from '../../../src/core/health/reach.ts'
import { systemClock } from '../../../src/core/host.ts'
import type { CauseCode } from '../../../src/core/network/causes.ts'
import type { Network } from '../../../src/core/network/get.ts'
import { blackhole } from '../../support/blackhole.ts'
import { type Authority, authority } from '../../support/outside.ts'
import { healthBody, serve, serveTcp, serveTls } from '../../support/servers.ts'

const TIMEOUT_MS = 250

async function probe(url: string, network?: Network, timeoutMs = TIMEOUT_MS) {
  const began = performance.now()
  const health = await probeRemote({
    service: 'web',
    health: '/api/health',
    url,
    deep: false,
    token: undefined,
    timeoutMs,
    clock: systemClock,
    network,
  })
  return { health, cause: health.reached ? 'reached' : health.cause, tookMs: performance.now() - began }
}

const json = { 'Content-Type': 'application/json' }
const healthy: RequestListener = (_, response) => void response.writeHead(200, json).end(healthBody())
const port = (url: string) => Number(new URL(url).port)

const SWITCHING = 'HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n'

const answering =
  (body: string, status = 200) =>
  () =>
    serve((_, response) => void response.writeHead(status).end(body))
const writing = (bytes: string) => () => serveTcp((socket) => void socket.write(bytes))
/** A byte (or a whole part) every 20 ms, for as long as the other side listens. */
const dripping =
  (head: string, part = ' ') =>
  () =>
    serveTcp((socket) => {
      socket.write(head)
      const timer = setInterval(() => socket.write(part), 20)
      socket.on('close', () => clearInterval(timer))
    })

/** Each hostile server, and the one cause code it must give. */
const HOSTILE: readonly (readonly [name: string, cause: CauseCode, start: () => Promise<string>])[] = [
  [
    'a redirect to another origin',
    'redirect',
    async () => {
      const other = await serve(() => expect.unreachable('the redirect was followed'))
      return serve((_, response) => void response.writeHead(307, { Location: other }).end())
    },
  ],
  [
    'a redirect to itself for ever',
    'redirect',
    () => {
      let asked = 0
      return serve((request, response) => {
        asked += 1
        expect(asked).toBeLessThanOrEqual(3)
        response.writeHead(302, { Location: request.url ?? '/' }).end()
      })
    },
  ],
  [
    'a body of a gigabyte that it announces',
    'too_large',
    () =>
      serve((_, response) => void response.writeHead(200, { ...json, 'Content-Length': 2 ** 30 }).write('{')),
  ],
  [
    'a body of a gigabyte that it does not announce',
    'too_large',
    () =>
      serve((_, response) => {
        const part = Buffer.alloc(64 * 1024, '[')
        let sent = 0
        const more = () => {
          while (sent < 2 ** 30 && response.write(part)) sent += part.length
        }
        response.writeHead(200, json).on('drain', more)
        more()
        // The sockets' buffers may be lost; the rest must never have been read.
        response.on('close', () => expect(sent).toBeLessThan(64 * 2 ** 20))
      }),
  ],
  [
    'a gzip bomb',
    'encoded',
    () => {
      const bomb = gzipSync(Buffer.alloc(4 * 2 ** 20))
      const encoded = { ...json, 'Content-Encoding': 'gzip' }
      return serve((_, response) => void response.writeHead(200, encoded).end(bomb))
    },
  ],
  ['a header that drips', 'answer_timeout', dripping('HTTP/1.1 200 OK\r\nX-Slow: ')],
  [
    'a body that drips',
    'body_timeout',
    dripping('HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n{'),
  ],
  ['a connection that is open and silent', 'answer_timeout', () => serveTcp(() => {})],
  [
    'a connection of which its end is closed half',
    'connection_closed',
    () => serveTcp((socket) => socket.end()),
  ],
  ['a connection that is reset', 'connection_closed', () => serveTcp((socket) => socket.resetAndDestroy())],
  [
    'a body that ends before its announced length',
    'connection_closed',
    () => serveTcp((socket) => socket.end('HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{"state":"ok"')),
  ],
  ['200 with "unhealthy" in the text', 'bad_json', answering('status: unhealthy, state ok')],
  ['JSON that is 100,000 deep', 'not_health', answering(`${'['.repeat(1e5)}${']'.repeat(1e5)}`)],
  [
    'huge headers',
    'headers_too_large',
    writing(`HTTP/1.1 200 OK\r\nX-Huge: ${'x'.repeat(64 * 1024)}\r\n\r\n`),
  ],
  [
    'headers without end',
    'headers_too_large',
    writing(`HTTP/1.1 200 OK\r\n${'X-Many: y\r\n'.repeat(20_000)}`),
  ],
  ['what is not HTTP', 'bad_http', writing('220 mail.example ESMTP\r\n')],
  ['another protocol than was asked for', 'bad_http', writing(SWITCHING)],
  ['early hints without end', 'answer_timeout', dripping('', 'HTTP/1.1 103 Early Hints\r\n\r\n')],
  ['a page of a proxy in front', 'server_error', answering('<p>bad gateway', 502)],
  ['another service', 'wrong_service', answering(healthBody({ service: 'agent' }))],
  [
    'a port that drops what comes',
    'connect_timeout',
    async () => `http://127.0.0.1:${await blackhole('127.0.0.1')}`,
  ],
]

// The machine may be busy, hence the retries: what is measured is the prober's patience.
test.each(HOSTILE)(
  '%s has its own cause, and ends a probe in time wherever it is asked from',
  { retry: 3 },
  async (_, cause, start) => {
    const url = await start()
    const began = performance.now()
    const signal = AbortSignal.timeout(TIMEOUT_MS)
    const [remote, service] = await Promise.all([
      probe(url),
      serviceState(
        { name: 'web', health: '/api/health' },
        { url, clock: systemClock },
        { deep: true, signal },
      ),
      reachable({ url, clock: systemClock }, { deep: true, signal }),
    ])
    expect(performance.now() - began).toBeLessThan(TIMEOUT_MS + 100)
    expect(remote.cause).toBe(cause)
    expect(service.state).toBe('failing')
    expect(service.reason, 'it is shown to the public').not.toMatch(/127\.0\.0\.1|http:|\d{4}|E[A-Z]{4,}/)
  },
)

const failsWith = (code: string) => async () => {
  throw Object.assign(new Error(`getaddrinfo ${code} secret.internal`), { code })
}

test.each([
  ['a name that does not exist', failsWith('ENOTFOUND'), 'dns_not_found'],
  ['a name without an address', async () => [], 'dns_not_found'],
  ['a resolver that fails', failsWith('EAI_AGAIN'), 'dns_unavailable'],
  ['a resolver that hangs', () => new Promise<never>(() => {}), 'dns_timeout'],
] as const)('%s has its own cause, in time', { retry: 3 }, async (_, lookup, cause) => {
  const { cause: found, tookMs } = await probe('http://www.example.com', { lookup })
  expect(found).toBe(cause)
  expect(tookMs).toBeLessThan(TIMEOUT_MS + 100)
})

describe('IPv6 and IPv4 are raced', () => {
  const resolvesTo = (...addresses: string[]): Network => ({
    lookup: async () => addresses.map((address) => ({ address, family: address.includes(':') ? 6 : 4 })),
  })

  test('reaches a service that listens only on ::1 by a name with both addresses', async () => {
    const url = await serve(healthy, '::1')
    const { health } = await probe(`http://both.example:${port(url)}`, resolvesTo('127.0.0.1', '::1'))
    expect(health).toMatchObject({
      reached: true,
      phases: { dns: expect.any(Number), tcp: expect.any(Number) },
    })
    expect((await probe(url)).cause).toBe('reached')
  })

  test('a blackholed IPv6 costs a quarter of a second, not the answer', { retry: 3 }, async () => {
    const url = await serve(healthy)
    await blackhole('::1', port(url))
    expect((await probe(`http://[::1]:${port(url)}`)).cause).toBe('connect_timeout')
    const { health, tookMs } = await probe(
      `http://both.example:${port(url)}`,
      resolvesTo('::1', '127.0.0.1'),
      5000,
    )
    expect(health.reached).toBe(true)
    expect(tookMs).toBeGreaterThan(240)
    expect(tookMs).toBeLessThan(600)
  })

  test('a slow line wins over a dead one however late it is', async () => {
    const url = await serve(healthy)
    await blackhole('::1', port(url))
    // Three dead addresses first, and of the same family, or they would take turns with the one that answers.
    const mapped = '::ffff:127.0.0.1'
    const { health, tookMs } = await probe(
      `http://both.example:${port(url)}`,
      resolvesTo('::1', '::1', '::1', mapped),
      5000,
    )
    expect(health.reached).toBe(true)
    expect(tookMs, 'three attempts were given company in turn').toBeGreaterThan(700)
  })
})

describe('certificates', () => {
  let certificates: Authority
  beforeAll(async () => {
    certificates = await authority('authority of the prober')
  })
  const here = (address = '127.0.0.1'): Network => ({
    ca: certificates.ca,
    lookup: async () => [{ address, family: 4 }],
  })
  const at = (url: string, name = 'www.example.com') => `https://${name}:${port(url)}`

  test('a valid certificate gives its remaining days and the time of the handshake', async () => {
    const url = await serveTls(await certificates.issue({ host: 'www.example.com', to: 20.9 }), healthy)
    const { health } = await probe(at(url), here(), 5000)
    expect(health).toMatchObject({
      reached: true,
      certificate: { daysLeft: 20 },
      phases: { tls: expect.any(Number) },
    })
  })

  test('a certificate for an IP address is valid for that address', async () => {
    const url = await serveTls(await certificates.issue({ host: '127.0.0.1' }), healthy)
    expect((await probe(url, here(), 5000)).cause).toBe('reached')
  })

  test.each([
    ['has expired', { host: 'www.example.com', from: -9, to: -1 }, 'tls_expired'],
    ['begins tomorrow', { host: 'www.example.com', from: 1 }, 'tls_not_yet_valid'],
    ['is for another name', { host: 'other.example.com' }, 'tls_wrong_name'],
  ] as const)(
    'a certificate that %s has its own cause, and no request is sent',
    async (_, options, cause) => {
      const url = await serveTls(await certificates.issue(options), () =>
        expect.unreachable('the request was sent'),
      )
      expect((await probe(at(url), here(), 5000)).cause).toBe(cause)
    },
  )

  test('a certificate from an unknown authority is not trusted', async () => {
    const url = await serveTls(await certificates.issue({ host: 'www.example.com' }), healthy)
    const { lookup } = here()
    expect((await probe(at(url), lookup ? { lookup } : {}, 5000)).cause).toBe('tls_untrusted')
  })

  test('a server that speaks no TLS, one that is silent, and TLS asked in plain', async () => {
    const plain = await serve(healthy)
    expect((await probe(at(plain), here(), 5000)).cause).toBe('tls_failed')
    const silent = await serveTcp(() => {})
    expect((await probe(at(silent), here())).cause).toBe('tls_timeout')
    const secure = await serveTls(await certificates.issue({ host: 'www.example.com' }), healthy)
    expect(['bad_http', 'connection_closed']).toContain(
      (await probe(`http://127.0.0.1:${port(secure)}`)).cause,
    )
  })
})

test('text from a service cannot control the terminal', async () => {
  const url = await serve((_, response) =>
    response.end(
      healthBody({
        build: '\u001b]0;owned\u0007b1\u202e',
        probes: { store: { state: 'failing', checked: true, reason: 'a\u001b[2Jb\r\nc'.padEnd(9999, 'x') } },
      }),
    ),
  )
  const { health } = await probe(url)
  expect(JSON.stringify(health)).not.toMatch(/\p{Cc}|\p{Bidi_Control}|\\[rnu]/u)
  expect(health.reached && health.report.probes.store?.reason?.length).toBeLessThan(400)
})

test('when the probe is over nothing of it is left: no socket, no timer', async () => {
  const sockets = new Set<Socket>()
  const server = createServer((socket) => {
    sockets.add(socket)
    socket.on('error', () => {})
    socket.resume()
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => void server.close())
  const address = server.address() as { port: number }
  await probe(`http://127.0.0.1:${address.port}`, undefined, 50)
  await Promise.all([...sockets].map((socket) => socket.destroyed || once(socket, 'close')))
  expect(sockets.size).toBe(1)
})
