import { getEventListeners, once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { createServer, type Socket } from 'node:net'
import type { TLSSocket } from 'node:tls'
import { expect, onTestFinished, test, vi } from 'vitest'
import { connectFirst } from '../../../src/core/network/connect.ts'
import { type GetInput, get } from '../../../src/core/network/get.ts'
import { proxiedFetch } from '../../../src/core/network/proxy.ts'
import { blackhole } from '../../support/blackhole.ts'
import { serveTcp, serveTls } from '../../support/servers.ts'

/** A server that says the same to everybody, and keeps what it is asked and by which connections. */
async function saying(answer: string | ((socket: Socket) => void)) {
  const asked: string[] = []
  const sockets: Socket[] = []
  const url = await serveTcp((socket) => {
    sockets.push(socket)
    socket.on('error', () => {})
    socket.on('data', (data) => {
      asked.push(String(data))
      if (typeof answer === 'string') socket.write(answer)
      else answer(socket)
    })
  })
  return { url: url.replace(/^tcp:/, 'http:'), asked, sockets }
}

const of = (url: string, input: Partial<GetInput> = {}) =>
  get({
    url: new URL(url),
    timeoutMs: 5_000,
    largestBytes: 10,
    wantsBody: () => true,
    monotonic: () => performance.now(),
    ...input,
  })

const ok = (body: string, headers = `Content-Length: ${body.length}\r\n`) =>
  `HTTP/1.1 200 OK\r\n${headers}\r\n${body}`

test('a user name in the address is sent as Basic authorization, by either client, and never in the address', async () => {
  const { url, asked } = await saying(ok('yes'))
  const address = url.replace('//', '//ada:p%40ss@')
  // A percent sign of its own is one, also beside codes.
  await of(url.replace('//', '//ada:50%off%23@'))
  expect(asked.splice(0).join('')).toContain(`Basic ${Buffer.from('ada:50%off#').toString('base64')}\r\n`)
  await of(`${address}/a`)
  const answer = await proxiedFetch(`${address}/b`, { headers: { 'X-One': '1' } })
  expect([answer.status, await answer.text()]).toEqual([200, 'yes'])
  for (const text of asked) {
    expect(text).toMatch(/^GET \/[ab] HTTP/)
    expect(text).toMatch(/\r\nauthorization: Basic YWRhOnBAc3M=\r\n/i)
  }
  expect(asked).toHaveLength(2)
})

test('it sends a single GET that declines compression, with the given headers', async () => {
  const { url, asked } = await saying(ok('yes'))
  const { host } = new URL(url)
  expect(
    await of(`${url}/a/b?c=d&e`, { headers: { authorization: 'Bearer x', 'user-agent': 'me' } }),
  ).toMatchObject({
    answered: true,
    status: 200,
    body: 'yes',
    certificateEnd: undefined,
  })
  const [line, ...headers] = asked.join('').trimEnd().split('\r\n')
  expect(line).toBe('GET /a/b?c=d&e HTTP/1.1')
  expect(headers.map((one) => one.toLowerCase())).toEqual(
    expect.arrayContaining([
      `host: ${host}`,
      'accept-encoding: identity',
      'authorization: bearer x',
      'user-agent: me',
    ]),
  )
  await of(url)
  expect(asked.at(-1)?.toLowerCase()).toContain('\r\nuser-agent: platformctl\r\n')
})

test.each([
  [ok('0123456789'), '0123456789'],
  [ok('0123456789x'), 'too_large'],
  [`HTTP/1.1 200 OK\r\nContent-Length: 11\r\n\r\n`, 'too_large'],
  [ok('a\r\n0123456789\r\n0\r\n\r\n', 'Transfer-Encoding: chunked\r\n'), '0123456789'],
  [ok('b\r\n0123456789x\r\n0\r\n\r\n', 'Transfer-Encoding: chunked\r\n'), 'too_large'],
  [ok('yes', 'Content-Length: 3\r\nContent-Encoding: identity\r\n'), 'yes'],
  [ok('', `X: ${'x'.repeat(15 * 1024)}\r\nContent-Length: 0\r\n`), ''],
  [ok('', `X: ${'x'.repeat(16 * 1024)}\r\nContent-Length: 0\r\n`), 'headers_too_large'],
])('reads at most ten bytes of a response: %#', async (answer, result) => {
  const { url } = await saying(answer)
  const got = await of(url)
  expect(got.answered ? got.body : got.cause).toBe(result)
})

test('sends the server the requested name (SNI), never an address, and HTTP/1.1 as protocol', async () => {
  const fixture = (name: string) => readFile(new URL(`../../fixtures/tls/${name}`, import.meta.url), 'utf8')
  const [key, cert] = [await fixture('loopback.key'), await fixture('loopback.crt')]
  const told: unknown[] = []
  const url = await serveTls({ key, cert, ALPNProtocols: ['h2', 'http/1.1'] }, ({ socket }, response) => {
    const { servername, alpnProtocol } = socket as TLSSocket & { servername?: string | false }
    told.push([servername, alpnProtocol])
    response.end('x')
  })
  const network = { lookup: async () => [{ address: '127.0.0.1', family: 4 }] }
  for (const name of ['kiln.example', '1.kiln.example', '127.0.0.1'])
    await of(url.replace('127.0.0.1', name), { network, anyCertificate: true })
  expect(told).toEqual([
    ['kiln.example', 'http/1.1'],
    ['1.kiln.example', 'http/1.1'],
    [false, 'http/1.1'],
  ])
})

test('closes the connection without waiting for an unwanted body', async () => {
  const { url, sockets } = await saying('HTTP/1.1 404 Not Found\r\nContent-Length: 5\r\n\r\n')
  const asked: number[] = []
  const got = await of(url, {
    wantsBody: (status) => {
      asked.push(status)
      return false
    },
  })
  expect(got).toMatchObject({ answered: true, status: 404, body: '' })
  expect(asked).toEqual([404])
  const [socket] = sockets
  if (socket && !socket.closed) await once(socket, 'close')
})

test('reports the Date of an answer with its host, and NaN without a Date', async () => {
  const heard: [string, number][] = []
  const network = { onDate: (host: string, at: number) => void heard.push([host, at]) }
  const { url } = await saying(ok('yes', 'Content-Length: 3\r\nDate: Sun, 22 Nov 2026 08:00:00 GMT\r\n'))
  await of(url, { network })
  await of((await saying(ok('yes'))).url, { network })
  expect(heard).toEqual([
    ['127.0.0.1', Date.UTC(2026, 10, 22, 8)],
    ['127.0.0.1', Number.NaN],
  ])
})

test.each<[string, string, (stop: () => void) => Promise<Partial<GetInput> & { readonly url: URL }>]>([
  [
    'the name',
    'dns_timeout',
    async (stop) => ({
      url: new URL('http://slow.example'),
      network: {
        lookup: () => {
          stop()
          return new Promise(() => {})
        },
      },
    }),
  ],
  [
    'the connection',
    'connect_timeout',
    async () => ({ url: new URL(`http://127.0.0.1:${await blackhole('127.0.0.1')}`) }),
  ],
  [
    'the encryption',
    'tls_timeout',
    async (stop) => ({ url: new URL((await saying(stop)).url.replace('http:', 'https:')) }),
  ],
  ['the answer', 'answer_timeout', async (stop) => ({ url: new URL((await saying(stop)).url) })],
  [
    'the body',
    'body_timeout',
    async (stop) => ({
      url: new URL((await saying('HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nab')).url),
      wantsBody: () => {
        stop()
        return true
      },
    }),
  ],
])('a signal while %s is waited for ends the request as its time-out would: %s', async (_, cause, start) => {
  const over = new AbortController()
  const input = await start(() => setImmediate(() => over.abort()))
  const asked = of(input.url.href, { ...input, signal: over.signal })
  // A connection that nobody accepts shows nothing else.
  if (cause === 'connect_timeout') setTimeout(() => over.abort(), 20)
  expect(await asked).toMatchObject({ answered: false, cause })
})

test('sends no request if the signal is already aborted', async () => {
  const { url, asked } = await saying(ok('yes'))
  expect(await of(url, { signal: AbortSignal.abort() })).toMatchObject({
    answered: false,
    cause: 'dns_timeout',
  })
  await of(url)
  expect(asked).toHaveLength(1)
})

test('when a request is over its timer is gone, its signal has no listener, and its connection is closed', async () => {
  const timers = () => process.getActiveResourcesInfo().filter((one) => one === 'Timeout').length
  const { url, sockets } = await saying(ok('yes'))
  const stop = new AbortController()
  let listeners = 0
  const { addEventListener, removeEventListener } = stop.signal
  stop.signal.addEventListener = (...all: Parameters<typeof addEventListener>) => {
    listeners += 1
    addEventListener.apply(stop.signal, all)
  }
  stop.signal.removeEventListener = (...all: Parameters<typeof removeEventListener>) => {
    listeners -= 1
    removeEventListener.apply(stop.signal, all)
  }
  const before = timers()
  for (let n = 0; n < 20; n += 1) await of(url, { timeoutMs: 1_000_000, signal: stop.signal })
  expect(timers() - before).toBeLessThan(10)
  expect(listeners).toBe(0)
  await Promise.all(sockets.map((socket) => socket.closed || once(socket, 'close')))
})

test('the times of the phases are those between them, and of a phase that did not take place there is none', async () => {
  const { url } = await saying(ok('yes'))
  let now = 0
  const monotonic = () => {
    now += 10.04
    return now
  }
  const { phases } = await of(url, { monotonic })
  // An address needs no name server.
  expect(phases).toEqual({ tcp: 10, firstByte: 10, total: 40.2 })
  const named = await of(url.replace('127.0.0.1', 'www.example.com'), {
    monotonic,
    network: { lookup: async () => [{ address: '127.0.0.1', family: 4 }] },
  })
  expect(named.phases).toEqual({ dns: 10, tcp: 10, firstByte: 10, total: 40.2 })
})

test('tries a second address after a quarter of a second of silence, and drops the first when that one accepts', async () => {
  const port = await blackhole('127.0.0.2')
  const server = createServer().listen(port, '127.0.0.1')
  onTestFinished(() => void server.close())
  await once(server, 'listening')
  // Connections that the kernel still attempts to the port, on systems that list them.
  const trying = new RegExp(`:${port.toString(16).toUpperCase().padStart(4, '0')} 02 `)
  const attempts = async () =>
    (await readFile('/proc/self/net/tcp', 'utf8').catch(() => ''))
      .split('\n')
      .filter((line) => trying.test(line)).length
  const before = await attempts()
  const stop = new AbortController()
  const began = performance.now()
  const addresses = ['127.0.0.2', '127.0.0.1'].map((address) => ({ address, family: 4 }))
  const socket = await connectFirst(addresses, port, stop.signal)
  expect(socket.remoteAddress).toBe('127.0.0.1')
  expect(performance.now() - began).toBeGreaterThan(240)
  socket.destroy()
  // The attempt that lost is ended too.
  await expect.poll(attempts).toBe(before)
  // So is one that its caller gives up.
  void connectFirst(addresses.slice(0, 1), port, stop.signal)
  await attempts()
  stop.abort()
  await expect.poll(attempts).toBe(before)
})

test('moves on at once from an address that refuses, and reports a refusal before other faults if all fail', async () => {
  const { url } = await saying(ok(''))
  const port = Number(new URL(url).port)
  const to = (...all: string[]) => {
    const addresses = all.map((address) => ({ address, family: 4 }))
    return connectFirst(addresses, port, new AbortController().signal)
  }
  const socket = await to('127.0.0.9', '127.0.0.1')
  expect(socket.remoteAddress).toBe('127.0.0.1')
  socket.destroy()
  await expect(to('127.0.0.9', '255.255.255.255')).rejects.toMatchObject({ code: 'ECONNREFUSED' })
  await expect(to()).rejects.toMatchObject({ code: 'ENOTFOUND' })
})

test.each(['http:', 'https:'])(
  'a %s request that is ended while it waits closes its connection',
  async (scheme) => {
    const over = new AbortController()
    const { url, sockets } = await saying(() => over.abort())
    expect(await of(url.replace('http:', scheme), { signal: over.signal })).toMatchObject({ answered: false })
    expect(sockets).toHaveLength(1)
    await Promise.all(sockets.map((socket) => socket.closed || once(socket, 'close')))
  },
)

test('a connection leaves no timer and no listener behind, whether it succeeds or not', async () => {
  const { url, sockets } = await saying(ok(''))
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
  onTestFinished(() => void vi.useRealTimers())
  const { signal } = new AbortController()
  const addresses = ['127.0.0.1', '127.0.0.1'].map((address) => ({ address, family: 4 }))
  const socket = await connectFirst(addresses, Number(new URL(url).port), signal)
  expect(vi.getTimerCount()).toBe(0)
  expect(getEventListeners(signal, 'abort')).toEqual([])
  socket.destroy()
  await expect(connectFirst(addresses, 1, signal)).rejects.toMatchObject({ code: 'ECONNREFUSED' })
  expect(vi.getTimerCount()).toBe(0)
  expect(getEventListeners(signal, 'abort')).toEqual([])
  expect(sockets).toHaveLength(1)
})
