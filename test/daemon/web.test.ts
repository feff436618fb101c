import path from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import type { Message } from '../../src/core/mail/mailer.ts'
import { openPlatform } from '../../src/daemon/index.ts'
import { emptyFolder } from '../support/folder.ts'
import { testTransport } from '../support/test-transport.ts'

const SECRET = 'a-dispatch-secret-of-thirty-two-b'

async function platform(env: Record<string, string> = {}) {
  const messages: Message[] = []
  const opened = openPlatform({
    env: {
      STORE_URL: `sqlite:${path.join(await emptyFolder(), 'store.sqlite')}`,
      EMAIL_DISPATCH_SECRET: SECRET,
      ...env,
    },
    mailer: testTransport(async (message) => {
      messages.push(message)
      return { kind: 'sent', id: message.key }
    }),
  })
  onTestFinished(() => opened.close())
  const ask = (
    method: string,
    target: string,
    options: { body?: string; headers?: Record<string, string> } = {},
  ) =>
    opened.web.fetch(
      new Request(`http://web.example${target}`, {
        method,
        headers: options.headers ?? {},
        body: options.body ?? null,
      }),
    )
  const json = { 'Content-Type': 'application/json' }
  return {
    ask,
    messages,
    subscribe: (body: unknown) =>
      ask('POST', '/api/email/subscribe', { body: JSON.stringify(body), headers: json }),
    dispatch: (query = '', options: { body?: string; secret?: string } = {}) =>
      ask('POST', `/api/email/dispatch${query}`, {
        headers: { Authorization: `Bearer ${options.secret ?? SECRET}`, ...json },
        ...(options.body === undefined ? {} : { body: options.body }),
      }),
  }
}

const body = async (response: Response) => (await response.json()) as Record<string, unknown>

test.each([
  ['GET', '/nowhere', 404, 'not_found'],
  ['PUT', '/api/email/subscribe', 405, 'method_not_allowed'],
  ['POST', '/api/health', 405, 'method_not_allowed'],
  ['GET', '/api/email/confirm', 400, 'token_invalid'],
  ['POST', '/api/email/dispatch', 401, 'unauthenticated'],
  ['POST', '/api/email/subscribe', 415, 'unsupported_media_type'],
])('%s %s is %d %s, in the one error shape', async (method, target, status, code) => {
  const response = await (await platform()).ask(method, target)
  expect(response.status).toBe(status)
  expect(await body(response)).toEqual({
    code,
    status,
    message: expect.stringMatching(/\.$/),
    requestId: response.headers.get('x-request-id'),
  })
  if (status === 405) expect(response.headers.get('allow')).toBeTruthy()
})

test('a person gets a page for an error, and never JSON', async () => {
  const response = await (await platform()).ask('GET', '/nowhere', { headers: { Accept: 'text/html,*/*' } })
  expect(response.headers.get('content-type')).toMatch(/^text\/html/)
  expect(response.headers.get('content-security-policy')).toMatch(/^default-src 'none'/)
})

test.each([
  [{}, 'email'],
  [{ email: 'nonsense' }, 'email'],
  [{ email: 'a@example.com\r\nBcc: b@example.com' }, 'email'],
  [{ email: 5 }, 'email'],
  [{ email: 'a@example.com', name: 'spam' }, 'name'],
  [[], ''],
  [null, ''],
])('subscribing with %j is a 400 that names the field', async (given, field) => {
  const response = await (await platform()).subscribe(given)
  expect(response.status).toBe(400)
  expect(await body(response)).toMatchObject({ code: 'bad_request', issues: [{ path: field }] })
})

test.each([
  ['not JSON', '{', 400],
  ['nested too deeply', '['.repeat(4000), 400],
  ['too large', JSON.stringify({ email: 'a'.repeat(20_000) }), 413],
])('refuses a body that is %s', async (_, text, status) => {
  const response = await (await platform()).ask('POST', '/api/email/subscribe', {
    body: text,
    headers: { 'Content-Type': 'application/json' },
  })
  expect(response.status).toBe(status)
})

test('a known and an unknown address get the same answer', async () => {
  const it = await platform()
  const answers = [
    await it.subscribe({ email: 'a@example.com' }),
    await it.subscribe({ email: 'A@Example.com' }),
    await it.subscribe({ email: 'b@example.com' }),
  ]
  expect(answers.map(({ status }) => status)).toEqual([202, 202, 202])
  expect(new Set(await Promise.all(answers.map((answer) => answer.text())))).toEqual(
    new Set(['{"status":"pending","sent":true}']),
  )
})

test.each(['0', '-1', '10001', 'ten', '1.5', '', '1e2'])(
  'a dispatch limit of %j is a 400, by query and by body',
  async (limit) => {
    const it = await platform()
    expect((await it.dispatch(`?limit=${limit}`)).status).toBe(400)
    expect((await it.dispatch('', { body: `{"limit":${JSON.stringify(limit)}}` })).status).toBe(400)
  },
)

test.each([
  ['the default', '', undefined, 100],
  ['the query', '?limit=10000', undefined, 10_000],
  ['the query before the body', '?limit=9', '{"limit":7}', 9],
  ['the body', '', '{"limit":7}', 7],
  ['a body with a byte order mark', '', '\uFEFF{"limit":7}', 7],
])('a dispatch takes its limit from %s', async (_, query, text, limit) => {
  const it = await platform()
  const response = await it.dispatch(query, text === undefined ? {} : { body: text })
  expect(response.status).toBe(200)
  expect(await body(response)).toEqual({
    processed: 0,
    sent: 0,
    failed: 0,
    unknown: 0,
    remaining: 0,
    limit,
    results: [],
  })
})

test('dispatch is refused with a wrong secret, and with every secret while none is set', async () => {
  expect((await (await platform()).dispatch('', { secret: `${SECRET}x` })).status).toBe(401)
  const none = await platform({ EMAIL_DISPATCH_SECRET: '' })
  for (const secret of ['', 'undefined', SECRET])
    expect((await none.dispatch('', { secret })).status).toBe(401)
})

test('dispatch on the in-memory fallback is 503, and without mail it is 200 with the reason', async () => {
  const memory = openPlatform({ env: { EMAIL_DISPATCH_SECRET: SECRET } })
  onTestFinished(() => memory.close())
  const ask = (opened: typeof memory) =>
    opened.web.fetch(
      new Request('http://web.example/api/email/dispatch', {
        method: 'POST',
        headers: { Authorization: `Bearer ${SECRET}` },
      }),
    )
  expect(await body(await ask(memory))).toMatchObject({ code: 'store_not_persistent', status: 503 })
  const unmailed = openPlatform({
    env: { EMAIL_DISPATCH_SECRET: SECRET, STORE_URL: `sqlite:${path.join(await emptyFolder(), 's.sqlite')}` },
  })
  onTestFinished(() => unmailed.close())
  const nothing = await body(await ask(unmailed))
  expect(nothing).toMatchObject({ processed: 0, reason: 'mail is not configured' })
  // In the documented order, as when something was sent.
  expect(Object.keys(nothing).join()).toBe('processed,sent,failed,unknown,remaining,limit,reason,results')
})

test('HEAD and prefetches of the links in mails change nothing', async () => {
  const it = await platform()
  await it.subscribe({ email: 'a@example.com' })
  await expect.poll(() => it.messages.length).toBe(1)
  const confirm = new URL(/https?:\S+token=\S+/.exec(it.messages[0]?.text ?? '')?.[0] ?? '')
  const target = confirm.pathname + confirm.search
  expect((await it.ask('HEAD', target)).status).toBe(200)
  expect((await it.ask('GET', target, { headers: { 'Sec-Purpose': 'prefetch;prerender' } })).status).toBe(204)
  expect(await body(await it.dispatch())).toMatchObject({ processed: 0 })
  const browser = { headers: { Accept: 'text/html' } }
  expect((await it.ask('GET', target, browser)).status).toBe(200)
  expect(await body(await it.dispatch())).toMatchObject({ sent: 1 })

  const unsubscribe = new URL(/<(.*)>/.exec(it.messages[1]?.headers['List-Unsubscribe'] ?? '')?.[1] ?? '')
  const link = unsubscribe.pathname + unsubscribe.search
  await it.ask('HEAD', link)
  await it.ask('GET', link, { headers: { Purpose: 'prefetch' } })
  const [genuine, forged] = [
    await it.ask('GET', link),
    await it.ask('GET', '/api/email/unsubscribe?s=x.1&t=x'),
  ]
  expect([genuine.status, forged.status]).toEqual([200, 200])
  const text = (html: string) => html.replace(/nonce="[^"]*"|action="[^"]*"/g, '')
  expect(text(await genuine.text())).toBe(text(await forged.text()))
})

test('deep health is gated by its token, and without it nothing live is run', async () => {
  const it = await platform({ HEALTH_DEEP_TOKEN: 'a-health-token-of-thirty-two-bytes' })
  expect((await it.ask('GET', '/api/health?deep=1')).status).toBe(401)
  const shallow = await body(await it.ask('GET', '/api/health'))
  expect(shallow).toMatchObject({ service: 'web', state: 'ok', build: null })
  expect(
    Object.values(shallow.probes as Record<string, { checked: boolean }>).some(({ checked }) => checked),
  ).toBe(false)
  expect(Object.keys(shallow.probes as object)).toEqual([
    'datastore',
    'payments',
    'api',
    'agent',
    'models',
    'mail',
    'store',
    'sharedstore',
    'errortrack',
    'analytics',
  ])
})

test('health answers in application/health+json if the client accepts it', async () => {
  const response = await (await platform()).ask('GET', '/api/health', {
    headers: { Accept: 'application/health+json' },
  })
  expect(response.headers.get('content-type')).toMatch(/^application\/health\+json/)
  expect(await body(response)).toMatchObject({ status: 'pass', serviceId: 'web' })
})

test('an empty environment serves all three services, with nothing failing', async () => {
  const opened = openPlatform({ env: {} })
  onTestFinished(() => opened.close())
  expect(opened.validate().ok).toBe(true)
  expect((await opened.health('web')).state).toBe('degraded')
  expect((await opened.health('api')).state).toBe('degraded')
  expect(await opened.sendEmail({ template: 'welcome', to: 'a@example.com', slots: {}, about: 'x' })).toEqual(
    { sent: false, reason: 'mail is not configured' },
  )
})

test('a rate-limited client learns when to retry, and health still answers', async () => {
  const it = await platform({ RATE_LIMIT_PER_MINUTE: '3' })
  const statuses = []
  for (let n = 0; n < 5; n += 1) statuses.push((await it.ask('GET', '/lessons/1')).status)
  expect(statuses).toEqual([200, 200, 200, 429, 429])
  const refused = await it.ask('GET', '/lessons/1')
  expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0)
  expect(refused.headers.get('ratelimit')).toMatch(/^"default";r=0;t=\d+$/)
  expect((await it.ask('GET', '/api/health')).status).toBe(200)
})
