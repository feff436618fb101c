import { expect, test } from 'vitest'
import type { Message } from '../../src/core/mail/mailer.ts'
import { bodyOf } from '../support/accounts.ts'
import { newStoreUrl, opened } from '../support/opened.ts'
import { keepingTransport } from '../support/test-transport.ts'

const SECRET = 'a-dispatch-secret-of-thirty-two-b'

async function platform({ env = {}, mail = true, file = true } = {}) {
  const messages: Message[] = []
  const it = opened({
    env: {
      EMAIL_DISPATCH_SECRET: SECRET,
      ...(file && { STORE_URL: await newStoreUrl() }),
      ...env,
    },
    ...(mail && {
      mailer: keepingTransport(messages),
    }),
  })
  const dispatch = (query = '', body: string | undefined = undefined, secret = SECRET) =>
    it.ask(`/api/email/dispatch${query}`, {
      method: 'POST',
      headers: { Authorization: `Bearer ${secret}`, 'Content-Type': 'application/json' },
      body: body ?? null,
    })
  return { ...it, messages, dispatch }
}

test('a subscription names the field that is wrong, and takes no line into its address', async () => {
  const { post } = await platform()
  for (const [given, field] of [
    [{}, 'email'],
    [{ email: 'a@example.com\r\nBcc: b@example.com' }, 'email'],
    [{ email: 'a@example.com', name: 'spam' }, 'name'],
    [null, ''],
  ] as const) {
    const response = await post('/api/email/subscribe', given)
    expect(response.status).toBe(400)
    expect(await bodyOf(response)).toMatchObject({ code: 'bad_request', issues: [{ path: field }] })
  }
})

test('a dispatch limit is a number from 1 to 10,000, by query and by body', async () => {
  const { dispatch } = await platform()
  for (const limit of ['0', '10001', 'ten', '1.5', '', '1e2']) {
    expect((await dispatch(`?limit=${limit}`)).status, limit).toBe(400)
    expect((await dispatch('', `{"limit":${JSON.stringify(limit)}}`)).status, limit).toBe(400)
  }
})

test.each<[from: string, query: string, text: string | undefined, limit: number, env?: object]>([
  ['the default', '', undefined, 100],
  ['EMAIL_DISPATCH_LIMIT', '', '{}', 50, { EMAIL_DISPATCH_LIMIT: '50' }],
  ['the query', '?limit=10000', undefined, 10_000],
  ['the query before the body', '?limit=9', '{"limit":7}', 9],
  ['a body with a byte order mark', '', '\uFEFF{"limit":7}', 7],
])('a dispatch takes its limit from %s', async (_, query, text, limit, env = {}) => {
  const response = await (await platform({ env })).dispatch(query, text)
  expect(response.status).toBe(200)
  const nothing = { processed: 0, sent: 0, failed: 0, unknown: 0, remaining: 0, results: [] }
  expect(await bodyOf(response)).toEqual({ ...nothing, limit })
})

test('dispatch is refused with every secret while none is set', async () => {
  const none = await platform({ env: { EMAIL_DISPATCH_SECRET: '' } })
  for (const secret of ['', 'undefined', SECRET])
    expect((await none.dispatch('', undefined, secret)).status).toBe(401)
})

test('dispatch on the in-memory fallback is 503, and without mail it is 200 with the reason', async () => {
  const memory = await platform({ file: false, mail: false })
  expect(await bodyOf(await memory.dispatch())).toMatchObject({ code: 'store_not_persistent', status: 503 })
  const nothing = await bodyOf(await (await platform({ mail: false })).dispatch())
  expect(nothing).toMatchObject({ processed: 0, reason: 'mail is not configured' })
  // In the documented order, as when something was sent.
  expect(Object.keys(nothing).join()).toBe('processed,sent,failed,unknown,remaining,limit,reason,results')
})

test('HEAD and prefetches of the links in mails change nothing', async () => {
  const it = await platform()
  await it.post('/api/email/subscribe', { email: 'a@example.com' })
  await expect.poll(() => it.messages.length).toBe(1)
  const confirm = new URL(/https?:\S+token=\S+/.exec(it.messages[0]?.text ?? '')?.[0] ?? '')
  const target = confirm.pathname + confirm.search
  expect((await it.ask(target, { method: 'HEAD' })).status).toBe(200)
  expect((await it.ask(target, { headers: { 'Sec-Purpose': 'prefetch;prerender' } })).status).toBe(204)
  expect(await bodyOf(await it.dispatch())).toMatchObject({ processed: 0 })
  expect((await it.ask(target, { headers: { Accept: 'text/html' } })).status).toBe(200)
  expect(await bodyOf(await it.dispatch())).toMatchObject({ sent: 1 })

  const unsubscribe = new URL(/<(.*)>/.exec(it.messages[1]?.headers['List-Unsubscribe'] ?? '')?.[1] ?? '')
  const link = unsubscribe.pathname + unsubscribe.search
  expect((await it.ask(link, { method: 'HEAD' })).status).toBe(200)
  expect((await it.ask(link, { headers: { Purpose: 'prefetch' } })).status).toBe(204)
  expect(await it.platform.courses.list({ email: 'a@example.com' })).toMatchObject([{ state: 'confirmed' }])
  const genuine = await it.ask(link)
  const text = (html: string) => html.replace(/nonce="[^"]*"|action="[^"]*"/g, '')
  const page = text(await genuine.text())
  // Forged, or cut by a mail program.
  for (const query of ['?s=x.1&t=x', '?s=x.1', '']) {
    const other = await it.ask(`/api/email/unsubscribe${query}`)
    expect([genuine.status, other.status, text(await other.text())]).toEqual([200, 200, page])
  }
  const oneClick = { method: 'POST', body: new URLSearchParams({ 'List-Unsubscribe': 'One-Click' }) }
  const clicked = await it.ask(link, { ...oneClick, headers: { Accept: 'application/json' } })
  expect(await bodyOf(clicked)).toEqual({ status: 'unsubscribed' })
})

test('health without deep runs nothing live, and has all probes in their order', async () => {
  const it = await platform()
  const shallow = await bodyOf(await it.ask('/api/health'))
  expect(shallow).toMatchObject({ service: 'web', state: 'ok', build: null })
  const probes = Object.entries(shallow.probes as Record<string, { checked: boolean }>)
  expect(probes.filter(([, { checked }]) => checked)).toEqual([])
  expect(Object.values((await it.platform.health('web')).probes).some(({ checked }) => checked)).toBe(false)
  expect(probes.map(([name]) => name).join()).toBe(
    'datastore,payments,api,agent,models,mail,store,sharedstore,errortrack,analytics',
  )
  const own = await it.ask('/api/health', { headers: { Accept: 'application/health+json' } })
  expect(await bodyOf(own)).toMatchObject({ status: 'pass', serviceId: 'web' })
  const Accept = 'application/json, application/health+json;q=0.5'
  expect(await bodyOf(await it.ask('/api/health', { headers: { Accept } }))).toMatchObject({ state: 'ok' })
})

test('an empty environment serves all three services, with nothing failing', async () => {
  const { platform: empty, told, ask } = opened()
  expect(empty.validate().ok).toBe(true)
  // Of the API alone.
  expect(opened({ env: { HARDWARE_A_TOKEN: 'hardware-token' } }).platform.validate().ok).toBe(false)
  expect((await empty.health('web')).state).toBe('degraded')
  expect((await empty.health('api')).state).toBe('degraded')
  // Also in the log and in the metrics.
  const changes = told('health_changed').map(({ service, to }) => `${service} ${to}`)
  expect(changes).toEqual(['web degraded', 'api degraded'])
  const metrics = await (await ask('/metrics')).text()
  for (const service of ['web', 'api'])
    expect(metrics).toContain(`\nplatformctl_service_state{service="${service}",state="degraded"} 1\n`)
  for (const service of ['api', 'agent'] as const)
    expect((await ask('/metrics', { service })).status, service).toBe(200)
  const mail = { template: 'welcome', to: 'a@example.com', slots: {}, about: 'x' }
  expect(await empty.sendEmail(mail)).toEqual({ sent: false, reason: 'mail is not configured' })
})

test('a rate-limited client learns when to retry, and health still answers', async () => {
  const it = await platform({ env: { RATE_LIMIT_PER_MINUTE: '1' } })
  expect((await it.ask('/lessons/1')).status).toBe(200)
  const refused = await it.ask('/lessons/1')
  expect(refused.status).toBe(429)
  expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0)
  expect(refused.headers.get('ratelimit')).toMatch(/^"default";r=0;t=\d+$/)
  expect((await it.ask('/api/health')).status).toBe(200)
})
