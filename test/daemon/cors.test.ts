import { expect, onTestFinished, test } from 'vitest'
import { openPlatform } from '../../src/daemon/index.ts'

async function allowed(
  origin: string,
  env: Record<string, string>,
  service: 'web' | 'api' | 'agent' = 'api',
) {
  const platform = openPlatform({ env })
  onTestFinished(() => platform.close())
  const response = await platform[service].fetch(
    new Request('http://api.example/nowhere', { headers: { Origin: origin } }),
  )
  return response.headers.get('access-control-allow-origin')
}

const CONFIGURED = { CORS_ALLOWED_ORIGINS: 'https://www.example.com, https://app.example.com:8443' }

test.each([
  ['http://localhost:3000', {}, true],
  ['http://127.0.0.1:5173', {}, true],
  ['https://www.example.com', {}, false],
  ['http://localhost.evil.example', {}, false],
  ['https://www.example.com', CONFIGURED, true],
  ['https://app.example.com:8443', CONFIGURED, true],
  ['https://app.example.com', CONFIGURED, false],
  ['https://www.example.com.evil.example', CONFIGURED, false],
  ['http://localhost:3000', CONFIGURED, false],
  ['null', CONFIGURED, false],
  ['https://www.example.com', { CORS_ALLOWED_ORIGINS: '*' }, false],
] as const)('a page of %s with %o may call: %s', async (origin, env, may) => {
  expect(await allowed(origin, env)).toBe(may ? origin : null)
})

test.each(['https://www.example.com', 'https://evil.example'])(
  'an answer to %s is kept by no cache for another origin',
  async (origin) => {
    const platform = openPlatform({ env: CONFIGURED })
    onTestFinished(() => platform.close())
    const ask = new Request('http://api.example/nowhere', { headers: { Origin: origin } })
    expect((await platform.api.fetch(ask)).headers.get('vary')).toContain('Origin')
  },
)

test('the web service answers no other origin', async () => {
  expect(await allowed('http://localhost:3000', {}, 'web')).toBeNull()
})

test('a browser’s preflight is answered without a body', async () => {
  const platform = openPlatform({ env: CONFIGURED })
  onTestFinished(() => platform.close())
  const ask = new Request('http://api.example/api/health', {
    method: 'OPTIONS',
    headers: { Origin: 'https://www.example.com', 'Access-Control-Request-Method': 'GET' },
  })
  const response = await platform.api.fetch(ask)
  expect(response.status).toBe(204)
  expect(response.headers.get('access-control-allow-credentials')).toBeNull()
})

test('scripts on the configured origins may subscribe and send events, and call nothing else of the web service', async () => {
  const platform = openPlatform({ env: CONFIGURED })
  onTestFinished(() => platform.close())
  const origin = 'https://www.example.com'
  const ask = (method: string, path: string, from: string, more: RequestInit = {}) =>
    platform.web.fetch(
      new Request(`http://web.example${path}`, {
        method,
        headers: {
          Origin: from,
          'Content-Type': 'application/json',
          'Access-Control-Request-Method': 'POST',
          'Access-Control-Request-Headers': 'content-type',
        },
        ...more,
      }),
    )
  const subscribe = '/api/email/subscribe'
  const preflight = await ask('OPTIONS', subscribe, origin)
  expect(preflight.status).toBe(204)
  expect(Object.fromEntries(preflight.headers)).toMatchObject({
    'access-control-allow-origin': origin,
    'access-control-allow-methods': 'GET, POST',
    'access-control-allow-headers': expect.stringContaining('Content-Type'),
    vary: 'Origin',
  })
  // Refusals can be read as well.
  for (const [body, status] of [
    ['{"email":"ada@example.com"}', 202],
    ['{"email":"ada"}', 400],
  ] as const) {
    const answer = await ask('POST', `${subscribe}?x=1`, origin, { body })
    expect([answer.status, answer.headers.get('access-control-allow-origin')]).toEqual([status, origin])
  }
  for (const from of ['https://evil.example', 'null', 'http://localhost:3000']) {
    const refused = await ask('OPTIONS', subscribe, from)
    expect([refused.status, refused.headers.get('access-control-allow-origin')]).toEqual([204, null])
  }
  const event = { kind: 'page.viewed', at: Date.now(), properties: {} }
  expect((await ask('OPTIONS', '/api/analytics', origin)).status).toBe(204)
  const sent = await ask('POST', '/api/analytics', origin, { body: JSON.stringify({ events: [event] }) })
  expect([sent.status, sent.headers.get('access-control-allow-origin')]).toEqual([202, origin])
  for (const path of ['/api/email/dispatch', '/api/email/unsubscribe', '/status.json']) {
    const refused = await ask('OPTIONS', path, origin)
    expect([refused.status, refused.headers.get('access-control-allow-origin')]).toEqual([405, null])
  }
})
