import { createSocket } from 'node:dgram'
import { getEventListeners, once } from 'node:events'
import type { Socket } from 'node:net'
import { expect, onTestFinished, test } from 'vitest'
import { certificateStep, endpointSteps } from '../../../src/core/live/endpoint.ts'
import { outcomeOfFault, type Step } from '../../../src/core/live/live.ts'
import { openNetwork } from '../../../src/core/live/network.ts'
import { answers, authority, loopbackLookup, serve } from '../../support/outside.ts'
import { serveTcp } from '../../support/servers.ts'

const signed = await authority('Trusted for tests')
const strangers = await authority('Strangers for tests')
const network = openNetwork({ lookup: loopbackLookup, ca: signed.ca })
const looks = { network, now: Date.now() }

async function told(step: Step): Promise<string> {
  const { state, detail } = await step.run(AbortSignal.timeout(5000)).catch(outcomeOfFault)
  return `${state}: ${detail}`
}

async function certificateTold(certificate: { key: string; cert: string }): Promise<string> {
  const { port } = await serve(answers({}), certificate)
  return told(certificateStep(looks, new URL(`https://service.example:${port}`), 'X_URL'))
}

test('reports the days left on a certificate', async () => {
  expect(await certificateTold(await signed.issue({}))).toBe('passed: 80 days left')
})

test.each([
  ['expired', { from: -90, to: -2.5 }, 'failed: expired 3 days ago'],
  ['made out to another name', { host: 'other.example' }, 'failed: is made out to another name'],
  ['short-lived and late', { from: -5, to: 1.5 }, 'warning: ends in 1 day'],
])('reports a certificate that is %s', async (_, input, sentence) => {
  expect(await certificateTold(await signed.issue(input))).toBe(sentence)
})

test('reports a certificate of an untrusted authority', async () => {
  expect(await certificateTold(await strangers.issue({}))).toMatch(/^failed: .*this machine trusts/)
})

test('after STARTTLS the certificate of a mail server is read; one that offers none is a warning', async () => {
  const { SMTPServer } = await import('smtp-server')
  const listen = async (options: ConstructorParameters<typeof SMTPServer>[0]) => {
    const server = new SMTPServer({ ...options, logger: false })
    await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve))
    onTestFinished(() => new Promise<void>((resolve) => server.close(resolve)))
    const { port } = server.server.address() as { port: number }
    return told(certificateStep(looks, new URL(`smtp://service.example:${port}`), 'MAILER_SMTP_URL'))
  }
  expect(await listen(await signed.issue({}))).toBe('passed: 80 days left')
  expect(await listen({ hideSTARTTLS: true })).toBe('warning: is absent: the server offers no encryption')
})

test('reachability needs no valid certificate, and a request with a key does', async () => {
  const { port, requests } = await serve(answers({ '/': [200] }), await strangers.issue({}))
  const [, reachability] = endpointSteps(looks, `https://service.example:${port}`, 'X_URL', 'allowed')
  expect(await told(reachability)).toBe('passed: answers (200)')
  await expect(
    network.get(
      { url: `https://service.example:${port}/`, headers: { authorization: 'Bearer key' } },
      AbortSignal.timeout(5000),
    ),
  ).rejects.toMatchObject({ code: 'tls_untrusted' })
  expect(requests).toHaveLength(1)
})

test('a redirect is not followed, so that a key never travels on', async () => {
  const other = await serve(answers({}))
  const { port } = await serve((_, response) =>
    response.writeHead(302, { location: `http://127.0.0.1:${other.port}/` }).end(),
  )
  const { status } = await network.get(
    { url: `http://127.0.0.1:${port}/`, headers: { authorization: 'Bearer key' } },
    AbortSignal.timeout(5000),
  )
  expect(status).toBe(302)
  expect(other.requests).toEqual([])
})

test('a body is read up to 64 KB, and only where it is wanted', async () => {
  const { port, requests } = await serve((request, response) => {
    const [, size] = /(\d+)$/.exec(request.url ?? '') ?? []
    response.end('x'.repeat(Number(size)))
  })
  const { signal } = new AbortController()
  const body = (size: number, more: object) =>
    network.get({ url: `http://127.0.0.1:${port}/${size}`, ...more }, signal).then(
      ({ body: text }) => text.length,
      ({ code }: { code?: string }) => code,
    )
  expect(await body(65_536, { wantsBody: true })).toBe(65_536)
  expect(await body(65_537, { wantsBody: true })).toBe('too_large')
  expect(await body(65_537, {})).toBe(0)
  expect(await body(1, { headers: { accept: 'text/plain', apikey: 'key' } })).toBe(0)
  expect(requests.map(({ headers }) => [headers.accept, headers.apikey])).toEqual([
    ...Array(3).fill(['application/json', undefined]),
    ['text/plain', 'key'],
  ])
  expect(getEventListeners(signal, 'abort')).toEqual([])
})

test('a service is asked for its shallow health, without a key', async () => {
  const { port, requests } = await serve(answers({ '/health': [200, { status: 'UP' }] }))
  const service = { name: 'shop', health: '/health', format: 'spring' } as const
  const health = await network.health(service, `http://127.0.0.1:${port}`, AbortSignal.timeout(5000))
  expect(health).toMatchObject({ reached: true, report: { state: 'ok' } })
  expect(requests.map(({ url, headers }) => [url, headers.authorization])).toEqual([['/health', undefined]])
})

test('opens a connection, closes it again, and reports its fault', async () => {
  const accepted = Promise.withResolvers<Socket>()
  const url = await serveTcp((socket) => accepted.resolve(socket.resume()))
  const { signal } = new AbortController()
  await network.connect(new URL(url.replace('127.0.0.1', 'service.example')), signal)
  await once(await accepted.promise, 'close')
  await expect(network.connect(new URL('http://127.0.0.1:1'), signal)).rejects.toMatchObject({
    code: 'connect_refused',
  })
  await expect(network.connect(new URL('http://a.invalid'), signal)).rejects.toMatchObject({
    code: 'dns_not_found',
  })
  expect(getEventListeners(signal, 'abort')).toEqual([])
})

test('gives up on a hanging resolver when time is up, and distinguishes its other faults', async () => {
  const { signal } = new AbortController()
  expect(await network.addresses(new URL('http://[::1]'), signal)).toBe(1)
  const url = new URL('http://a.example')
  const failing = (code: string) =>
    openNetwork({ lookup: () => Promise.reject(Object.assign(new Error(code), { code })) })
  for (const [error, code] of [
    ['ENOTFOUND', 'dns_not_found'],
    ['EAI_AGAIN', 'dns_unavailable'],
  ] as const)
    await expect(failing(error).addresses(url, signal)).rejects.toMatchObject({ code })
  const hanging = openNetwork({ lookup: () => new Promise(() => {}) })
  const control = new AbortController()
  const waits = [
    hanging.addresses(url, control.signal),
    hanging.connect(url, control.signal),
    hanging.certificate(url, control.signal),
    hanging.get({ url: url.href }, control.signal),
    hanging.addresses(url, AbortSignal.abort()),
  ].map((wait) => wait.catch((error: unknown) => error))
  control.abort()
  expect((await Promise.all(waits)).map((fault) => (fault as { code?: string }).code)).toEqual([
    'answer_timeout',
    'answer_timeout',
    'answer_timeout',
    // So far, only that no name server has answered.
    'dns_timeout',
    'answer_timeout',
  ])
})

test('gives up on unanswered TXT lookups when time is up', async () => {
  const silent = createSocket('udp4')
  silent.bind(0, '127.0.0.1')
  await once(silent, 'listening')
  onTestFinished(() => void silent.close())
  const control = new AbortController()
  const asked = once(silent, 'message')
  const records = openNetwork({ nameServers: [`127.0.0.1:${silent.address().port}`] })
    .txt('a.example', control.signal)
    .catch((error: unknown) => error)
  await asked
  const again = once(silent, 'message').then(() => 'asked again')
  control.abort()
  expect(await Promise.race([records, again])).toMatchObject({ code: 'dns_unavailable' })
  expect(getEventListeners(control.signal, 'abort')).toEqual([])
})
