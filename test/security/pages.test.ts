import path from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { openSqlite } from '../../src/core/store/sqlite/open.ts'
import { ROUTES } from '../../src/daemon/routes.ts'
import { emptyFolder } from '../support/folder.ts'
import { opened } from '../support/opened.ts'
import { testTransport } from '../support/test-transport.ts'

async function open() {
  const messages: { text: string; headers: Readonly<Record<string, string>> }[] = []
  const store = await openSqlite(path.join(await emptyFolder(), 'store.sqlite'))
  onTestFinished(() => store.close())
  const { ask } = opened({
    env: {
      NEXT_PUBLIC_SITE_URL: 'https://www.example.com',
      EMAIL_DISPATCH_SECRET: 'a-dispatch-secret-of-thirty-two-b',
      RATE_LIMIT_PER_MINUTE: '10000',
    },
    store,
    mailer: testTransport(async (message) => {
      messages.push(message)
      return { kind: 'sent', id: message.key }
    }),
  })
  const page = (target: string) => ask(target, { headers: { Accept: 'text/html' } })
  return { ask, page, messages, store }
}

/** A confirmed subscription, with the unsubscribe link of its first lesson. */
async function subscribed(it: Awaited<ReturnType<typeof open>>) {
  await it.ask('/api/email/subscribe', {
    method: 'POST',
    headers: { 'Content-Type': 'application/json', Host: 'evil.example', 'X-Forwarded-Host': 'evil.example' },
    body: '{"email":"a@example.com"}',
  })
  await expect.poll(() => it.messages.length).toBe(1)
  const token = /token=([\w-]+)/.exec(it.messages[0]?.text ?? '')?.[1] ?? ''
  await it.page(`/api/email/confirm?token=${token}`)
  await it.ask('/api/email/dispatch', {
    method: 'POST',
    headers: { Authorization: 'Bearer a-dispatch-secret-of-thirty-two-b' },
  })
  const link = new URL(/<(.*)>/.exec(it.messages[1]?.headers['List-Unsubscribe'] ?? '')?.[1] ?? '')
  return link.pathname + link.search
}

const PAGES = [
  '/',
  '/lessons/1',
  '/api/email/confirm?token=x',
  '/api/email/unsubscribe?s=x&t=y',
  '/nowhere',
] as const

test('a page allows itself nothing but what carries its nonce, a new one each time', async () => {
  const it = await open()
  for (const target of PAGES) {
    const [first, second] = [await it.page(target), await it.page(target)]
    const policy = first.headers.get('content-security-policy') ?? ''
    expect(policy, target).toMatch(/^default-src 'none';/)
    expect(policy).toContain("frame-ancestors 'none'")
    expect(policy).toContain("base-uri 'none'")
    expect(policy).not.toMatch(/unsafe-(?:inline|eval)|\*/)
    const nonces = [...policy.matchAll(/'nonce-([^']+)'/g)].map(([, nonce]) => nonce)
    expect(nonces.length).toBeGreaterThan(0)
    expect(new Set(nonces).size).toBe(1)
    expect(second.headers.get('content-security-policy')).not.toBe(policy)
    const html = await first.text()
    for (const [tag] of html.matchAll(/<(?:style|script)\b[^>]*>/g))
      expect(tag).toContain(`nonce="${nonces[0]}"`)
    expect(html, target).not.toMatch(/\son[a-z]+\s*=|javascript:|\sstyle\s*=/i)
  }
})

test('what is served is not cached, sniffed, indexed or leaked by the referrer', async () => {
  const it = await open()
  for (const target of [...PAGES, '/api/health', '/openapi.json']) {
    const { headers } = await it.page(target)
    const names = ['cache-control', 'x-content-type-options', 'referrer-policy', 'x-robots-tag', 'set-cookie']
    expect([target, ...names.map((name) => headers.get(name))]).toEqual([
      target,
      'no-store',
      'nosniff',
      'no-referrer',
      'noindex',
      null,
    ])
  }
})

test('no route redirects, whatever it is asked to', async () => {
  const it = await open()
  const wishes = ['next', 'url', 'redirect', 'return_to', 'continue']
    .map((name) => `${name}=//evil.example/`)
    .join('&')
  for (const route of Object.values(ROUTES)) {
    for (const method of route.methods) {
      for (const target of [
        `${route.path.replace(':day', '1')}?${wishes}`,
        `/${route.path}//evil.example/%2f..`,
      ]) {
        const response = await it.ask(target, { method, headers: { Accept: 'text/html' } })
        expect(response.status < 300 || response.status >= 400, `${method} ${target}`).toBe(true)
        expect(response.headers.get('location')).toBeNull()
        expect(response.headers.get('refresh')).toBeNull()
      }
    }
  }
})

test('links in mails lead to the configured site, not to the Host that asked', async () => {
  const it = await open()
  await subscribed(it)
  for (const { text } of it.messages) {
    const hosts = [...text.matchAll(/https?:\/\/([^/\s>]+)/g)].map(([, host]) => host)
    expect(new Set(hosts)).toEqual(new Set(['www.example.com']))
  }
})

test('a form of another site cannot undo an unsubscription: without the link’s token nothing changes', async () => {
  const it = await open()
  const link = await subscribed(it)
  const state = async () => (await it.store.course.find('a@example.com'))?.state
  expect(await state()).toBe('confirmed')
  await it.ask(link, { headers: { Accept: 'text/html' } })
  expect(await state()).toBe('unsubscribed')
  const undo = (target: string) =>
    it.ask(target, {
      method: 'POST',
      headers: {
        'Content-Type': 'application/x-www-form-urlencoded',
        Origin: 'https://evil.example',
        'Sec-Fetch-Site': 'cross-site',
      },
      body: 'undo=1',
    })
  const [, s = ''] = /s=([^&]+)/.exec(link) ?? []
  for (const forged of [
    `/api/email/unsubscribe?s=${s}&t=`,
    `/api/email/unsubscribe?s=${s}&t=x`,
    '/api/email/unsubscribe',
  ])
    await undo(forged)
  // A genuine link with undo in it does not either: opening a link never brings a subscription back.
  await it.ask(`${link}&undo=1`, { headers: { Accept: 'text/html' } })
  expect(await state()).toBe('unsubscribed')
  // Anybody with the link may use it, and a forged link gets the same page.
  const [forged, genuine] = [await (await undo(`${link}x`)).text(), await (await undo(link)).text()]
  expect(await state()).toBe('confirmed')
  expect(forged.replace(/nonce="[^"]*"/g, '')).toBe(genuine.replace(/nonce="[^"]*"/g, ''))
})
