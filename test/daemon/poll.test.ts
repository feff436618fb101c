import { connect } from 'node:net'
import { expect, onTestFinished, test } from 'vitest'
import { createHealth } from '../../src/core/health/runner.ts'
import { silentLog, systemClock } from '../../src/core/host.ts'
import { createPoll } from '../../src/daemon/http/poll.ts'
import { listen } from '../../src/daemon/listen.ts'
import { openLearning } from '../support/learning.ts'

/** One service behind two listeners: with the short way for polls, and without it. */
async function both() {
  const platform = openLearning({ env: { HEALTH_DEEP_TOKEN: 'a-health-token-of-thirty-two-bytes' } })
  const [short, long] = [await listen('127.0.0.1', 0), await listen('127.0.0.1', 0)]
  let taken = 0
  short.serve(platform.api, (incoming, outgoing, beforeAnswer) => {
    const ours = platform.services.get('api')?.poll(incoming, outgoing, beforeAnswer) === true
    if (ours) taken += 1
    return ours
  })
  long.serve(platform.api)
  onTestFinished(async () => {
    await short.close()
    await long.close()
    await platform.close()
  })
  return { short, long, taken: () => taken }
}

/** Bytes in, status line, headers and body out. */
function raw(
  port: number,
  request: string,
): Promise<{ status: string; headers: Map<string, string>; body: string }> {
  return new Promise((resolve, reject) => {
    const socket = connect(port, '127.0.0.1', () => socket.write(request))
    let text = ''
    socket.setEncoding('utf8').on('data', (chunk) => {
      text += chunk
    })
    socket.on('error', reject).on('close', () => {
      const [head = '', body = ''] = text.split('\r\n\r\n')
      const [status = '', ...fields] = head.split('\r\n')
      const headers = fields.map((field) =>
        field
          .split(/: (.*)/s)
          .slice(0, 2)
          .map((part, index) => (index === 0 ? part.toLowerCase() : part)),
      )
      resolve({ status, headers: new Map(headers as [string, string][]), body })
    })
  })
}

const get = (fields: readonly string[] = [], target = '/api/health', method = 'GET') =>
  [`${method} ${target} HTTP/1.1`, 'Host: 127.0.0.1', 'Connection: close', ...fields, '', ''].join('\r\n')

test('a poll gets the same answer on the short way and on the long one, whatever it asks', async () => {
  const { short, long, taken } = await both()
  for (const [what, request, isPoll] of [
    ['a bare poll', get(), true],
    ['a monitor', get(['Accept: */*', 'User-Agent: kube-probe/1.31', 'Accept-Encoding: gzip']), true],
    ['an id of the caller’s', get(['X-Request-Id: 0123456789abcdef']), true],
    ['an id that is none', get(['X-Request-Id: <b>']), true],
    ['a health client', get(['Accept: application/health+json']), false],
    ['a browser', get(['Accept: text/html']), false],
    ['another origin', get(['Origin: http://localhost:3000']), false],
    ['a token', get(['Authorization: Bearer x']), false],
    ['a query', get([], '/api/health?deep=1'), false],
    ['HEAD', get([], '/api/health', 'HEAD'), false],
    ['POST', get(['Content-Length: 0'], '/api/health', 'POST'), false],
    ['a body', `${get(['Content-Length: 2'])}{}`, false],
    ['two hosts', get(['Host: other.example']), false],
    ['a host that is none', 'GET /api/health HTTP/1.1\r\nHost: a b\r\nConnection: close\r\n\r\n', false],
    ['no host', 'GET /api/health HTTP/1.1\r\nConnection: close\r\n\r\n', false],
    ['HTTP/1.0', 'GET /api/health HTTP/1.0\r\nHost: a\r\n\r\n', false],
    ['an unknown field', get(['X-Custom: 1']), false],
  ] as const) {
    const before = taken()
    const [one, other] = [await raw(short.port, request), await raw(long.port, request)]
    expect(taken() - before, what).toBe(isPoll ? 1 : 0)
    expect(one.status, what).toBe(other.status)
    const settled = ({ headers }: typeof one) =>
      [...headers]
        .filter(([name]) => !['date', 'content-length'].includes(name))
        .map(([name, value]) =>
          name === 'x-request-id' && !request.includes(value) ? [name, 'new'] : [name, value],
        )
        .sort()
    expect(settled(one), what).toEqual(settled(other))
    const form = (body: string) =>
      body.replace(/"(?:time|requestId)":"[^"]*"/g, '').replace(/"(?:latencyMs|observedValue)":[\d.]+/g, '')
    expect(form(one.body), what).toBe(form(other.body))
  }
})

test('polls during a run share the next one, and no answer is older than its request', async () => {
  const finish: (() => void)[] = []
  const health = createHealth({
    service: 'web',
    probes: [
      {
        name: 'slow',
        run: ({ deep }) =>
          new Promise((resolve) => finish.push(() => resolve({ state: 'ok', checked: deep }))),
      },
    ],
    clock: systemClock,
    build: undefined,
    startedAt: 0,
  })
  const listener = await listen('127.0.0.1', 0)
  onTestFinished(() => listener.close())
  let asked = 0
  const poll = createPoll({
    service: { name: 'web', health: '/api/health' },
    health,
    clock: systemClock,
    log: silentLog,
    metrics: { answered: () => {} },
  })
  listener.serve({ fetch: async () => new Response('the long way') }, (...request) => {
    asked += 1
    return poll(...request)
  })
  const first = raw(listener.port, get())
  await expect.poll(() => finish.length).toBe(1)
  const rest = Promise.all(Array.from({ length: 100 }, () => raw(listener.port, get())))
  await expect.poll(() => asked).toBe(101)
  finish[0]?.()
  expect((await first).status).toBe('HTTP/1.1 200 OK')
  // Nothing live is tried for a poll.
  expect(JSON.parse((await first).body)).toMatchObject({ probes: { slow: { checked: false } } })
  await expect.poll(() => finish.length).toBe(2)
  finish[1]?.()
  expect(new Set((await rest).map(({ status }) => status))).toEqual(new Set(['HTTP/1.1 200 OK']))
  expect(finish).toHaveLength(2)
})

test('a poll of a service that fails has its whole body, whatever its reasons hold, and is not as quiet as others', async () => {
  const said: string[] = []
  const note = (level: string) => (event: string) => void said.push(`${level} ${event}`)
  const reason = 'läuft nicht: 5 €'
  let state: 'ok' | 'failing' = 'ok'
  const probes = [{ name: 'kiln', run: async () => ({ state, checked: true, reason }) }]
  const poll = createPoll({
    service: { name: 'web', health: '/api/health' },
    health: createHealth({ service: 'web', probes, clock: systemClock, build: undefined, startedAt: 0 }),
    clock: systemClock,
    log: { ...silentLog, debug: note('debug'), info: note('info') },
    metrics: { answered: () => {} },
  })
  const listener = await listen('127.0.0.1', 0)
  onTestFinished(() => listener.close())
  listener.serve({ fetch: async () => new Response('the long way') }, poll)
  await raw(listener.port, get())
  state = 'failing'
  const { status, headers, body } = await raw(listener.port, get())
  expect([status, JSON.parse(body).probes.kiln.reason]).toEqual(['HTTP/1.1 503 Service Unavailable', reason])
  expect(headers.get('content-length')).toBe(String(Buffer.byteLength(body)))
  expect(said).toEqual(['debug request', 'info request'])
})

test('once the daemon stops, a poll ends its connection', async () => {
  const { short } = await both()
  short.drain()
  const answer = await raw(short.port, get().replace('Connection: close\r\n', ''))
  expect(answer.headers.get('connection')).toBe('close')
})
