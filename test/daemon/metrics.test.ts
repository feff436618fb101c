import { readFileSync } from 'node:fs'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import fc from 'fast-check'
import { expect, onTestFinished, test } from 'vitest'
import type { ProbeState } from '../../src/core/health/probe.ts'
import { createHealth } from '../../src/core/health/runner.ts'
import { systemClock } from '../../src/core/host.ts'
import type { Outcome } from '../../src/core/mail/mailer.ts'
import { openStore } from '../../src/core/store/open.ts'
import { ROWS } from '../../src/daemon/metrics/catalog.ts'
import { openMetrics } from '../../src/daemon/metrics/metrics.ts'
import { emptyFolder } from '../support/folder.ts'
import { begin, openLearning } from '../support/learning.ts'
import { testTransport } from '../support/test-transport.ts'

/** From this machine itself, which may see all metrics. */
const HERE = { incoming: { socket: { remoteAddress: '127.0.0.1' } } }
const SECRET = 'a-dispatch-secret-of-thirty-two-b'

async function platform({
  env = {},
  outcome = { kind: 'sent', id: '1' } as Outcome,
  now = { ms: Date.UTC(2026, 10, 21) },
} = {}) {
  const store = await openStore({ kind: 'sqlite', file: path.join(await emptyFolder(), 'store.sqlite') })
  const opened = openLearning({
    env: { EMAIL_DISPATCH_SECRET: SECRET, ...env },
    store,
    clock: { ...systemClock, now: () => now.ms },
    mailer: testTransport(async () => outcome),
  })
  onTestFinished(async () => {
    await opened.close()
    await store.close()
  })
  const ask = (target: string, init: RequestInit = {}) =>
    opened.web.fetch(new Request(`http://web.example${target}`, init), HERE)
  return { opened, store, now, ask, read: async () => series(await (await ask('/metrics')).text()) }
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
      fc.webPath(),
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
  const course = await it.opened.course()
  for (const name of ['ada', 'bea']) {
    const address = `${name}@example.com`
    await course.subscribe({ spelling: address, identity: address })
  }
  await it.store.course.requestConfirmation({
    course: 'quantum',
    identity: 'cai@example.com',
    address: 'cai@example.com',
    id: 'cai',
    tokenHash: 'hash',
    now: it.now.ms,
  })
  await it.store.course.confirm({ begin, tokenHash: 'hash', now: it.now.ms })
  it.now.ms += 90 * 60 * 1000
  const before = await it.read()
  expect([
    before.get('platformctl_lessons_due'),
    before.get('platformctl_lessons_oldest_due_age_seconds'),
    before.get('platformctl_subscriptions{state="confirmed"}'),
    before.get('platformctl_subscriptions{state="unconfirmed"}'),
    before.get('platformctl_deliveries_total{outcome="unknown"}'),
  ]).toEqual([1, 5400, 1, 2, 0])

  const answer = await it.ask('/api/email/dispatch', {
    method: 'POST',
    headers: { Authorization: `Bearer ${SECRET}` },
  })
  expect(answer.status).toBe(200)
  const after = await it.read()
  expect([
    after.get('platformctl_lessons_due'),
    after.get('platformctl_lessons_oldest_due_age_seconds'),
    after.get('platformctl_deliveries_total{outcome="unknown"}'),
    after.get('platformctl_deliveries_waiting{problem="unknown"}'),
    after.get('platformctl_dispatches_total{result="completed"}'),
    after.get('platformctl_store_up'),
  ]).toEqual([0, 5400, 1, 1, 1, 1])
})

test('with a store that does not answer the metrics are still 200, say so, and claim no empty queue', async () => {
  const it = await platform()
  expect((await it.read()).get('platformctl_lessons_due')).toBe(0)
  await it.store.close()
  const response = await it.ask('/metrics')
  expect(response.status).toBe(200)
  const found = series(await response.text())
  expect(found.get('platformctl_store_up')).toBe(0)
  expect([...found.keys()].filter((name) => /lessons|subscriptions|waiting|store_size/.test(name))).toEqual(
    [],
  )
})

test('a scrape opens nothing: without a store there are no figures of one', async () => {
  const opened = openLearning({ env: {} })
  onTestFinished(() => opened.close())
  const text = await (await opened.web.fetch(new Request('http://web.example/metrics'), HERE)).text()
  expect(text).not.toMatch(/^platformctl_(store|lessons|subscriptions)\S* /m)
  expect(text).toMatch(/^process_resident_memory_bytes \d+/m)
})

test('a look at the configuration does not hide what a live check found', async () => {
  const metrics = openMetrics(systemClock, {
    build: undefined,
    counting: () => 'local',
    mailConfigured: false,
    feedbackProvider: undefined,
    analyticsBytes: async () => undefined,
    knownStore: async () => undefined,
  })
  const states: ProbeState[] = ['ok', 'failing', 'ok', 'degraded']
  const health = metrics.health(
    createHealth({
      service: 'web',
      probes: [{ name: 'mail', run: async () => ({ state: states.shift() ?? 'ok', checked: true }) }],
      clock: systemClock,
      build: undefined,
      startedAt: 0,
    }),
  )
  const shown = async (deep: boolean) => {
    await health.check({ deep })
    const found = series((await metrics.text()).body)
    return ['ok', 'degraded', 'failing'].filter(
      (state) => found.get(`platformctl_probe_state{service="web",probe="mail",state="${state}"}`) === 1,
    )
  }
  expect([await shown(false), await shown(true), await shown(false), await shown(true)]).toEqual([
    ['ok'],
    ['failing'],
    ['failing'],
    ['degraded'],
  ])
})

test('no metric shows a host, a secret or a path with a token', async () => {
  const it = await platform({
    env: {
      API_URL: 'http://canary-host.internal:8000',
      PAYMENTS_SECRET_KEY: 'sk_live_canary',
      PAYMENTS_WEBHOOK_SECRET: 'whsec_canary',
      PAYMENTS_PRICE_PRO_MONTHLY: 'price_canary',
    },
  })
  await it.opened.health('web', { deep: true })
  await it.ask('/api/email/confirm?token=canary-token')
  await it.ask('/canary-path')
  expect(await (await it.ask('/metrics')).text()).not.toContain('canary')
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
})
