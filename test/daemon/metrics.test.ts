import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import fc from 'fast-check'
import { expect, test, vi } from 'vitest'
import { systemClock } from '../../src/core/host.ts'
import type { Outcome } from '../../src/core/mail/mailer.ts'
import { ROWS } from '../../src/daemon/metrics/catalog.ts'
import { anyText } from '../support/any-text.ts'
import { enrolIn } from '../support/learning.ts'
import { opened } from '../support/opened.ts'
import { addressOf, openTestStore } from '../support/stores.ts'
import { testTransport } from '../support/test-transport.ts'

const SECRET = 'a-dispatch-secret-of-thirty-two-b'

async function platform({
  env = {},
  outcome = { kind: 'sent', id: '1' } as Outcome,
  now = { ms: Date.UTC(2026, 10, 21) },
} = {}) {
  const store = await openTestStore(await addressOf('sqlite'))
  const it = opened({
    env: { EMAIL_DISPATCH_SECRET: SECRET, ...env },
    store,
    clock: { ...systemClock, now: () => now.ms, monotonic: () => now.ms },
    mailer: testTransport(async () => outcome),
  })
  const read = async () => series(await (await it.ask('/metrics', { from: '127.0.0.1' })).text())
  return { ...it, store, now, read }
}

/** `name{label="value"}` → value. */
function series(text: string): Map<string, number> {
  return new Map(
    text
      .split('\n')
      .filter((line) => line !== '' && !line.startsWith('#'))
      .map((line) => [line.slice(0, line.lastIndexOf(' ')), Number(line.slice(line.lastIndexOf(' ') + 1))]),
  )
}

test('two platforms in one process count apart', async () => {
  const [one, other] = [await platform(), await platform()]
  await one.ask('/lessons/1')
  const requests =
    'platformctl_http_requests_total{service="web",method="GET",route="/lessons/:day",status="200"}'
  expect((await one.read()).get(requests)).toBe(1)
  expect((await other.read()).get(requests)).toBeUndefined()
})

test('strangers who ask for metrics at once share one read of the store, and what it says is not older than they asked', async () => {
  const it = await platform({ env: { RATE_LIMIT_PER_MINUTE: '100000' } })
  const counted = vi.spyOn((await it.store).course, 'counts')
  await it.ask('/lessons/1')
  const stranger = async () => (await it.ask('/metrics', { from: '203.0.113.7' })).text()
  const texts = await Promise.all(Array.from({ length: 50 }, stranger))
  expect(counted).toHaveBeenCalledTimes(1)
  for (const text of texts) expect(text).toContain('route="/lessons/:day",status="200"} 1')
  // Prometheus refuses a text whose last line has no end.
  expect(texts[0]).toMatch(/\n$/)
})

test('the number of series stays the same for any requests', async () => {
  const it = await platform({ env: { RATE_LIMIT_PER_MINUTE: '100000' } })
  const ask = (target: string, method: string) => it.ask(target, { method }).then(({ status }) => status)
  for (const method of ['GET', 'HEAD', 'POST', 'OPTIONS', 'PUT']) await ask('/nowhere', method)
  await ask('/lessons/1', 'GET')
  await ask('/lessons/9', 'GET')
  await it.read()
  const before = (await it.read()).size
  await fc.assert(
    fc.asyncProperty(
      fc.array(anyText({ maxLength: 9 }).map(encodeURIComponent)).map((parts) => `/${parts.join('/')}`),
      fc.constantFrom('PUT', 'DELETE', 'PATCH', 'PROPFIND', 'BREW'),
      async (target, method) => {
        await ask(`/x${target}`, 'GET')
        await ask(`/lessons/${encodeURIComponent(target)}9`, 'GET')
        await ask(`/x${target}`, method)
      },
    ),
    { numRuns: 30 },
  )
  expect((await it.read()).size).toBe(before)
})

test('the queue tells what is due and since when, and dispatch what became of it', async () => {
  const it = await platform({ outcome: { kind: 'unknown', reason: 'the line broke' } })
  const course = await it.platform.course()
  for (const name of ['ada', 'bea']) {
    const address = `${name}@example.com`
    await course.subscribe({ spelling: address, identity: address })
  }
  await enrolIn(it.store, 'cai', it.now.ms)
  it.now.ms += 90 * 60 * 1000
  const before = await it.read()
  expect([
    before.get('platformctl_lessons_due'),
    before.get('platformctl_lessons_oldest_due_age_seconds'),
    before.get('platformctl_subscriptions{state="confirmed"}'),
    before.get('platformctl_subscriptions{state="unconfirmed"}'),
    before.get('platformctl_deliveries_total{outcome="unknown"}'),
  ]).toEqual([1, 5400, 1, 2, 0])

  const answer = await it.post('/api/email/dispatch', {}, { Authorization: `Bearer ${SECRET}` })
  expect(answer.status).toBe(200)
  // A program's own mail counts by what it is for.
  const link = { signInUrl: 'https://www.example.com/login' }
  await it.platform.sendEmail({
    template: 'magic-link',
    to: 'ada@example.com',
    slots: link,
    about: 'login-1',
  })
  const after = await it.read()
  expect([
    after.get('platformctl_lessons_due'),
    after.get('platformctl_lessons_oldest_due_age_seconds'),
    after.get('platformctl_deliveries_total{outcome="unknown"}'),
    after.get('platformctl_deliveries_waiting{problem="unknown"}'),
    after.get('platformctl_dispatches_total{result="completed"}'),
    after.get('platformctl_store_up'),
  ]).toEqual([0, 5400, 1, 1, 1, 1])
  const mails = (stream: string, outcome: string) =>
    after.get(`platformctl_messages_total{stream="${stream}",outcome="${outcome}"}`)
  const unknown = ['course', 'confirmation', 'sign-in'].map((stream) => mails(stream, 'unknown'))
  expect(unknown).toEqual([1, 2, 1])
  expect([mails('course', 'failed'), mails('course', 'sent'), mails('mail', 'unknown')]).toEqual([0, 0, 0])
})

test('a scrape opens nothing: without a store there are no figures of one', async () => {
  const text = await (await opened().ask('/metrics', { from: '127.0.0.1' })).text()
  expect(text).not.toMatch(/^platformctl_(store|lessons|subscriptions)\S* /m)
  expect(text).toMatch(/^process_resident_memory_bytes \d+/m)
})

test('time and start of the process are as the process itself says, however often they are scraped', async () => {
  const it = opened()
  const scrape = async () => series(await (await it.ask('/metrics', { from: '127.0.0.1' })).text())
  await scrape()
  const found = await scrape()
  const { user, system } = process.cpuUsage()
  const cpu = found.get('process_cpu_seconds_total') ?? 0
  expect([cpu > 0, cpu <= (user + system) / 1e6]).toEqual([true, true])
  expect(found.get('process_start_time_seconds')).toBe(performance.timeOrigin / 1000)
  const busy = found.get('platformctl_event_loop_busy_seconds_total') ?? 0
  expect(busy).toBeLessThanOrEqual(performance.eventLoopUtilization().active / 1000)
})

test('rules and dashboard name metrics that exist, and every alert has its section', () => {
  const read = (name: string) =>
    readFileSync(fileURLToPath(new URL(`../../runbooks/${name}`, import.meta.url)), 'utf8')
  const [rules, dashboard, page] = [read('alerts.yaml'), read('dashboard.json'), read('alerts.md')]
  const named = `${rules}${dashboard}`.matchAll(/\b(?:platformctl|process|nodejs)_[a-z_]+/g)
  for (const [name] of named) expect(Object.keys(ROWS)).toContain(name.replace(/_(?:bucket|sum|count)$/, ''))
  const sections = [...page.matchAll(/^### (Platform\w+)$/gm)].map(([, name]) => name)
  const names = [...rules.matchAll(/- alert: (\w+)/g)].map(([, name = '']) => name)
  expect(sections).toEqual(expect.arrayContaining(names))
  for (const name of names) expect(rules).toContain(`runbook: alerts.md#${name.toLowerCase()}`)
  // Without the health token the series of lessons and mail are absent, which is an alarm of its own.
  const [, missing] = /- alert: PlatformMetricsMissing([\s\S]*?)- alert:/.exec(rules) ?? []
  expect(missing).toMatch(/ unless on \(job, instance\) platformctl_deliveries_total\)[\s\S]*absent\(/)
  expect(ROWS.platformctl_deliveries_total.personal).toBe(true)
})
