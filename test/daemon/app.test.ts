import { expect, test } from 'vitest'
import { opened } from '../support/opened.ts'

const TOKEN = 'a-health-token-of-thirty-two-bytes'
const SECRET = 'a-dispatch-secret-of-thirty-two-b'
const FROM = '198.51.100.1'

test('an address of 4,096 characters is taken and one of 4,097 is not, and so are 100 and 101 header fields', async () => {
  const { ask } = opened()
  const target = (length: number) =>
    `/lessons/1?${'a'.repeat(length - 'http://web.example/lessons/1?'.length)}`
  expect((await ask(target(4096))).status).toBe(200)
  const long = await ask(target(4097), { headers: { 'X-Request-Id': 'given-by-caller-1' } })
  expect(await long.json()).toMatchObject({ code: 'uri_too_long', requestId: 'given-by-caller-1' })
  const fields = (count: number) => Array.from({ length: 2 * count }, () => 'x')
  expect((await ask('/lessons/1', { from: FROM, rawHeaders: fields(100) })).status).toBe(200)
  const headers = { Accept: 'text/html' }
  const many = await ask('/lessons/1', { from: FROM, rawHeaders: fields(101), headers })
  expect([many.status, many.headers.get('content-type')]).toEqual([431, 'text/html; charset=utf-8'])
})

test('a caller’s request id of 8 to 64 harmless characters is kept and logged, and any other replaced', async () => {
  const { ask, lines } = opened()
  for (const [id, kept] of [
    ['a'.repeat(8), true],
    ['A-Z_0.9-a'.padEnd(64, 'a'), true],
    ['a'.repeat(7), false],
    ['a'.repeat(65), false],
    ['aaaa aaaa', false],
    ['aaaaaaaa"', false],
  ] as const) {
    const answer = (await ask('/lessons/1', { headers: { 'X-Request-Id': id } })).headers.get('x-request-id')
    if (kept) expect(answer).toBe(id)
    else expect(answer).toMatch(/^[0-9a-f-]{36}$/)
    expect(lines.findLast(({ event }) => event === 'request')?.requestId).toBe(answer)
  }
})

test('polls that pass are logged for debugging only, and everything else for everybody', async () => {
  const { platform, ask, lines } = opened()
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

test('a request of this machine sees all metrics, unless it has a header of a proxy', async () => {
  // Each of a platform of its own: one lets strangers ask once a second.
  const sees = async (from: string, header = 'X-Harmless') =>
    PERSONAL.test(
      await (await opened().ask('/metrics', { headers: { [header]: '198.51.100.9' }, from })).text(),
    )
  expect([await sees('127.0.0.1'), await sees(FROM)]).toEqual([true, false])
  const proxy = 'Forwarded Via X-Forwarded-For X-Forwarded-Host X-Forwarded-Proto X-Real-IP'
  for (const header of [...proxy.split(' '), 'CF-Connecting-IP', 'True-Client-IP'])
    expect(await sees('127.0.0.1', header), header).toBe(false)
})

test('each refused secret is counted by what was given, and told but for a missing health token', async () => {
  const WITNESS_SECRET = 'a-witness-secret-of-24-and-more'
  const env = { HEALTH_DEEP_TOKEN: TOKEN, EMAIL_DISPATCH_SECRET: SECRET, WITNESS_SECRET }
  const { ask, told } = opened({ env })
  const headers = { Authorization: 'Bearer wrong' }
  await ask('/api/email/dispatch', { method: 'POST', headers })
  await ask('/api/email/dispatch', { method: 'POST' })
  await ask('/api/health?deep=1', { headers })
  await ask('/api/health?deep=1')
  await ask('/api/alerts/silence', { method: 'POST', headers })
  await ask('/status.json', { headers })
  await ask('/api/witness', { headers })
  await ask('/?details', { headers: { Authorization: `Basic ${btoa('operator:wrong')}` } })
  await ask('/?details')
  expect(told('secret_refused').map(({ secret, given }) => `${secret} ${given}`)).toEqual([
    'EMAIL_DISPATCH_SECRET wrong',
    'EMAIL_DISPATCH_SECRET none',
    'HEALTH_DEEP_TOKEN wrong',
    'EMAIL_DISPATCH_SECRET wrong',
    'HEALTH_DEEP_TOKEN wrong',
    'WITNESS_SECRET wrong',
    'HEALTH_DEEP_TOKEN wrong',
  ])
  const text = await (await ask('/metrics', { headers: { Authorization: `Bearer ${TOKEN}` } })).text()
  const count = (secret: string, given: string) =>
    new RegExp(`secrets_refused_total\\{secret="${secret}",given="${given}"\\} (\\d+)`).exec(text)?.[1]
  expect([count('dispatch', 'wrong'), count('dispatch', 'none')]).toEqual(['2', '1'])
  expect(count('witness', 'wrong')).toBe('1')
  expect([count('health', 'wrong'), count('health', 'none')]).toEqual(['3', '2'])
})

test('?deep is deep with 1 and true, and with nothing else', async () => {
  const { ask } = opened({ env: { HEALTH_DEEP_TOKEN: TOKEN } })
  const statuses = ['1', 'true', '0', 'yes', '11'].map(
    async (value) => (await ask(`/api/health?deep=${value}`)).status,
  )
  expect(await Promise.all(statuses)).toEqual([401, 401, 200, 200, 200])
  // The other services have one depth, and ask for no token.
  expect((await ask('/api/health?deep=1', { service: 'api' })).status).toBe(200)
})

test.each([
  ['application/health+json', true],
  ['Application/Health+JSON; q=0.5', true],
  ['application/json;q=0.4, application/health+json;q=0.4', true],
  ['application/json, application/health+json;q=0.9', false],
  ['application/health+json;q=0', false],
  ['*/*', false],
])('Accept: %s gets health+json: %s', async (accept, own) => {
  const response = await opened().ask('/api/health', { headers: { Accept: accept } })
  expect(response.headers.get('content-type')).toBe(`application/${own ? 'health+' : ''}json; charset=utf-8`)
})

test('leaving is answered with a page, unless a program asks for JSON without the form of the page', async () => {
  const { ask } = opened()
  for (const [body, accept, type] of [
    [null, '*/*', 'text/html; charset=utf-8'],
    [null, 'application/json', 'application/json; charset=utf-8'],
    [null, 'text/html, application/json', 'text/html; charset=utf-8'],
    ['undo=1', 'application/json', 'text/html; charset=utf-8'],
  ] as const) {
    const headers = { Accept: accept, 'Content-Type': 'application/x-www-form-urlencoded' }
    const target = '/api/email/unsubscribe?s=x.1&t=x&course=status'
    const response = await ask(target, { method: 'POST', headers, body })
    expect([response.status, response.headers.get('content-type')]).toEqual([200, type])
  }
})
