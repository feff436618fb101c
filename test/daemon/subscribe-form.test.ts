import { expect, onTestFinished, test, vi } from 'vitest'
import { openHistory } from '../../src/core/store/open.ts'
import { handlersOf, openPlatform } from '../../src/daemon/platform.ts'
import { resolvePlatform } from '../../src/platform/resolve.ts'
import { asking, opened } from '../support/opened.ts'
import { testTransport } from '../support/test-transport.ts'

function open({ mail = true, ...options }: Parameters<typeof opened>[0] & { readonly mail?: boolean } = {}) {
  const recipients: string[] = []
  const texts: string[] = []
  const mailer = testTransport(async (message) => {
    recipients.push(message.to.address)
    texts.push(message.text)
    return { kind: 'sent', id: message.key }
  })
  const { ask, page } = opened({ ...(mail && { mailer }), ...options })
  const submit = (body: string, headers: Record<string, string> = {}) =>
    ask('/api/email/subscribe', {
      method: 'POST',
      headers: { Accept: 'text/html', 'Content-Type': 'application/x-www-form-urlencoded', ...headers },
      body,
    })
  return { page, submit, recipients, texts }
}

const FORM = '<form class="subscribe" method="post" action="/api/email/subscribe">'

test('the pages of the course have the form to subscribe, unless mail is off or the host asks for a challenge', async () => {
  for (const target of ['/', '/lessons/3']) {
    expect(await open().page(target)).toContain(FORM)
    expect(await open({ mail: false }).page(target)).not.toContain('<form')
    expect(await open({ challenge: () => true }).page(target)).not.toContain('<form')
  }
})

test('the form subscribes, and its page is the same for a known address', async () => {
  const { submit, recipients } = open()
  const pages: string[] = []
  for (const address of ['ada@example.com', 'ada@example.com', 'new@example.com']) {
    const response = await submit(new URLSearchParams({ email: address }).toString(), {
      'Sec-Fetch-Site': 'same-origin',
    })
    expect(response.status).toBe(202)
    pages.push((await response.text()).replace(/nonce="[^"]*"/g, ''))
  }
  expect(new Set(pages).size).toBe(1)
  expect(pages[0]).toContain('<h1>Check your mail</h1>')
  await expect.poll(() => recipients).toEqual(['ada@example.com', 'new@example.com'])
})

test('an invalid address is shown again in the form, escaped, with its fault', async () => {
  const { submit, recipients } = open()
  const response = await submit(new URLSearchParams({ email: '"><b>ada' }).toString())
  expect(response.status).toBe(400)
  const html = await response.text()
  expect(html).toContain('value="&quot;&gt;&lt;b&gt;ada" aria-invalid="true"')
  expect(html).toContain('This is not a complete e-mail address.')
  expect((await submit('')).status).toBe(400)
  expect(recipients).toEqual([])
})

test('a challenge that never ends answers 503 after ten seconds', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
  onTestFinished(() => void vi.useRealTimers())
  const asked = Promise.withResolvers<void>()
  const challenge = () => {
    asked.resolve()
    return new Promise<boolean>(() => {})
  }
  const answer = open({ challenge }).submit('email=ada@example.com&challenge=slow', { Accept: '*/*' })
  await asked.promise
  vi.advanceTimersByTime(10_000)
  const response = await answer
  expect([response.status, response.headers.get('retry-after')]).toEqual([503, '60'])
})

test('a form too has to pass the challenge of the host', async () => {
  const challenge = ({ response }: { response: string | undefined }) => response === 'right'
  const { submit, recipients } = open({ challenge, history: await openHistory(undefined) })
  const answers = ['', '&challenge=wrong', '&challenge=right', '&course=status'].map(async (more, index) => {
    const { status } = await submit(`email=${index}%40example.com${more}`)
    return status
  })
  expect(await Promise.all(answers)).toEqual([400, 400, 202, 400])
  await expect.poll(() => recipients).toEqual(['2@example.com'])
})

test('the form’s page says so if no mail can be sent', async () => {
  const response = await open({ mail: false }).submit('email=ada%40example.com')
  expect(await response.text()).toContain('<h1>Not subscribed yet</h1>')
})

test('a form of another site is refused', async () => {
  const { submit, recipients } = open()
  const response = await submit('email=ada%40example.com', { Origin: 'https://evil.example' })
  expect(response.status).toBe(415)
  expect(await response.text()).toContain('This route takes application/json, and forms of its own pages.')
  expect(recipients).toEqual([])
})

test('a form gets JSON if the client does not ask for a page', async () => {
  const { submit } = open()
  const response = await submit('email=ada%40example.com', { Accept: 'application/json' })
  expect(await response.json()).toEqual({ status: 'pending', sent: true })
  const refused = await submit('email=ada&name=x', { Accept: 'application/json' })
  expect(((await refused.json()) as { issues: { path: string }[] }).issues.map(({ path }) => path)).toEqual([
    'email',
    'name',
  ])
})

test('the status page offers notices of incidents beside the course, in words of its own', async () => {
  const history = await openHistory(undefined)
  onTestFinished(() => history.close())
  const { page, submit, recipients, texts } = open({ history })
  const status = await page('/')
  expect(status).toContain('<h2>Get incident updates by mail</h2>')
  expect(status).toContain('<input type="hidden" name="course" value="status">')
  expect(new Set(status.match(/ id="[^"]*"/g)).size).toBe(status.match(/ id="[^"]*"/g)?.length)
  expect(await page('/lessons/3')).not.toContain('value="status"')
  const answer = await submit('email=ada%40example.com&course=status')
  expect([answer.status, await answer.text()]).toEqual([
    202,
    expect.stringContaining('If this address can subscribe'),
  ])
  await expect.poll(() => recipients).toEqual(['ada@example.com'])
  const link = /\/api\/email\/confirm\?\S+/.exec(texts[0] ?? '')?.[0] ?? ''
  expect(link).toContain('course=status')
  expect(texts[0]).toContain('when something fails here')
  // A scanner that opens the link confirms nothing.
  const scanner = { 'User-Agent': 'Slackbot-LinkExpanding 1.0' }
  expect(await page(link, { headers: scanner })).toContain('subscribes it to incidents')
  expect(await page(link)).toContain('You are subscribed to incidents')
})

test('notices of incidents are not offered where nothing is recorded or mail is off, and then refused as an unknown course', async () => {
  const { page, submit } = open()
  expect(await page('/')).not.toContain('value="status"')
  expect((await submit('email=ada%40example.com&course=status')).status).toBe(400)
  const unmailed = open({ history: await openHistory(undefined), mail: false })
  expect(await unmailed.page('/')).not.toContain('value="status"')
})

test('a platform without a course subscribes nobody who does not ask for incidents by name', async () => {
  const platform = openPlatform({
    env: {},
    platform: resolvePlatform({ preset: 'base' }, { folder: '/' }),
    history: await openHistory(undefined),
    mailer: testTransport(async () => ({ kind: 'sent', id: 'one' })),
  })
  onTestFinished(() => platform.close())
  const { post, page } = asking(handlersOf(platform) as Parameters<typeof asking>[0])
  const subscribe = async (body: object) => (await post('/api/email/subscribe', body)).status
  expect(await subscribe({ email: 'ada@example.com' })).toBe(404)
  expect(await subscribe({ email: 'ada@example.com', course: 'status' })).toBe(202)
  const form = { 'Content-Type': 'application/x-www-form-urlencoded' }
  const mistyped = { method: 'POST', headers: form, body: 'email=ada&course=status' }
  expect(await page('/api/email/subscribe', mistyped)).toContain('name="course" value="status"')
})
