import { once } from 'node:events'
import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http'
import { connect } from 'node:net'
import { expect, onTestFinished, test } from 'vitest'
import { nodeListener, openPlatform } from '../../src/daemon/index.ts'
import { lazyListener } from '../../src/daemon/node-listener.ts'
import { serve } from '../support/servers.ts'

/** The port of a host's own server with this listener. */
async function hosting(listener: RequestListener): Promise<string> {
  const url = await serve(listener)
  return new URL(url).port
}

/** A host's own server, with a path of its own beside the platform. */
async function host(before?: (incoming: IncomingMessage, outgoing: ServerResponse) => boolean) {
  const platform = openPlatform({ env: { RATE_LIMIT_PER_MINUTE: '2' } })
  onTestFinished(() => platform.close())
  const listener = nodeListener(platform.web)
  return hosting((incoming, outgoing) => {
    if (!before?.(incoming, outgoing)) void listener(incoming, outgoing)
  })
}

/** Bytes on a socket, and everything that comes back until the server ends it. */
function speak(port: string, text: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = connect(Number(port), '127.0.0.1', () => socket.write(text))
    let answer = ''
    socket.on('data', (chunk) => {
      answer += String(chunk)
    })
    socket.on('end', () => resolve(answer))
    socket.on('error', reject)
  })
}

test('a host’s paths stay its own, and the platform answers the rest', async () => {
  const port = await host((incoming, outgoing) => {
    if (incoming.url !== '/hello') return false
    outgoing.end('hello')
    return true
  })
  const at = `http://127.0.0.1:${port}`
  const { Request, Response } = globalThis
  expect(await (await fetch(`${at}/hello`)).text()).toBe('hello')
  expect((await fetch(`${at}/api/health`)).status).toBe(200)
  expect((await fetch(`${at}/nowhere`)).status).toBe(404)
  const head = await fetch(`${at}/api/health`, { method: 'HEAD' })
  expect([head.status, await head.text()]).toEqual([200, ''])
  expect([globalThis.Request, globalThis.Response]).toEqual([Request, Response])
})

test('clients are distinguished by the socket, as in the daemon', async () => {
  const port = await host()
  const ask = (from: string) =>
    speak(
      port,
      `GET /lessons/1 HTTP/1.1\r\nHost: web.example\r\nX-Forwarded-For: ${from}\r\nConnection: close\r\n\r\n`,
    )
  // Without a trusted proxy, all three requests count for the address of the socket.
  const statuses = []
  for (const from of ['192.0.2.1', '192.0.2.2', '192.0.2.3']) statuses.push((await ask(from)).slice(9, 12))
  expect(statuses).toEqual(['200', '200', '429'])
})

test('a malformed request gets the standard error body', async () => {
  const answer = await speak(await host(), 'GET / HTTP/1.1\r\nHost: a b\r\nConnection: close\r\n\r\n')
  expect(answer).toMatch(/^HTTP\/1\.1 400 /)
  expect(answer).toContain('"code":"bad_request"')
})

test('a check by HTTP/1.0, which names no host, is answered, as by the daemon', async () => {
  expect(await speak(await host(), 'GET /api/health HTTP/1.0\r\n\r\n')).toMatch(/^HTTP\/1\.1 200 /)
})

test('a report of a failed job whose body the host has read is refused, and does not count as a success', async () => {
  const token = 'a-dispatch-secret-of-thirty-two-bytes'
  const definition = { preset: 'base', heartbeats: { backup: { every: '1d' } } } as const
  const platform = openPlatform({ env: { EMAIL_DISPATCH_SECRET: token }, platform: definition })
  onTestFinished(() => platform.close())
  const listener = nodeListener(platform.web)
  const url = await serve(async (incoming, outgoing) => {
    if (incoming.headers['content-type'] !== undefined) await once(incoming.resume(), 'end')
    await listener(incoming, outgoing)
  })
  const beat = async (init: RequestInit) => {
    const headers = { authorization: `Bearer ${token}`, ...init.headers }
    const answer = await fetch(`${url}/api/heartbeats/backup`, { method: 'POST', ...init, headers })
    return [answer.status, await answer.json()]
  }
  const json = { 'content-type': 'application/json' }
  const refused = [400, { code: 'bad_request', message: expect.stringContaining('before the platform') }]
  const failed = '{"exitCode":1}'
  expect(await beat({ headers: json, body: failed })).toMatchObject(refused)
  // In chunks, without a length.
  const streamed = { body: new Blob([failed]).stream(), duplex: 'half' } as const
  expect(await beat({ headers: json, ...streamed })).toMatchObject(refused)
  expect(await beat({ headers: json, body: '' })).toMatchObject([200, { state: 'ok' }])
  expect(await beat({})).toMatchObject([200, { state: 'ok' }])
})

test('answers 503 if the listener cannot be loaded, and serves the next request', async () => {
  let loads = 0
  const listener = lazyListener(async () => {
    loads += 1
    if (loads === 1) throw new Error('the build is being replaced')
    return async (_, outgoing) => outgoing.end('here')
  })
  const url = `http://127.0.0.1:${await hosting((incoming, outgoing) => void listener(incoming, outgoing))}/`
  const refused = await fetch(url)
  expect([refused.status, await refused.json()]).toMatchObject([503, { code: 'unavailable' }])
  for (let n = 0; n < 2; n += 1) expect(await (await fetch(url)).text()).toBe('here')
  expect(loads).toBe(2)
})
