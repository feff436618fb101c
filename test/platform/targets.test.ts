import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import path from 'node:path'
import { createServer as createTlsServer } from 'node:tls'
import { describe, expect, onTestFinished, test } from 'vitest'
import { readSettings } from '../../src/core/env/settings.ts'
import { given } from '../../src/core/given.ts'
import { openProbes, type ProbeParts } from '../../src/core/health/probe.ts'
import { createHealth } from '../../src/core/health/runner.ts'
import { systemClock } from '../../src/core/host.ts'
import type { PlatformDefinition, ProbeInput } from '../../src/platform/definition.ts'
import { resolvePlatform } from '../../src/platform/resolve.ts'
import { emptyFolder } from '../support/folder.ts'
import { serve, serveTcp } from '../support/servers.ts'

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
    service = 'web',
  }: {
    deep?: boolean
    env?: Record<string, string>
    network?: ProbeParts['network']
    service?: string
  } = {},
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
    services: { web: {}, jobs: { port: 0 } },
    probes: { kiln: { service, ...probe } },
  }
  const platform = resolvePlatform(definition, { folder: '/' })
  const settings = readSettings(platform, env)
  // The runners of targets take settings and network, and nothing else of the process.
  const parts = { settings, network, clock: systemClock } as unknown as ProbeParts
  const found = platform.probes.filter(({ name }) => name === 'kiln')
  const health = createHealth({
    service,
    probes: openProbes(found, service, parts),
    clock: systemClock,
    build: undefined,
    startedAt: 0,
    stopping: () => false,
  })
  return (await health.check({ deep })).probes.kiln
}

const hostOf = (url: string) => new URL(url).host

/** What a server on loopback does: it answers HTTP with a status, or says `greeting` at once and `answer` to the first bytes. */
interface Says {
  readonly status?: number
  readonly greeting?: string
  /** Undefined: it hangs up. */
  readonly answer?: string
  readonly tls?: true
}

/** Gives its host and its connections. */
async function speaks({ status, greeting, answer, tls }: Says) {
  const talk = (socket: Socket) => {
    socket.on('error', () => {})
    if (greeting !== undefined) socket.write(greeting)
    socket.once('data', () => (answer === undefined && !tls ? socket.destroy() : socket.write(answer ?? '')))
  }
  if (status !== undefined)
    return { host: hostOf(await serve((_, r) => r.writeHead(status).end())), sockets: [] }
  if (!tls) return { host: hostOf(await serveTcp(talk)), sockets: [] }
  // As Exim does, it refuses a client that offers a protocol other than its own.
  const server = createTlsServer({ ...CERTIFICATE, ALPNProtocols: ['smtp'] }, talk)
  const sockets: Socket[] = []
  server.on('tlsClientError', () => {}).on('connection', (socket: Socket) => sockets.push(socket))
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => void server.close())
  return { host: `127.0.0.1:${(server.address() as AddressInfo).port}`, sockets }
}

const targetOf = (scheme: string, host: string): Target =>
  ['tcp', 'tls'].includes(scheme)
    ? { [scheme]: host }
    : { [scheme.replace(/^(smtp|redis)s$/, '$1')]: `${scheme}://${host}` }

test.each<[what: string, scheme: string, says: Says]>([
  ['http', 'http', { status: 200 }],
  ['http with 404, as it is there', 'http', { status: 404 }],
  ['tcp', 'tcp', {}],
  ['tls', 'tls', { tls: true }],
  ['smtp', 'smtp', { greeting: '220 mail ESMTP\r\n' }],
  ['postgres without TLS', 'postgres', { answer: 'N' }],
  ['postgres with TLS', 'postgres', { answer: 'S' }],
  ['postgres with an error of its own', 'postgres', { answer: 'E' }],
  ['redis', 'redis', { answer: '+PONG\r\n' }],
  ['redis without the right to ask', 'redis', { answer: '-NOPERM no\r\n' }],
  ['redis with a password', 'redis', { answer: '-NOAUTH Authentication required.\r\n' }],
  ['smtps', 'smtps', { greeting: '220 mail ESMTP\r\n', tls: true }],
  ['rediss', 'rediss', { answer: '+PONG\r\n', tls: true }],
])('a server that answers as it should is ok: %s', async (_, scheme, says) => {
  const { host } = await speaks(says)
  expect(await probed(targetOf(scheme, host))).toMatchObject({ state: 'ok', checked: true })
})

test('of several PostgreSQL servers one that answers is enough', async () => {
  const [{ host }, { host: web }] = [await speaks({ answer: 'S' }), await speaks({ status: 200 })]
  const closed = Promise.withResolvers<void>()
  const silent = hostOf(await serveTcp((socket) => socket.resume().once('close', () => closed.resolve())))
  const result = (...hosts: string[]) =>
    probed(
      { postgres: 'KILN_URL', deadline: '500ms' },
      { env: { KILN_URL: `postgres://app:canary@${hosts}/app?target_session_attrs=read-write` } },
    )
  expect(await result(NOBODY, silent, web, host)).toMatchObject({ state: 'ok', checked: true })
  await closed.promise
  expect(await result(web, NOBODY)).toMatchObject({ reason: 'answers, but not in its protocol' })
  expect(await result(NOBODY, NOBODY)).toMatchObject({ reason: expect.stringMatching(/nothing listens/) })
})

test('a PostgreSQL is asked over its socket, in either form of libpq', async () => {
  const folder = await emptyFolder()
  const server = createServer((socket) => socket.once('data', () => socket.end('N')))
  server.listen(path.join(folder, '.s.PGSQL.5433'))
  onTestFinished(() => void server.close())
  await once(server, 'listening')
  for (const postgres of [
    `postgres://app@${encodeURIComponent(folder)}:5433/app`,
    `postgres://app@localhost:5433/app?host=${folder}`,
  ])
    expect(await probed({ postgres: 'KILN_URL' }, { env: { KILN_URL: postgres } })).toMatchObject({
      state: 'ok',
      checked: true,
    })
  const nobody = { KILN_URL: `postgres://app@${encodeURIComponent(folder)}/app` }
  expect(await probed({ postgres: 'KILN_URL' }, { env: nobody })).toMatchObject({ state: 'failing' })
})

test('a name is ok when it has an address', async () => {
  expect(await probed({ dns: '127.0.0.1' })).toMatchObject({ state: 'ok', checked: true })
})

const NOBODY = '127.0.0.1:1'

describe('a server that does not is failing', () => {
  const REFUSED = 'cannot be reached: the connection was refused: nothing listens there'
  const NO_TLS = 'cannot be reached: no encrypted connection came about'
  const BROKE = 'cannot be reached: the connection broke before the answer was whole'
  const OTHER = 'answers, but not in its protocol'
  test.each<[what: string, scheme: string, says: Says | undefined, reason: string]>([
    ['http with an error of its own', 'http', { status: 500 }, 'answers with an error of its own'],
    ['http where nothing listens', 'http', undefined, REFUSED],
    ['tcp where nothing listens', 'tcp', undefined, REFUSED],
    ['redis where nothing listens', 'redis', undefined, REFUSED],
    ['tls without TLS', 'tls', { answer: 'HTTP/1.1 400\r\n\r\n' }, NO_TLS],
    ['smtp that refuses', 'smtp', { greeting: '554 no\r\n' }, OTHER],
    ['smtp that says 220 later', 'smtp', { greeting: 'x220 \r\n' }, OTHER],
    ['smtps without TLS', 'smtps', { greeting: '220 mail ESMTP\r\n' }, NO_TLS],
    ['postgres that is a web server', 'postgres', { status: 200 }, OTHER],
    ['postgres that says S later', 'postgres', { answer: '-S' }, OTHER],
    ['redis that is another protocol', 'redis', { answer: 'HTTP/1.1 400' }, OTHER],
    ['redis that says PONG later', 'redis', { answer: '-ERR +PONG -NOAUTH' }, OTHER],
    ['redis without TLS that has it', 'redis', { tls: true }, BROKE],
    ['redis that hangs up', 'redis', {}, BROKE],
  ])('%s', async (_, scheme, says, reason) => {
    const { host } = says ? await speaks(says) : { host: NOBODY }
    // No address, no host: the public reads it.
    expect(await probed({ ...targetOf(scheme, host), deadline: '500ms' })).toMatchObject({
      state: 'failing',
      reason,
    })
  })

  test('a certificate that nobody trusts', async () => {
    const { host: tls } = await speaks({ tls: true })
    const { reason } = { ...(await probed({ tls }, { network: {} })) }
    expect(reason).toMatch(/^cannot be reached: .*certificate/)
  })

  test('a name without an address', async () => {
    const network = { lookup: () => Promise.reject(Object.assign(new Error(), { code: 'ENOTFOUND' })) }
    const { reason } = { ...(await probed({ dns: 'kiln.example' }, { network })) }
    expect(reason).toBe('cannot be reached: its name does not exist')
    expect(await probed({ dns: 'kiln.example' }, { network: { lookup: async () => [] } })).toMatchObject({
      state: 'failing',
      reason: 'has no address',
    })
  })

  test('silence, when its deadline passes', async () => {
    const smtp = `smtp://${hostOf(await serveTcp(() => {}))}`
    expect(await probed({ smtp, deadline: '50ms' })).toMatchObject({ reason: 'no answer in time' })
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
  const port = (await speaks({ tls: true })).host.split(':')[1]
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
  // The handshake is never answered.
  await closed((host) => ({ tls: host, deadline: '50ms' }))
  await closed((host) => ({ smtp: `smtps://${host}`, deadline: '50ms' }))
  await closed((host) => ({ redis: `rediss://${host}`, deadline: '50ms' }))
  const { host, sockets } = await speaks({ greeting: '220 mail\r\n', tls: true })
  await probed({ tls: host })
  await probed({ smtp: `smtps://${host}` })
  expect(sockets).toHaveLength(2)
  await Promise.all(sockets.map((socket) => socket.closed || once(socket, 'close')))
})

test('a name that is found after the deadline is connected to no more', async () => {
  let connections = 0
  const { port } = new URL(
    await serveTcp(() => {
      connections += 1
    }),
  )
  const found = Promise.withResolvers<{ address: string; family: number }[]>()
  const network = { lookup: () => found.promise }
  const smtp = `smtp://kiln.example:${port}`
  expect(await probed({ smtp, deadline: '50ms' }, { network })).toMatchObject({ state: 'failing' })
  found.resolve([{ address: '127.0.0.1', family: 4 }])
  await new Promise((resolve) => setImmediate(resolve))
  // The server takes connections in their order.
  await probed({ tcp: `127.0.0.1:${port}` })
  expect(connections).toBe(1)
})

test('an optional target is degraded where it would be failing, also when it is late', async () => {
  const silent = hostOf(await serveTcp(() => {}))
  expect(await probed({ smtp: `smtp://${silent}`, optional: true, deadline: '50ms' })).toMatchObject({
    state: 'degraded',
  })
  expect(await probed({ tcp: NOBODY, optional: true })).toMatchObject({ state: 'degraded' })
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

test('a target of a service other than web is tried by deep checks alone, too', async () => {
  const queue = { tcp: NOBODY }
  expect(await probed(queue, { service: 'jobs' })).toMatchObject({ state: 'failing' })
  expect(await probed(queue, { service: 'jobs', deep: false })).toEqual({ state: 'ok', checked: false })
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
  ['null, which nothing is not,', { json: { 'owner.name': null } }, REPORT, { state: 'failing' }],
  ['what JSON inherits', { json: { 'toString.name': 'toString' } }, '{}', { state: 'failing' }],
  ['JSON', { json: { status: 'up' } }, '<p>up', { reason: 'answers with something other than JSON' }],
  ['JSON and a text', { contains: 'up', json: { status: 'up' } }, '"up"', { state: 'failing' }],
  ['JSON and a text', { contains: 'down', json: { status: 'up' } }, REPORT, { state: 'failing' }],
])('an http target may expect %s: %j of %s', async (_, expected, body, result) => {
  const http = await serve((__, response) => response.end(body))
  expect(await probed({ http, expect: expected })).toMatchObject(result)
})

test.each([{}, { 'content-length': 200_001 }])(
  'a text is looked for in the first 64 KB of a longer answer: %j',
  async (headers) => {
    const http = await serve((_, response) => {
      response.writeHead(200, headers).write(`pong${'a'.repeat(65_532)}`)
      response.end(`${'b'.repeat(134_464)}c`)
    })
    const result = async (expect: ProbeInput['expect']) =>
      (await probed({ http, ...given({ expect }) }))?.state
    expect(await result({ contains: 'pong' })).toBe('ok')
    expect(await result({ contains: 'b' })).toBe('failing')
    expect(await result({ contains: 'pong', json: { status: 'up' } })).toBe('failing')
  },
)

test('an answer without end is failing, and is not kept', async () => {
  const http = await serve((_, response) => {
    const more = () => response.write('a'.repeat(16_384), () => response.destroyed || setImmediate(more))
    more()
  })
  expect(await probed({ http, expect: { contains: 'b' } })).toMatchObject({ state: 'failing' })
})
