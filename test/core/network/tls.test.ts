import { readFileSync } from 'node:fs'
import { createServer as createHttpsServer } from 'node:https'
import type { AddressInfo, Server } from 'node:net'
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
