import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import type { AddressInfo, Socket } from 'node:net'
import { createServer as createTlsServer } from 'node:tls'
import { describe, expect, onTestFinished, test } from 'vitest'
import { readSettings } from '../../src/core/env/settings.ts'
import { openProbes, type ProbeParts } from '../../src/core/health/probe.ts'
import { createHealth } from '../../src/core/health/runner.ts'
import { systemClock } from '../../src/core/host.ts'
import type { PlatformDefinition, ProbeInput } from '../../src/platform/definition.ts'
import { resolvePlatform } from '../../src/platform/resolve.ts'
import { serve, serveTcp, serveTls } from '../support/servers.ts'

const fixture = (name: string) => readFileSync(new URL(`../fixtures/tls/${name}`, import.meta.url), 'utf8')
const CERTIFICATE = { cert: fixture('loopback.crt'), key: fixture('loopback.key') }

type Target = Partial<Record<'http' | 'tcp' | 'tls' | 'dns' | 'smtp' | 'postgres' | 'redis', string>>

/** The health of a platform with this one probe. */
async function probed(
  probe: Target & Pick<ProbeInput, 'expect'> & { readonly optional?: boolean; readonly deadline?: string },
  {
    deep = true,
    env = {},
    network = { ca: CERTIFICATE.cert },
  }: { deep?: boolean; env?: Record<string, string>; network?: ProbeParts['network'] } = {},
) {
  const definition: PlatformDefinition = {
    preset: 'base',
    groups: {
      kiln: {
        unlocks: 'firings',
        absent: 'no firings',
        variables: { KILN_URL: { kind: 'text' }, KILN_NAME: { kind: 'text' } },
      },
    },
    probes: { kiln: { service: 'web', ...probe } },
  }
  const platform = resolvePlatform(definition, { folder: '/' })
  const settings = readSettings(platform, env)
  // The runners of targets take settings and network, and nothing else of the process.
  const parts = { settings, network, clock: systemClock } as unknown as ProbeParts
  const found = platform.probes.filter(({ name }) => name === 'kiln')
  const health = createHealth({
    service: 'web',
    probes: openProbes(found, 'web', parts),
    clock: systemClock,
    build: undefined,
    startedAt: 0,
    stopping: () => false,
  })
  return (await health.check({ deep })).probes.kiln
}

/** A server that says `greeting` when it is connected to, and `answer` to the first bytes it gets. */
const speaks = ({ greeting, answer }: { greeting?: string; answer?: string }) =>
  serveTcp((socket: Socket) => {
    if (greeting !== undefined) socket.write(greeting)
    socket.once('data', () => (answer === undefined ? socket.destroy() : socket.write(answer)))
  })
const hostOf = (url: string) => new URL(url).host

/** As `speaks`, over TLS from the first byte. Gives its host and its connections. */
async function speaksTls({ greeting, answer = '' }: { greeting?: string; answer?: string }) {
  // As Exim does, it refuses a client that offers a protocol other than its own.
  const server = createTlsServer({ ...CERTIFICATE, ALPNProtocols: ['smtp'] }, (socket) => {
    socket.on('error', () => {})
    if (greeting !== undefined) socket.write(greeting)
    socket.once('data', () => socket.write(answer))
  })
  const sockets: Socket[] = []
  server.on('tlsClientError', () => {}).on('connection', (socket: Socket) => sockets.push(socket))
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => void server.close())
  return { host: `127.0.0.1:${(server.address() as AddressInfo).port}`, sockets }
}

describe('a server that answers as it should is ok', () => {
  test.each<[string, () => Promise<Target>]>([
    ['http', async () => ({ http: await serve((_, response) => response.end('hello')) })],
    ['http with 404, as it is there', async () => ({ http: await serve((_, r) => r.writeHead(404).end()) })],
    ['tcp', async () => ({ tcp: hostOf(await serveTcp(() => {})) })],
    ['tls', async () => ({ tls: hostOf(await serveTls(CERTIFICATE, (_, response) => response.end())) })],
    ['dns', async () => ({ dns: '127.0.0.1' })],
    ['smtp', async () => ({ smtp: `smtp://${hostOf(await speaks({ greeting: '220 mail ESMTP\r\n' }))}` })],
    [
      'postgres without TLS',
      async () => ({ postgres: `postgres://${hostOf(await speaks({ answer: 'N' }))}` }),
    ],
    ['postgres with TLS', async () => ({ postgres: `postgres://${hostOf(await speaks({ answer: 'S' }))}` })],
    ['redis', async () => ({ redis: `redis://${hostOf(await speaks({ answer: '+PONG\r\n' }))}` })],
    [
      'smtps',
      async () => ({ smtp: `smtps://${(await speaksTls({ greeting: '220 mail ESMTP\r\n' })).host}` }),
    ],
    ['rediss', async () => ({ redis: `rediss://${(await speaksTls({ answer: '+PONG\r\n' })).host}` })],
    [
      'redis without the right to ask',
      async () => ({ redis: `redis://${hostOf(await speaks({ answer: '-NOPERM no\r\n' }))}` }),
    ],
    [
      'postgres with an error of its own',
      async () => ({ postgres: `postgres://${hostOf(await speaks({ answer: 'E' }))}` }),
    ],
    [
      'redis with a password',
      async () => ({
        redis: `redis://${hostOf(await speaks({ answer: '-NOAUTH Authentication required.\r\n' }))}`,
      }),
    ],
  ])('%s', async (_, target) => {
    expect(await probed(await target())).toMatchObject({ state: 'ok', checked: true })
  })
})

describe('a server that does not is failing', () => {
  const CLOSED = '127.0.0.1:1'
  test.each<[string, () => Promise<Target>]>([
    ['http with an error of its own', async () => ({ http: await serve((_, r) => r.writeHead(500).end()) })],
    ['http where nothing listens', async () => ({ http: `http://${CLOSED}` })],
    ['tcp where nothing listens', async () => ({ tcp: CLOSED })],
    ['tls without TLS', async () => ({ tls: hostOf(await speaks({ answer: 'HTTP/1.1 400\r\n\r\n' })) })],
    [
      'smtp that refuses',
      async () => ({ smtp: `smtp://${hostOf(await speaks({ greeting: '554 no\r\n' }))}` }),
    ],
    [
      'postgres that is a web server',
      async () => ({ postgres: `postgres://${hostOf(await serve(() => {}))}` }),
    ],
    [
      'redis that is another protocol',
      async () => ({ redis: `redis://${hostOf(await speaks({ answer: 'HTTP/1.1 400' }))}` }),
    ],
    [
      'smtp that says 220 later',
      async () => ({ smtp: `smtp://${hostOf(await speaks({ greeting: 'x220 \r\n' }))}` }),
    ],
    [
      'postgres that says S later',
      async () => ({ postgres: `postgres://${hostOf(await speaks({ answer: '-S' }))}` }),
    ],
    [
      'redis that says PONG later',
      async () => ({ redis: `redis://${hostOf(await speaks({ answer: '-ERR +PONG -NOAUTH' }))}` }),
    ],
    [
      'smtps without TLS',
      async () => ({ smtp: `smtps://${hostOf(await speaks({ greeting: '220 mail ESMTP\r\n' }))}` }),
    ],
    ['redis without TLS that has it', async () => ({ redis: `redis://${(await speaksTls({})).host}` })],
    ['redis that hangs up', async () => ({ redis: `redis://${hostOf(await speaks({}))}` })],
  ])('%s', async (_, target) => {
    const result = await probed({ ...(await target()), deadline: '500ms' })
    expect(result).toMatchObject({ state: 'failing' })
    // The public reads it: no address, no host.
    expect(result?.reason).not.toMatch(/127\.0\.0\.1|:\d{2,}/)
  })

  test('a certificate that nobody trusts', async () => {
    const tls = hostOf(await serveTls(CERTIFICATE, (_, response) => response.end()))
    expect(await probed({ tls }, { network: {} })).toMatchObject({ state: 'failing' })
  })

  test('a name without an address', async () => {
    const network = { lookup: () => Promise.reject(Object.assign(new Error(), { code: 'ENOTFOUND' })) }
    expect(await probed({ dns: 'kiln.example' }, { network })).toMatchObject({ state: 'failing' })
    expect(await probed({ dns: 'kiln.example' }, { network: { lookup: async () => [] } })).toMatchObject({
      state: 'failing',
      reason: 'has no address',
    })
  })

  test('silence, when its deadline passes', async () => {
    const smtp = `smtp://${hostOf(await serveTcp(() => {}))}`
    expect(await probed({ smtp, deadline: '50ms' })).toMatchObject({ state: 'failing' })
  })
})

test('a name is looked up without the dot at its end, and an address in brackets is connected to', async () => {
  const asked: string[] = []
  const lookup = async (host: string) => {
    asked.push(host)
    return [{ address: '127.0.0.1', family: 4 }]
  }
  for (const dns of ['kiln.example.', 'kiln.example'])
    expect(await probed({ dns }, { network: { lookup } })).toMatchObject({ state: 'ok', checked: true })
  expect(asked).toEqual(['kiln.example', 'kiln.example'])
  const url = new URL(await serveTcp((socket) => void socket.write('220 mail\r\n'), '::1'))
  expect(await probed({ tcp: url.host })).toMatchObject({ state: 'ok' })
  expect(await probed({ smtp: `smtp://${url.host}` })).toMatchObject({ state: 'ok' })
  const port = hostOf(await serveTls(CERTIFICATE, () => {})).split(':')[1]
  const network = { ca: CERTIFICATE.cert, lookup }
  // The certificate is for 127.0.0.1 alone.
  expect(await probed({ tls: `kiln.example:${port}` }, { network })).toMatchObject({ state: 'failing' })
})

test('the connection of a target is closed once it has answered, and when its time is up', async () => {
  const closed = async (target: (host: string) => Target & { readonly deadline?: string }, says = '') => {
    const connected = Promise.withResolvers<Socket>()
    const url = await serveTcp((socket) => {
      if (says !== '') socket.write(says)
      socket.resume()
      connected.resolve(socket)
    })
    await probed(target(hostOf(url)))
    const socket = await connected.promise
    if (!socket.closed) await once(socket, 'close')
  }
  await closed((host) => ({ tcp: host }))
  await closed((host) => ({ smtp: `smtp://${host}` }), '220 mail\r\n')
  await closed((host) => ({ smtp: `smtp://${host}` }), '554 no\r\n')
  await closed((host) => ({ smtp: `smtp://${host}`, deadline: '50ms' }))
  const { host, sockets } = await speaksTls({ greeting: '220 mail\r\n' })
  await probed({ tls: host })
  await probed({ smtp: `smtps://${host}` })
  expect(sockets).toHaveLength(2)
  await Promise.all(sockets.map((socket) => socket.closed || once(socket, 'close')))
})

test('an optional target is degraded where it would be failing, also when it is late', async () => {
  const silent = hostOf(await serveTcp(() => {}))
  expect(await probed({ smtp: `smtp://${silent}`, optional: true, deadline: '50ms' })).toMatchObject({
    state: 'degraded',
  })
  expect(await probed({ tcp: '127.0.0.1:1', optional: true })).toMatchObject({ state: 'degraded' })
})

test('a target in a variable is skipped until that is set, and tried by deep checks alone', async () => {
  let asked = 0
  const env = {
    KILN_URL: await serve((_, response) => {
      asked += 1
      response.end()
    }),
  }
  expect(await probed({ http: 'KILN_URL' })).toMatchObject({ state: 'skipped', checked: false })
  expect(await probed({ http: 'KILN_URL' }, { env, deep: false })).toMatchObject({
    state: 'ok',
    checked: false,
  })
  expect(asked).toBe(0)
  expect(await probed({ http: 'KILN_URL' }, { env })).toMatchObject({ state: 'ok', checked: true })
  expect(asked).toBe(1)
})

const REPORT = JSON.stringify({ status: 'up', checks: [{ name: 'kiln', ok: true }], owner: null })
test.each<[string, NonNullable<ProbeInput['expect']>, string, object]>([
  ['a text', { contains: 'pong' }, 'ping pong', { state: 'ok' }],
  ['a text', { contains: 'pong' }, 'ping', { reason: 'answers without the text that is expected' }],
  ['values of JSON', { json: { status: 'up', 'checks.0.ok': true, owner: null } }, REPORT, { state: 'ok' }],
  [
    'values of JSON',
    { json: { status: 'up', 'checks.1.ok': true } },
    REPORT,
    { reason: 'answers with another checks.1.ok than is expected' },
  ],
  ['a value of its type', { json: { n: 1 } }, '{"n":"1"}', { state: 'failing' }],
  ['a value of its type', { json: { on: 'true' } }, '{"on":true}', { state: 'failing' }],
  ['a value of its type', { json: { owner: 'null' } }, '{"owner":null}', { state: 'failing' }],
  ['what JSON inherits', { json: { 'toString.name': 'toString' } }, '{}', { state: 'failing' }],
  ['JSON', { json: { status: 'up' } }, '<p>up', { reason: 'answers with something other than JSON' }],
  ['JSON and a text', { contains: 'up', json: { status: 'up' } }, '"up"', { state: 'failing' }],
])('an http target may expect %s: %j of %s', async (_, expected, body, result) => {
  const http = await serve((__, response) => response.end(body))
  expect(await probed({ http, expect: expected })).toMatchObject(result)
})

test('an answer without end is failing, and is not kept', async () => {
  const http = await serve((_, response) => {
    const more = () => response.write('a'.repeat(16_384), () => response.destroyed || setImmediate(more))
    more()
  })
  expect(await probed({ http, expect: { contains: 'b' } })).toMatchObject({ state: 'failing' })
})
