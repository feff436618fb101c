import path from 'node:path'
import { expect, test } from 'vitest'
import { summariseEvents, summaryText } from '../../src/cli/commands/analytics.ts'
import { loadPaint } from '../../src/cli/context.ts'
import { systemClock } from '../../src/core/host.ts'
import { openPlatform } from '../../src/daemon/index.ts'
import { emptyFolder } from '../support/folder.ts'
import { run as runWith } from '../support/run.ts'
import { postgresServer } from '../support/stores.ts'

const NOW = Date.UTC(2026, 10, 21, 0, 30)
const DAY = 86_400_000
const clock = { ...systemClock, now: () => NOW }

async function stored() {
  const env = {
    STORE_URL: `sqlite:${path.join(await emptyFolder(), 'store.sqlite')}`,
    ANALYTICS_DATASTORE_TABLE: 'visits',
  }
  const platform = openPlatform({ env, clock })
  const events = [
    ...Array.from({ length: 9 }, (_, index) => ({ kind: 'lesson.viewed', at: NOW - (index % 3) * DAY })),
    ...Array.from({ length: 3 }, () => ({ kind: 'circuit.run', at: NOW })),
    { kind: 'page.viewed', at: NOW - 40 * DAY },
  ]
  const response = await platform.web.fetch(
    new Request('http://web.example/api/analytics', {
      method: 'POST',
      headers: { 'Content-Type': 'application/json' },
      body: JSON.stringify({ events }),
    }),
  )
  expect(await response.json()).toMatchObject({ accepted: 13, stored: true })
  await platform.close()
  return env
}

const run = (env: Record<string, string>, ...args: string[]) =>
  runWith(['analytics', 'summary', ...args], { env, clock })

test('a summary of a database without a store makes nothing there', async () => {
  const server = await postgresServer()
  const url = await server.createDatabase()
  const { code, stderr } = await run({ STORE_URL: url, ANALYTICS_DATASTORE_TABLE: 'visits' })
  expect({ code, stderr }).toEqual({ code: 2, stderr: expect.stringContaining('nothing is stored at') })
  const { rows } = await server.query(
    url,
    "SELECT nspname FROM pg_namespace WHERE nspname LIKE 'platformctl%'",
  )
  expect(rows).toEqual([])
})

test('the summary shows kinds and days with a bar each, and as JSON every day of the range', async () => {
  const env = await stored()
  // The last 30 days, if nothing else is asked for.
  const { code, stdout, stderr } = await run(env)
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
  expect(stdout.replace(/, \d+\.\d kB/, '')).toBe(`12 events from 2026-10-23 to 2026-11-21 (UTC)
13 stored in all, in 1 batch

by kind
  lesson.viewed  9  75.0 %  ${'█'.repeat(48)}
  circuit.run    3  25.0 %  ${'█'.repeat(16)}

by day
  2026-11-19  3  ${'█'.repeat(24)}
  2026-11-20  3  ${'█'.repeat(24)}
  2026-11-21  6  ${'█'.repeat(48)}
`)
  const summary = JSON.parse((await run(env, '--days', '60', '--format', 'json')).stdout)
  expect(summary).toMatchObject({
    version: 1,
    from: '2026-09-23',
    to: '2026-11-21',
    total: 13,
    kinds: [
      { kind: 'lesson.viewed', count: 9 },
      { kind: 'circuit.run', count: 3 },
      { kind: 'page.viewed', count: 1 },
    ],
    stored: { batches: 1, events: 13, bytes: expect.any(Number) },
  })
  expect(summary.days).toHaveLength(60)
  expect(summary.days.at(-1)).toEqual({
    day: '2026-11-21',
    count: 6,
    kinds: { 'lesson.viewed': 3, 'circuit.run': 3 },
  })
})

test('without stored events it says why, and creates no file', async () => {
  expect(await run({})).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('ANALYTICS_DATASTORE_TABLE'),
  })
  const file = path.join(await emptyFolder(), 'store.sqlite')
  expect(await run({ STORE_URL: `sqlite:${file}`, ANALYTICS_DATASTORE_TABLE: 'visits' })).toMatchObject({
    code: 2,
    stdout: '',
    stderr: expect.stringContaining('store-analytics.sqlite'),
  })
  for (const days of ['0', '401'])
    expect(await run({}, '--days', days)).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('from 1 to 400'),
    })
})

test('a store that cannot be reached is exit 3, and a kind and a day with few events have a bar too', async () => {
  const away = { STORE_URL: 'postgres://a:b@127.0.0.1:1/x', ANALYTICS_DATASTORE_TABLE: 'visits' }
  expect(await run(away)).toMatchObject({
    code: 3,
    stdout: '',
    stderr: expect.stringMatching(/^platformctl: [^\n]*PostgreSQL[^\n]*\n$/),
  })
  const counts = [
    { day: '2026-11-19', kind: 'a', count: 1 },
    { day: '2026-11-20', kind: 'b', count: 10_000 },
    // Outside of the days that were asked for.
    { day: '2026-11-18', kind: 'c', count: 5 },
    { day: '2026-11-22', kind: 'c', count: 5 },
  ]
  const summary = summariseEvents(counts, { batches: 2, events: 10_001, bytes: undefined }, NOW, 3)
  expect(
    summaryText(summary, await loadPaint(false), 40),
  ).toBe(`10,001 events from 2026-11-19 to 2026-11-21 (UTC)
10,001 stored in all, in 2 batches

by kind
  b  10,000  100.0 %  ${'█'.repeat(18)}
  a       1    0.0 %  ▏

by day
  2026-11-19       1  ▏
  2026-11-20  10,000  ${'█'.repeat(18)}
  2026-11-21       0
`)
})

test('db status shows the events stored beside the store', async () => {
  const env = await stored()
  const status = async (...args: string[]) => {
    const { code, stdout } = await runWith(['db', 'status', ...args], { env, clock })
    expect(code).toBe(0)
    return stdout
  }
  expect((await runWith(['db', 'migrate'], { env })).code).toBe(0)
  expect(await status()).toMatch(
    /^analytics +13 events in 1 batch, [\d.]+ kB \(visits in .*store-analytics\.sqlite\)$/m,
  )
  expect(JSON.parse(await status('--format', 'json')).analytics).toMatchObject({
    table: 'visits',
    events: 13,
  })
  env.ANALYTICS_DATASTORE_TABLE = ''
  expect(await status()).not.toContain('analytics')
})
