import { type AddressInfo, createServer, type Server } from 'node:net'
import { networkInterfaces } from 'node:os'
import { expect, onTestFinished, test } from 'vitest'
import { runProgram } from '../../../src/cli/program.ts'
import { jwtIdentify } from '../../../src/core/access/identity.ts'
import { sharedCounter } from '../../../src/core/access/limit/open.ts'
import { probeRemote } from '../../../src/core/health/prober.ts'
import { silentLog, systemClock } from '../../../src/core/host.ts'
import { webhookChannel } from '../../../src/core/incidents/channels.ts'
import { connectionSteps, nameStep } from '../../../src/core/live/endpoint.ts'
import { runLive } from '../../../src/core/live/live.ts'
import { type LiveNetwork, openNetwork } from '../../../src/core/live/network.ts'
import { createFetchText } from '../../../src/core/mail/feedback/ses.ts'
import type { Message } from '../../../src/core/mail/mailer.ts'
import { HTTP_OUTCOMES } from '../../../src/core/mail/outcome.ts'
import { openApi } from '../../../src/core/mail/transports/api.ts'
import { proxyOf, useProxies } from '../../../src/core/network/proxy.ts'
import { openCheckout } from '../../../src/core/payments/checkout.ts'
import { secret } from '../../../src/core/secret.ts'
import { createPing } from '../../../src/daemon/schedule.ts'
import { pairOf } from '../../support/accounts.ts'
import { testContext } from '../../support/context.ts'
import { folderWith } from '../../support/folder.ts'
import { behindProxy } from '../../support/proxy.ts'
import { healthBody, serve } from '../../support/servers.ts'

const host = { clock: systemClock, log: silentLog }

/** One call of each kind that leaves the process, to a name that only the proxy knows. */
const CALLS: Readonly<Record<string, (origin: string) => unknown>> = {
  'the mail API': async (origin) => {
    const transport = openApi({ url: `${origin}/mail`, key: secret('key-of-the-provider') })
    onTestFinished(() => transport.close())
    await transport.verify(AbortSignal.timeout(5000)).catch(() => {})
  },
  'a webhook': (origin) =>
    webhookChannel(
      systemClock,
      { url: secret(`${origin}/alerts`), secret: undefined },
      () => ({ title: 'a', lines: [] }) as never,
    ).tell({
      id: 'a',
      kind: 'test',
      at: 0,
      incident: { id: 'a', cause: 'test', service: 'web', affected: [], openedAt: 0, seenAt: 0 } as never,
    }),
  'a heartbeat': async (origin) => {
    const ping = createPing(host, secret(`${origin}/beat`))
    ping.ping()
    await expect.poll(() => asked.length).toBeGreaterThan(0)
    await ping.stop()
  },
  'the payments API': async (origin) => {
    const opened = openCheckout(
      host,
      {
        secretKey: secret('sk_test_x'),
        publishableKey: undefined,
        webhookSecret: pairOf('key-of-the-webhook'),
        apiUrl: origin,
        prices: { 'pro-monthly': 'price_a' },
      },
      'https://www.example.com',
    )
    onTestFinished(() => opened.close())
    await opened
      .open({ kind: 'person', subject: 'ada', email: 'ada@example.com' }, 'pro-monthly')
      .catch(() => {})
  },
  'the key set': (origin) =>
    jwtIdentify(systemClock, { kind: 'jwks', url: `${origin}/keys` })(
      new Request('http://web.example/', {
        headers: {
          authorization: `Bearer ${[{ alg: 'ES256', kid: 'a' }, { sub: 'a' }, 0].map((part) => Buffer.from(JSON.stringify(part)).toString('base64url')).join('.')}`,
        },
      }),
    ).catch(() => {}),
  'the shared store': (origin) =>
    sharedCounter(origin, secret('token-of-the-store'), 5000)
      .take({ name: 'a', quota: 1, windowMs: 1000 } as never, 'client')
      .catch(() => {}),
  'a probe of health': (origin) => probed(origin),
  'a check whether an alert channel accepts connections': (origin) =>
    openNetwork()
      .connect(new URL(origin), AbortSignal.timeout(5000))
      .catch(() => {}),
  'the certificate of a feedback provider': (origin) =>
    createFetchText()(`${origin}/signing.pem`).catch(() => {}),
  'the dispatch command with an env file': async (origin) => {
    const lines = Object.entries(env).map(([name, value]) => `${name}=${value}\n`)
    const cwd = await folderWith({ '.env': `EMAIL_DISPATCH_SECRET=a-secret-of-sixteen\n${lines.join('')}` })
    await runProgram(['dispatch', '--url', origin, '--env-file', '.env'], testContext({ cwd }).context)
  },
  'the command that compares replicas': async (origin) =>
    runProgram(
      ['env', 'verify', '--env-file', '.env', '--url', `web=${origin}`],
      testContext({
        cwd: await folderWith({ '.env': `HEALTH_DEEP_TOKEN=${'t'.repeat(24)}` }),
        env: { ...env },
      }).context,
    ),
}

let asked: readonly string[] = []
let env: Record<string, string> = {}

test.each(Object.entries(CALLS))('%s goes through the proxy of the environment', async (_, call) => {
  const server = await serve((_, response) => response.end(healthBody()))
  ;({ asked, env } = await behindProxy(server))
  await call('http://service.example')
  expect(asked.length).toBeGreaterThan(0)
  for (const one of asked) expect(one).toMatch(/service\.example/)
})

test.each(Object.entries(CALLS))('%s goes past the proxy to a host in NO_PROXY', async (name, call) => {
  const server = await serve((_, response) => response.end(healthBody()))
  ;({ asked, env } = await behindProxy(server, { NO_PROXY: 'service.invalid' }))
  if (name !== 'a heartbeat') await call('http://service.invalid')
  expect(asked).toEqual([])
})

const MESSAGE: Message = {
  key: 'a',
  messageId: 'a@example.com',
  date: new Date(0),
  from: { name: undefined, address: 'course@example.com' },
  to: { name: undefined, address: 'ada@example.com' },
  replyTo: undefined,
  subject: 'A lesson',
  html: '<p>A lesson</p>',
  text: 'A lesson',
  headers: {},
}
const SILENT = () => createServer((socket) => void socket.on('error', () => {}))
const REFUSING: Readonly<Record<string, () => Server>> = {
  'is not there': () => createServer(),
  'wants a password': () =>
    createServer((socket) => void socket.end('HTTP/1.1 407 Password\r\ncontent-length: 0\r\n\r\n')),
  'is overloaded': () =>
    createServer((socket) => void socket.end('HTTP/1.1 503 Busy\r\ncontent-length: 0\r\n\r\n')),
  'speaks SOCKS': () => createServer((socket) => void socket.end('\u0005\u0000\u0005\u0001')),
  'hangs up': () => createServer((socket) => void socket.destroy()),
}

async function throughProxy(server: Server, isGone = false, user = ''): Promise<void> {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  if (isGone) server.close()
  useProxies({ HTTPS_PROXY: `http://${user}127.0.0.1:${port}` })
  onTestFinished(() => {
    useProxies({})
    if (server.listening) server.close()
  })
}

test.each(Object.entries(REFUSING))(
  'a proxy that %s is named as the cause, and no mail counts as handed over',
  async (how, open) => {
    await throughProxy(open(), how === 'is not there')
    const transport = openApi({ url: 'https://mail.example/emails', key: secret('key-of-the-provider') })
    onTestFinished(() => transport.close())
    const { outcome } = HTTP_OUTCOMES['proxy-refused']
    expect(await transport.send(MESSAGE)).toEqual(outcome)
    await expect(transport.verify(AbortSignal.timeout(5000))).rejects.toThrow(outcome.reason)
    expect(await probed('https://service.example', 5000)).toMatchObject({ cause: 'proxy_refused' })
  },
)

test('a proxy gets the user and the password in its address, with escaped characters decoded', async () => {
  let asked = ''
  const proxy = createServer((socket) =>
    socket.on('data', (bytes) => {
      asked += bytes
      socket.end('HTTP/1.1 407 Password\r\ncontent-length: 0\r\n\r\n')
    }),
  )
  await throughProxy(proxy, false, 'ada:p%40ss%C3%B6@')
  await probed('https://service.example')
  expect(asked).toMatch(/^CONNECT service\.example:443 /)
  expect(asked.toLowerCase()).toContain(
    `proxy-authorization: basic ${Buffer.from('ada:p@ssö').toString('base64')}`.toLowerCase(),
  )
})

test('a silent proxy is the cause of a probe that it holds up, and of a check', async () => {
  await throughProxy(SILENT())
  expect(await probed('https://service.example', 200)).toMatchObject({ cause: 'proxy_refused' })
  const steps = connectionSteps({ network: openNetwork(), now: 0 }, 'https://service.example', 'X_URL')
  const target = { name: 'x', services: [], variables: [], order: 'chain', steps } as const
  const looked = { limitMs: 200, deadlineMs: 5000, signal: new AbortController().signal }
  const [, reached] = await runLive(systemClock, [target], looked)
  expect(reached).toMatchObject({
    id: 'live-unreachable',
    detail: 'gives no answer in time, through the proxy',
  })
})

test('calls share their connections to the proxy', async () => {
  const server = await serve((_, response) => response.end('certificate'))
  const { from } = await behindProxy(server)
  const fetchText = createFetchText()
  for (let call = 0; call < 9; call += 1)
    expect(await fetchText(`http://service.example/${call}.pem`)).toBe('certificate')
  // One more may open while the last call still holds the first.
  expect(from.size).toBeLessThan(4)
})

const probed = (url: string, timeoutMs = 5000) =>
  probeRemote({
    ...{ service: 'web', health: '/api/health', deep: false, token: undefined, clock: systemClock },
    url,
    timeoutMs,
  })

test('a health probe through a proxy reads the answer as it would without', async () => {
  const server = await serve((_, response) => response.end(healthBody()))
  await behindProxy(server)
  const health = await probed('http://service.example')
  expect(health).toMatchObject({ reached: true, report: { state: 'ok' } })
})

test('preflight leaves the name of a server behind a proxy to the proxy, and not that of a mail server', async () => {
  await behindProxy('http://127.0.0.1:9')
  const network = { addresses: async () => 1 } as unknown as LiveNetwork
  const checked = async (url: string) => {
    const { state, detail } = await nameStep({ network, now: 0 }, new URL(url), 'X_URL').run(
      AbortSignal.timeout(5000),
    )
    return `${state}: ${detail}`
  }
  expect(await checked('https://alerts.example')).toBe('skipped: the proxy resolves it')
  expect(await checked('smtp://mail.example')).toBe('passed: 1 address')
})

test('no address of this machine is behind a proxy, and NO_PROXY names hosts, domains, ports or everything', () => {
  const of = (url: string) => proxyOf(new URL(url))?.host
  onTestFinished(() => useProxies({}))
  useProxies({ https_proxy: 'http://secure.example:3128', HTTP_PROXY: 'plain.example:8080' })
  expect(of('https://api.example')).toBe('secure.example:3128')
  expect(of('http://api.example')).toBe('plain.example:8080')
  const own = Object.values(networkInterfaces()).flatMap((one) => one?.map(({ address }) => address) ?? [])
  for (const one of ['localhost', '0.0.0.0', '::', '127.0.0.1', '::1', ...own])
    expect(of(`http://${one.includes(':') ? `[${one}]` : one}:3000`), one).toBeUndefined()
  useProxies({ HTTPS_PROXY: 'http://p.example:1', NO_PROXY: 'api.example, .internal db.example:5000' })
  expect(of('https://api.example')).toBeUndefined()
  expect(of('https://v2.api.example')).toBeUndefined()
  expect(of('https://notapi.example')).toBe('p.example:1')
  expect(of('https://a.internal')).toBeUndefined()
  expect(of('https://db.example:5000')).toBeUndefined()
  expect(of('https://db.example')).toBe('p.example:1')
  useProxies({ HTTP_PROXY: 'http://p.example:1', NO_PROXY: 'a.example:443,b.example:80' })
  expect(['https://a.example', 'http://a.example', 'https://b.example', 'http://b.example'].map(of)).toEqual([
    undefined,
    'p.example:1',
    'p.example:1',
    undefined,
  ])
  useProxies({ HTTPS_PROXY: 'http://p.example:1', NO_PROXY: '*' })
  expect(of('https://api.example')).toBeUndefined()
  useProxies({})
  expect(of('https://api.example')).toBeUndefined()
})
