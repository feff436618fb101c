import { expect, test } from 'vitest'
import { emptyFolder } from '../support/folder.ts'
import { opened } from '../support/opened.ts'

const CONFIGURED = { CORS_ALLOWED_ORIGINS: 'https://www.example.com, https://app.example.com:8443' }
const ORIGIN = 'https://www.example.com'
const EVIL = 'https://evil.example'

test.each([
  ['http://localhost:3000', {}, true],
  ['http://127.0.0.1:5173', {}, true],
  ['http://[::1]:5173', {}, true],
  [ORIGIN, {}, false],
  ['http://localhost.evil.example', {}, false],
  [ORIGIN, CONFIGURED, true],
  ['https://app.example.com:8443', CONFIGURED, true],
  ['https://app.example.com', CONFIGURED, false],
  [`${ORIGIN}.evil.example`, CONFIGURED, false],
  ['http://localhost:3000', CONFIGURED, false],
  ['null', CONFIGURED, false],
  [ORIGIN, { CORS_ALLOWED_ORIGINS: '*' }, false],
] as const)('a page of %s with %o may call: %s', async (origin, env, may) => {
  const { ask } = opened({ env })
  for (const service of ['api', 'agent'] as const) {
    const { headers } = await ask('/nowhere', { service, headers: { Origin: origin } })
    expect(headers.get('access-control-allow-origin')).toBe(may ? origin : null)
    // A cache keeps it apart from the answer to another origin.
    expect(headers.get('vary')).toContain('Origin')
    expect(headers.get('access-control-expose-headers')).toBe(
      may ? 'RateLimit, RateLimit-Policy, Retry-After, X-Request-Id' : null,
    )
  }
})

test('the web service answers no other origin', async () => {
  const { headers } = await opened().ask('/nowhere', { headers: { Origin: 'http://localhost:3000' } })
  expect(headers.get('access-control-allow-origin')).toBeNull()
})

test('a browser’s preflight is answered without a body, and OPTIONS without its question is none', async () => {
  const { ask } = opened({ env: CONFIGURED })
  const preflight = async (headers: Record<string, string>) =>
    ask('/api/health', { service: 'api', method: 'OPTIONS', headers })
  const asked = { 'Access-Control-Request-Method': 'GET' }
  const response = await preflight({ Origin: ORIGIN, ...asked })
  expect(response.status).toBe(204)
  expect(response.headers.get('access-control-allow-credentials')).toBeNull()
  expect(response.headers.get('access-control-max-age')).toBe('600')
  expect((await preflight(asked)).headers.get('access-control-allow-methods')).toBeNull()
  expect((await preflight({ Origin: ORIGIN })).status).toBe(405)
})

test('scripts on the configured origins may subscribe and send events, and call nothing else of the web service', async () => {
  const { ask, post } = opened({ env: CONFIGURED })
  const preflight = (path: string, origin: string) =>
    ask(path, {
      method: 'OPTIONS',
      headers: {
        Origin: origin,
        'Access-Control-Request-Method': 'POST',
        'Access-Control-Request-Headers': 'content-type',
      },
    })
  const subscribe = '/api/email/subscribe'
  const allowed = await preflight(subscribe, ORIGIN)
  expect(allowed.status).toBe(204)
  expect(Object.fromEntries(allowed.headers)).toMatchObject({
    'access-control-allow-origin': ORIGIN,
    'access-control-allow-methods': 'GET, POST',
    'access-control-allow-headers': 'Authorization, Content-Type, X-Request-Id',
    vary: 'Origin',
  })
  const answered = ({ status, headers }: Response) => [status, headers.get('access-control-allow-origin')]
  // Refusals can be read as well.
  for (const [email, status] of [
    ['ada@example.com', 202],
    ['ada', 400],
  ] as const)
    expect(answered(await post(`${subscribe}?x=1`, { email }, { Origin: ORIGIN }))).toEqual([status, ORIGIN])
  const tooLong = `${subscribe}?x=${'1'.repeat(5000)}`
  expect(answered(await post(tooLong, {}, { Origin: ORIGIN }))).toEqual([414, ORIGIN])
  const away = opened({ env: { ...CONFIGURED, STORE_URL: `sqlite:${await emptyFolder()}` } })
  const asked = away.post(subscribe, { email: 'ada@example.com' }, { Origin: ORIGIN })
  expect(answered(await asked)).toEqual([503, ORIGIN])
  for (const from of [EVIL, 'null', 'http://localhost:3000'])
    expect(answered(await preflight(subscribe, from))).toEqual([204, null])
  const events = [{ kind: 'page.viewed', at: Date.now(), properties: {} }]
  expect((await preflight('/api/analytics', ORIGIN)).status).toBe(204)
  expect(answered(await post('/api/analytics', { events }, { Origin: ORIGIN }))).toEqual([202, ORIGIN])
  for (const path of ['/api/email/dispatch', '/api/email/unsubscribe', '/status.json'])
    expect(answered(await preflight(path, ORIGIN))).toEqual([405, null])
})
