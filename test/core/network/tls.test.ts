import { readFileSync } from 'node:fs'
import { createServer as createHttpServer } from 'node:http'
import { createServer as createHttpsServer } from 'node:https'
import { type AddressInfo, createServer, type Server } from 'node:net'
import type { TLSSocket } from 'node:tls'
import { expect, onTestFinished, test } from 'vitest'
import { type GetInput, get } from '../../../src/core/network/get.ts'

const fixture = (name: string) => readFileSync(new URL(`../../fixtures/tls/${name}`, import.meta.url), 'utf8')

async function listening(server: Server, scheme = 'http') {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => void server.close())
  return `${scheme}://127.0.0.1:${(server.address() as AddressInfo).port}`
}

const ask = (url: string, input: Partial<GetInput> = {}) =>
  get({
    url: new URL(url),
    timeoutMs: 10_000,
    largestBytes: 10,
    wantsBody: () => true,
    monotonic: () => performance.now(),
    ...input,
  })

test('takes a redirect as an answer and does not follow it', async () => {
  let elsewhere = 0
  const other = await listening(
    createHttpServer((_, response) => {
      elsewhere += 1
      response.end()
    }),
  )
  const url = await listening(
    createHttpServer((_, response) => response.writeHead(302, { Location: other }).end()),
  )
  expect(await ask(url, { headers: { authorization: 'Bearer x' } })).toMatchObject({
    answered: true,
    status: 302,
  })
  expect(elsewhere).toBe(0)
})

test('requires a certificate for the host unless told otherwise, and reports its end date', async () => {
  const server = createHttpsServer(
    { key: fixture('loopback.key'), cert: fixture('loopback.crt') },
    (_, response) => response.end('x'),
  )
  const url = await listening(server, 'https')
  const network = { ca: fixture('loopback.crt') }
  const good = await ask(url, { network })
  expect(good).toMatchObject({ answered: true, body: 'x', certificateEnd: expect.any(Number) })
  expect(good.phases).toHaveProperty('tls')
  expect(good.answered && new Date(good.certificateEnd ?? 0).getUTCFullYear()).toBeGreaterThan(2000)
  expect(await ask(url)).toMatchObject({ answered: false, cause: 'tls_untrusted' })
  expect(await ask(url, { anyCertificate: true })).toMatchObject({ answered: true })
  const elsewhere = { ...network, lookup: async () => [{ address: '127.0.0.1', family: 4 }] }
  expect(await ask(url.replace('127.0.0.1', 'kiln.example'), { network: elsewhere })).toMatchObject({
    answered: false,
    cause: 'tls_wrong_name',
  })
  expect(
    await ask(
      await listening(
        createServer((socket) => void socket.on('error', () => {}).once('data', () => socket.end('no TLS'))),
        'https',
      ),
    ),
  ).toMatchObject({
    answered: false,
    cause: 'tls_failed',
  })
})

test('sends the server the requested name (SNI), never an address, and HTTP/1.1 as protocol', async () => {
  const told: unknown[] = []
  const server = createHttpsServer(
    { key: fixture('loopback.key'), cert: fixture('loopback.crt'), ALPNProtocols: ['h2', 'http/1.1'] },
    (_, response) => response.end('x'),
  )
  server.on('secureConnection', (socket: TLSSocket & { servername?: string | false }) =>
    told.push([socket.servername, socket.alpnProtocol]),
  )
  const url = await listening(server, 'https')
  const network = { lookup: async () => [{ address: '127.0.0.1', family: 4 }] }
  for (const name of ['kiln.example', '1.kiln.example', '127.0.0.1'])
    await ask(url.replace('127.0.0.1', name), { network, anyCertificate: true })
  expect(told).toEqual([
    ['kiln.example', 'http/1.1'],
    ['1.kiln.example', 'http/1.1'],
    [false, 'http/1.1'],
  ])
})
