import { statSync } from 'node:fs'
import path from 'node:path'
import Database from 'better-sqlite3'
import { expect, onTestFinished, test } from 'vitest'
import { systemClock } from '../../src/core/host.ts'
import { openAnalyticsStore } from '../../src/core/store/open.ts'
import { emptyFolder } from '../support/folder.ts'
import { opened } from '../support/opened.ts'

const DAY = 86_400_000
const MB = 1024 * 1024

/** A platform with small budgets, asked by clients of our choice. */
async function open(env: Record<string, string> = {}) {
  const folder = await emptyFolder()
  const time = { now: Date.UTC(2026, 10, 21, 12), passed: 0 }
  const { platform, ask, told } = opened({
    env: {
      STORE_URL: `sqlite:${path.join(folder, 'store.sqlite')}`,
      ANALYTICS_DATASTORE_TABLE: 'visits',
      RATE_LIMIT_PER_MINUTE: '100000',
      HEALTH_DEEP_TOKEN: 'a-health-token-of-thirty-two-bytes',
      ...env,
    },
    clock: { ...systemClock, now: () => time.now, monotonic: () => time.passed },
  })
  const headers = { 'Content-Type': 'application/json' }
  const post = (target: string, body: string | ReadableStream<Uint8Array>, from: string) =>
    ask(target, { method: 'POST', headers, body, from, ...{ duplex: 'half' } })
  const text = 'x'.repeat(60)
  const properties = Object.fromEntries(Array.from({ length: 5 }, (_, at) => [`text${at}`, text]))
  const send = async (from: string) => {
    const events = Array.from({ length: 400 }, () => ({ kind: 'page.viewed', at: time.now, properties }))
    const response = await post('/api/analytics', JSON.stringify({ events }), from)
    return { status: response.status, body: (await response.json()) as { stored: boolean; reason?: string } }
  }
  const size = () =>
    ['', '-wal'].reduce(
      (sum, end) =>
        sum +
        (statSync(path.join(folder, `store-analytics.sqlite${end}`), { throwIfNoEntry: false })?.size ?? 0),
      0,
    )
  const refusals = () => told('analytics_refused').length
  return { platform, time, ask, post, send, size, refusals }
}

test('a client flooding analytics gets an eighth of the day’s budget, and the others the rest', async () => {
  const { send, size } = await open({ ANALYTICS_DAILY_MB: '8' })
  let stored = 0
  for (let at = 0; at < 40; at += 1) {
    const { status, body } = await send('198.51.100.1')
    expect(status).toBe(202)
    if (body.stored) stored += 1
    else expect(body.reason).toMatch(/its share of the day/)
  }
  expect(stored).toBeGreaterThan(4)
  expect(stored).toBeLessThan(12)
  expect(size()).toBeLessThan(5 * MB)
  expect((await send('198.51.100.2')).body.stored).toBe(true)
})

test('when the budget of the day is used up nothing more is stored, visibly, until the next day', async () => {
  const { platform, time, send, ask, post, refusals } = await open({ ANALYTICS_DAILY_MB: '1' })
  await send('198.51.100.200')
  expect((await send('198.51.100.200')).body.reason).toMatch(/its share of the day/)
  let refused: string | undefined
  for (let at = 0; at < 60 && refused === undefined; at += 1) {
    const { reason } = (await send(`198.51.100.${at}`)).body
    if (reason?.includes('ANALYTICS_DAILY_MB')) refused = reason
  }
  expect(refused).toMatch(/until tomorrow/)
  // The first cause of a day does not silence the second.
  expect(refusals()).toBe(2)
  expect((await platform.health('web')).probes.analytics).toMatchObject({
    state: 'degraded',
    reason: refused,
  })
  const metrics = await (await ask('/metrics', { from: '127.0.0.1' })).text()
  expect(metrics).toMatch(/^platformctl_analytics_refused_total\{reason="day"\} 1$/m)
  const bytes = Number(/^platformctl_analytics_size_bytes (\d+)/m.exec(metrics)?.[1])
  expect(bytes).toBeGreaterThan(MB)
  expect(bytes).toBeLessThan(1.3 * MB)
  expect((await post('/api/email/subscribe', '{"email":"ada@example.com"}', '198.51.100.1')).status).toBe(202)
  time.now += DAY
  expect((await send('198.51.100.1')).body.stored).toBe(true)
  expect((await platform.health('web')).probes.analytics?.state).toBe('ok')
  // Clients that cannot be told apart have no share of their own.
  for (let at = 0; at < 2; at += 1) expect((await send('')).body.stored).toBe(true)
})

test('the budget in all holds over days, told once in each, and what expires makes room, visibly', async () => {
  const {
    platform,
    time,
    send,
    refusals: all,
  } = await open({
    ANALYTICS_DAILY_MB: '100',
    ANALYTICS_TOTAL_MB: '1',
  })
  let reason: string | undefined
  for (let at = 0; at < 30 && reason === undefined; at += 1) reason = (await send('198.51.100.1')).body.reason
  expect(reason).toMatch(/ANALYTICS_TOTAL_MB/)
  const refusals = async () => {
    for (const client of [1, 2]) expect((await send(`198.51.100.${client}`)).body.reason).toBe(reason)
    return all()
  }
  expect(await refusals()).toBe(1)
  time.now += 2 * DAY
  expect(await refusals()).toBe(2)
  const probe = async () => (await platform.health('web', { deep: true })).probes.analytics
  expect(await probe()).toMatchObject({ state: 'degraded', reason })
  time.now += 396 * DAY
  await platform.ingest.prune()
  time.passed += 60_000
  expect(await probe()).toMatchObject({ state: 'ok' })
  expect((await send('198.51.100.2')).body.stored).toBe(true)
})

test('what the disk holds is read from it', async () => {
  const file = path.join(await emptyFolder(), 'store.sqlite')
  const store = await openAnalyticsStore({ kind: 'sqlite', file }, { table: 'visits' })
  onTestFinished(() => store.close())
  const { disk } = await store.usage(0)
  expect(disk?.size).toBeGreaterThan(disk?.free ?? Number.NaN)
})

test('events stored by an earlier build count toward the budget', async () => {
  const file = path.join(await emptyFolder(), 'store.sqlite')
  const address = { kind: 'sqlite', file } as const
  const first = await openAnalyticsStore(address, { table: 'visits' })
  const events = [{ kind: 'page.viewed' as const, at: 5, properties: { text: 'y'.repeat(50) } }]
  const counts = [{ day: '1970-01-01', kind: 'page.viewed' as const, count: 1 }]
  for (let day = 0; day < 3; day += 1)
    await first.append({ id: undefined, receivedAt: day * DAY, events, counts })
  const { total } = await first.usage(0)
  await first.close()
  const database = new Database(file.replace('store', 'store-analytics'))
  database.exec('DROP TABLE visits_bytes')
  database.close()
  const second = await openAnalyticsStore(address, { table: 'visits' })
  onTestFinished(() => second.close())
  expect(await second.usage(1)).toMatchObject({ total, today: total / 3 })
  await second.prune(2 * DAY)
  expect(await second.usage(1)).toMatchObject({ total: total / 3, today: 0 })
})

/** Bodies that are sent in part and then wait for a word of ours. */
function waiting(bytes: number) {
  const { promise, resolve } = Promise.withResolvers<void>()
  const arrived = Promise.withResolvers<void>()
  const body = new ReadableStream<Uint8Array>({
    async pull(controller) {
      controller.enqueue(new TextEncoder().encode(`{"events":[],"batch":"${'x'.repeat(bytes)}`))
      arrived.resolve()
      await promise
      controller.close()
    },
  })
  return { body, arrived: arrived.promise, finish: resolve }
}

test('one client holds an eighth of the memory for bodies at once, all together no more than there is', async () => {
  const { post } = await open({ BODY_MEMORY_MB: '8' })
  // The first loads the route.
  await post('/api/analytics', '{}', '203.0.113.1')
  const held: { answer: Promise<Response>; finish: () => void }[] = []
  const hold = async (from: string): Promise<number | 'held'> => {
    const { body, arrived, finish } = waiting(200 * 1024)
    const answer = post('/api/analytics', body, from)
    let state: number | 'held' = 'held'
    void answer.then(({ status }) => {
      state = status
    })
    await arrived
    // The chunk is counted a few turns after it was pulled.
    for (let turn = 0; turn < 10; turn += 1) await new Promise((resolve) => setImmediate(resolve))
    held.push({ answer, finish })
    return state
  }
  const outcomes = new Map<number | 'held', number>()
  for (let client = 0; client < 10; client += 1)
    for (let at = 0; at < 8; at += 1) {
      const state = await hold(`198.51.100.${client}`)
      outcomes.set(state, (outcomes.get(state) ?? 0) + 1)
      if (client === 0 && at >= 5) expect(state).toBe(429)
    }
  // 8 MB in all, 1 MB a client, 200 KB each.
  expect(outcomes.get('held')).toBe(40)
  expect(outcomes.get(429)).toBeGreaterThanOrEqual(24)
  expect(outcomes.get(503)).toBeGreaterThanOrEqual(1)
  const small = await post('/api/email/subscribe', '{"email":"ada@example.com"}', '198.51.100.0')
  expect([202, 429]).toContain(small.status)
  for (const { finish } of held) finish()
  const answers = await Promise.all(held.map(({ answer }) => answer))
  expect(
    answers.filter(({ status }) => status === 429).every(({ headers }) => headers.has('retry-after')),
  ).toBe(true)
  expect((await post('/api/email/subscribe', '{"email":"ada@example.com"}', '198.51.100.0')).status).toBe(202)
  expect(await hold('198.51.100.0')).toBe('held')
  held.at(-1)?.finish()
})
