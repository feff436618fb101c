import { expect, onTestFinished, test } from 'vitest'
import type { Log } from '../../src/core/host.ts'
import { openLearning } from '../support/learning.ts'

const TOKEN = 'a-health-token-of-thirty-two-bytes'
const SECRET = 'a-dispatch-secret-of-thirty-two-b'

/** A web service, and each line that it logged with its level. */
function service(env: Record<string, string> = {}) {
  const lines: { readonly level: string; readonly event: string; readonly [field: string]: unknown }[] = []
  const at =
    (level: string): Log['info'] =>
    (event, _, fields) =>
      void lines.push({ level, event, ...fields })
  const platform = openLearning({
    env,
    log: { debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error') },
  })
  onTestFinished(() => platform.close())
  const ask = (
    target: string,
    headers: Record<string, string> = {},
    { from = '198.51.100.1', rawHeaders = [] as string[], method = 'GET', body = null as string | null } = {},
  ) =>
    platform.web.fetch(new Request(`http://web.example${target}`, { headers, method, body }), {
      incoming: { rawHeaders, socket: { remoteAddress: from } },
    })
  return { platform, ask, lines }
}

test('an address of 4,096 characters is taken and one of 4,097 is not, and so are 100 and 101 header fields', async () => {
  const { ask } = service()
  const target = (length: number) =>
    `/lessons/1?${'a'.repeat(length - 'http://web.example/lessons/1?'.length)}`
  expect((await ask(target(4096))).status).toBe(200)
  const long = await ask(target(4097), { 'X-Request-Id': 'given-by-caller-1' })
  expect(await long.json()).toMatchObject({ code: 'uri_too_long', requestId: 'given-by-caller-1' })
  const fields = (count: number) => Array.from({ length: 2 * count }, () => 'x')
  expect((await ask('/lessons/1', {}, { rawHeaders: fields(100) })).status).toBe(200)
  const many = await ask('/lessons/1', { Accept: 'text/html' }, { rawHeaders: fields(101) })
  expect([many.status, many.headers.get('content-type')]).toEqual([431, 'text/html; charset=utf-8'])
})

test.each([
  ['a'.repeat(8), true],
  ['a'.repeat(64), true],
  ['A-Z_0.9-a', true],
  ['a'.repeat(7), false],
  ['a'.repeat(65), false],
  ['aaaa aaaa', false],
  ['aaaaaaaa"', false],
])('the request id %s of a caller is kept: %s', async (id, kept) => {
  const { ask, lines } = service()
  const answer = (await ask('/lessons/1', { 'X-Request-Id': id })).headers.get('x-request-id')
  if (kept) expect(answer).toBe(id)
  else expect(answer).toMatch(/^[0-9a-f-]{36}$/)
  expect(lines.find(({ event }) => event === 'request')?.requestId).toBe(answer)
})

test('polls that pass are logged for debugging only, and everything else for everybody', async () => {
  const { platform, ask, lines } = service()
  const logged = async (target: string) => {
    lines.length = 0
    const { status } = await ask(target)
    const line = lines.find(({ event }) => event === 'request')
    return `${line?.level} ${line?.route} ${line?.status === status}`
  }
  expect(await logged('/api/health')).toBe('debug /api/health true')
  expect(await logged('/metrics')).toBe('debug /metrics true')
  expect(await logged('/lessons/1')).toBe('info /lessons/:day true')
  expect(await logged('/canary')).toBe('info (none) true')
  platform.announceStop()
  expect(await logged('/api/health')).toBe('info /api/health true')
})

const PERSONAL = /^platformctl_dispatches_total/m

test.each([
  ['nothing', {}, true],
  ...[
    'Forwarded',
    'Via',
    'X-Forwarded-For',
    'X-Forwarded-Host',
    'X-Forwarded-Proto',
    'X-Real-IP',
    'CF-Connecting-IP',
    'True-Client-IP',
  ].map((name) => [name, { [name]: '198.51.100.9' }, false] as const),
] as const)('with %s of a proxy a request of this machine is its own', async (_, headers, local) => {
  const { ask } = service()
  const text = async (from: string) => (await ask('/metrics', headers, { from })).text()
  expect(PERSONAL.test(await text('127.0.0.1'))).toBe(local)
  expect(PERSONAL.test(await text('198.51.100.1'))).toBe(false)
})

test('with the health token everybody sees all metrics, and a wrong token is refused only where one is set', async () => {
  const { ask } = service({ HEALTH_DEEP_TOKEN: TOKEN })
  const right = await ask('/metrics', { Authorization: `Bearer ${TOKEN}` })
  expect(PERSONAL.test(await right.text())).toBe(true)
  expect((await ask('/metrics', { Authorization: 'Bearer wrong' })).status).toBe(401)
  const open = await service().ask('/metrics', { Authorization: 'Bearer wrong' })
  expect(open.status).toBe(200)
  expect(PERSONAL.test(await open.text())).toBe(false)
})

test('each refused secret is counted by what was given, and told but for a missing health token', async () => {
  const { ask, lines } = service({ HEALTH_DEEP_TOKEN: TOKEN, EMAIL_DISPATCH_SECRET: SECRET })
  const wrong = { Authorization: 'Bearer wrong' }
  const post = { method: 'POST' }
  await ask('/api/email/dispatch', wrong, post)
  await ask('/api/email/dispatch', {}, post)
  await ask('/api/health?deep=1', wrong)
  await ask('/api/health?deep=1')
  await ask('/api/alerts/silence', wrong, post)
  const told = lines.filter(({ event }) => event === 'secret_refused')
  expect(told.map(({ secret, given }) => `${secret} ${given}`)).toEqual([
    'EMAIL_DISPATCH_SECRET wrong',
    'EMAIL_DISPATCH_SECRET none',
    'HEALTH_DEEP_TOKEN wrong',
    'EMAIL_DISPATCH_SECRET wrong',
  ])
  const text = await (await ask('/metrics', { Authorization: `Bearer ${TOKEN}` })).text()
  const count = (secret: string, given: string) =>
    new RegExp(`secrets_refused_total\\{secret="${secret}",given="${given}"\\} (\\d+)`).exec(text)?.[1]
  expect([count('dispatch', 'wrong'), count('dispatch', 'none')]).toEqual(['2', '1'])
  expect([count('health', 'wrong'), count('health', 'none')]).toEqual(['1', '1'])
})

test.each([
  ['1', 401],
  ['true', 401],
  ['0', 200],
  ['yes', 200],
  ['11', 200],
])('?deep=%s is answered with %d without the token', async (value, status) => {
  const { ask } = service({ HEALTH_DEEP_TOKEN: TOKEN })
  expect((await ask(`/api/health?deep=${value}`)).status).toBe(status)
})

test.each([
  ['application/health+json', true],
  ['Application/Health+JSON; q=0.5', true],
  ['application/json, application/health+json', true],
  ['application/json;q=0.4, application/health+json;q=0.4', true],
  ['application/json, application/health+json;q=0.9', false],
  ['application/health+json;q=0', false],
  ['*/*', false],
  ['', false],
])('Accept: %s gets health+json: %s', async (accept, own) => {
  const response = await service().ask('/api/health', { Accept: accept })
  expect(response.headers.get('content-type')).toBe(`application/${own ? 'health+' : ''}json; charset=utf-8`)
})

test.each([
  [undefined, 'text/html', 'text/html; charset=utf-8'],
  [undefined, '*/*', 'text/html; charset=utf-8'],
  [undefined, 'application/json', 'application/json; charset=utf-8'],
  ['undo=1', 'application/json', 'text/html; charset=utf-8'],
])('leaving with the body %s, asked for %s, is answered with %s', async (body, accept, type) => {
  const headers = { Accept: accept, 'Content-Type': 'application/x-www-form-urlencoded' }
  const { ask } = service()
  const response = await ask('/api/email/unsubscribe?s=x.1&t=x&course=status', headers, {
    method: 'POST',
    body: body ?? null,
  })
  expect([response.status, response.headers.get('content-type')]).toEqual([200, type])
})
