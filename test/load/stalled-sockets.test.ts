import { connect, type Socket } from 'node:net'
import { expect, onTestFinished, test } from 'vitest'
import { startDaemon } from '../support/cli.ts'
import { emptyFolder } from '../support/folder.ts'

const EACH = 250
const WITHIN_MS = 12_000

const KINDS = {
  'says nothing': '',
  'stops in the header': 'GET /api/health HTTP/1.1\r\nHost: x\r\nX-Slow: a',
  'stops in the body':
    'POST /api/email/subscribe HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n{"email":',
  'stops in a chunk':
    'POST /api/email/subscribe HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\nff\r\n{"em',
} as const

const UNLIMITED = { RATE_LIMIT_PER_MINUTE: '1000000', LOG_LEVEL: 'warn' }

/** The web service of a daemon that ends with the test. */
async function openDaemon(env: Record<string, string> = {}) {
  const folder = await emptyFolder()
  const daemon = await startDaemon(['--data', folder, '--no-schedule'], { cwd: folder, env })
  onTestFinished(async () => void (await daemon.stop('SIGKILL')))
  const { web } = daemon.urls
  return { web, port: Number(new URL(web).port) }
}

test('1,000 stalled sockets of four kinds are closed within 12 s, and health is served all the while', {
  timeout: 60_000,
}, async () => {
  const { web, port } = await openDaemon(UNLIMITED)

  const began = performance.now()
  const open = new Set<Socket>()
  const late: string[] = []
  for (const [kind, bytes] of Object.entries(KINDS)) {
    for (let n = 0; n < EACH; n += 1) {
      const socket = connect(port, '127.0.0.1', () => void (bytes && socket.write(bytes)))
      open.add(socket)
      // Read, so that the end of the stream is seen; what is answered does not matter here.
      socket.resume()
      socket.on('error', () => {})
      socket.on('close', () => {
        open.delete(socket)
        const took = performance.now() - began
        if (took > WITHIN_MS) late.push(`${kind}: ${Math.round(took)} ms`)
      })
    }
  }
  let slowest = 0
  let asked = 0
  while (open.size > 0 && performance.now() - began < 2 * WITHIN_MS) {
    const sent = performance.now()
    const { status } = await fetch(`${web}/api/health`)
    expect(status).toBe(200)
    slowest = Math.max(slowest, performance.now() - sent)
    asked += 1
  }
  expect(open.size).toBe(0)
  expect(late).toEqual([])
  expect(asked).toBeGreaterThan(100)
  // A bound for a machine that does other things too; on a quiet one it is some tens of milliseconds.
  expect(slowest).toBeLessThan(3000)
})

test('closes an idle keep-alive connection on time, even if header bytes trickle in', {
  timeout: 30_000,
}, async () => {
  const { port } = await openDaemon()
  const life = (first: string, trickle?: string) =>
    new Promise<number>((resolve) => {
      const began = performance.now()
      const socket = connect(port, '127.0.0.1', () => socket.write(first))
      const timer = trickle === undefined ? undefined : setInterval(() => socket.write(trickle), 500)
      socket.resume().on('error', () => {})
      socket.on('close', () => {
        clearInterval(timer)
        resolve(performance.now() - began)
      })
    })
  const lives = await Promise.all([
    life('GET /api/health HTTP/1.1\r\nHost: x\r\n\r\n'),
    life('GET /api/health HTTP/1.1\r\nHost: x\r\n', 'X-Slow: a\r\n'),
    life(
      'POST /api/email/subscribe HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n',
      '1\r\n \r\n',
    ),
  ])
  for (const ms of lives) expect(ms).toBeLessThan(WITHIN_MS)
})

test('disconnects a client that requests much and reads nothing, and frees its memory', {
  timeout: 60_000,
}, async () => {
  const { web, port } = await openDaemon(UNLIMITED)
  const ask = 'GET /openapi.json HTTP/1.1\r\nHost: x\r\n\r\n'
  const began = performance.now()
  const lives = await Promise.all(
    Array.from(
      { length: 20 },
      () =>
        new Promise<number>((resolve) => {
          const socket = connect(port, '127.0.0.1', () => socket.write(ask.repeat(30)))
          socket.pause()
          // Its own side notices the end only when it writes.
          const probe = setInterval(() => socket.write('\r\n'), 250)
          socket.on('error', () => {})
          socket.on('close', () => {
            clearInterval(probe)
            resolve(performance.now() - began)
          })
        }),
    ),
  )
  // A bound for a machine that does other things too.
  for (const ms of lives) expect(ms).toBeLessThan(40_000)
  expect((await fetch(`${web}/api/health`)).status).toBe(200)
})
