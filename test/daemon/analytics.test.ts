import { readdir, readFile } from 'node:fs/promises'
import path from 'node:path'
import Database from 'better-sqlite3'
import { expect, onTestFinished, test } from 'vitest'
import { OPT_OUT_KEY } from '../../src/core/analytics/events.ts'
import { RETENTION_DAYS } from '../../src/core/analytics/store.ts'
import { systemClock } from '../../src/core/host.ts'
import { openPlatform } from '../../src/daemon/index.ts'
import { bodyOf } from '../support/accounts.ts'
import { emptyFolder } from '../support/folder.ts'
import { EVENT_KINDS } from '../support/learning.ts'
import { asking, opened } from '../support/opened.ts'

const NOW = Date.UTC(2026, 10, 21, 12)
const DAY = 86_400_000

async function platform(env: Record<string, string> = {}) {
  const folder = await emptyFolder()
  const time = { now: NOW }
  const it = opened({
    env: {
      STORE_URL: `sqlite:${path.join(folder, 'store.sqlite')}`,
      ANALYTICS_DATASTORE_TABLE: 'visits',
      RATE_LIMIT_PER_MINUTE: '100000',
      ...env,
    },
    clock: { ...systemClock, now: () => time.now },
  })
  const post = async (body: unknown, headers: Record<string, string> = {}, from = '127.0.0.1') => {
    const response = await it.post('/api/analytics', body, headers, from)
    return { status: response.status, body: await bodyOf(response) }
  }
  const file = path.join(folder, 'store-analytics.sqlite')
  const rows = (query: string) => {
    const database = new Database(file, { readonly: true })
    try {
      return database.prepare(query).all()
    } finally {
      database.close()
    }
  }
  return { ...it, post, rows, file, folder, time }
}

const event = (properties: Record<string, unknown> = {}, at: unknown = NOW, kind = 'lesson.viewed') => ({
  kind,
  at,
  properties,
})

test('events are stored sanitised, one row a batch, and counted by kind and day', async () => {
  const { post, rows } = await platform()
  const answer = await post({
    batch: 'one',
    events: [
      event({ lesson: 3, email: 'anna@example.com', list: [] }),
      event({ lesson: 4 }, NOW - DAY),
      event({ lesson: 3 }, new Date(NOW).toISOString()),
      event({}, NOW, 'circuit.run'),
      event({}, NOW, 'lesson.deleted'),
      'nonsense',
    ],
  })
  expect(answer).toEqual({
    status: 202,
    body: {
      accepted: 4,
      dropped: { property_personal: 1, property_type: 1, unknown_kind: 1, malformed: 1 },
      stored: true,
    },
  })
  expect(rows('SELECT count(*) AS batches, sum(size) AS size FROM visits')).toEqual([{ batches: 1, size: 4 }])
  expect(rows('SELECT * FROM visits_daily')).toEqual([
    { day: '2026-11-20', kind: 'lesson.viewed', count: 1 },
    { day: '2026-11-21', kind: 'circuit.run', count: 1 },
    { day: '2026-11-21', kind: 'lesson.viewed', count: 2 },
  ])
  expect(rows('SELECT batch, kind, at, properties FROM visits_events LIMIT 1')).toEqual([
    { batch: 1, kind: 'lesson.viewed', at: NOW, properties: '{"lesson":3}' },
  ])
})

test('acknowledges a repeated batch without storing it twice, from whatever network it comes', async () => {
  const { post, rows } = await platform()
  const batch = { batch: 'b-1', events: [event(), event()] }
  expect((await post(batch)).body).toEqual({ accepted: 2, dropped: {}, stored: true })
  const again = await Promise.all([post(batch), post(batch), post(batch, {}, '198.51.100.7')])
  expect(again.map(({ status, body }) => [status, body.accepted, body.stored])).toEqual(
    Array(3).fill([202, 2, true]),
  )
  expect(again[0]?.body.reason).toMatch(/stored before/)
  expect(rows('SELECT count FROM visits_daily')).toEqual([{ count: 2 }])
  await post({ events: [event()] })
  await post({ events: [event()] })
  expect(rows('SELECT count FROM visits_daily')).toEqual([{ count: 4 }])
})

test('a client gets an eighth of a day, and all those of a host that passes no socket on more than that', async () => {
  const { post } = await platform({ ANALYTICS_DAILY_MB: '1' })
  const text = 'a word '.repeat(8)
  const events = Array(500).fill(event({ a: text, b: text, c: text, d: text }))
  const stored = async (from: string) => (await post({ events }, {}, from)).body.stored
  expect([await stored('198.51.100.7'), await stored('198.51.100.7')]).toEqual([true, false])
  expect([await stored(''), await stored('')]).toEqual([true, true])
})

test('a batch of another form, of over 500 events or 256 KB, or of another media type is refused, and nothing is opened', async () => {
  const { post, folder } = await platform()
  for (const [body, status] of [
    [{ events: Array(501).fill(event()) }, 400],
    [{}, 400],
    [{ events: {} }, 400],
    [{ events: [], user: 'anna' }, 400],
    [{ batch: 'anna@example.com', events: [] }, 400],
    [{ batch: 5, events: [] }, 400],
    [[], 400],
    ['{"events":[{"kind":"lesson.viewed","at":NaN}]}', 400],
    [`{"events":${'['.repeat(100_000)}`, 400],
    [{ events: [event({ text: 'x'.repeat(270_000) })] }, 413],
  ] as const) {
    // Also from a client that objects, whose events nobody keeps.
    for (const answer of [await post(body), await post(body, { 'Sec-GPC': '1' })]) {
      expect(answer.status).toBe(status)
      expect(answer.body).toMatchObject({
        code: status === 413 ? 'payload_too_large' : 'bad_request',
        status,
      })
    }
  }
  expect((await post('events=1', { 'Content-Type': 'application/x-www-form-urlencoded' })).status).toBe(415)
  expect((await post({ events: [] }, { 'Content-Encoding': 'gzip' })).status).toBe(415)
  expect(await readdir(folder)).not.toContain('store-analytics.sqlite')
})

test.each([
  ['nested values', event({ a: { b: { c: [1, 2] } } }), { property_type: 1 }, 1],
  ['a long text', event({ text: 'x'.repeat(200_000) }), {}, 1],
  ['a clock two days ahead', event({}, NOW + 2 * DAY), { time_out_of_range: 1 }, 0],
  ['a clock at 1970', event({}, 0), { time_out_of_range: 1 }, 0],
  ['a clock before what is kept', event({}, NOW - (RETENTION_DAYS + 1) * DAY), { time_out_of_range: 1 }, 0],
  ['null', null, { malformed: 1 }, 0],
])('%s is a counted drop and never a fault', async (_, given, dropped, accepted) => {
  const { post } = await platform()
  expect(await post({ events: [given] })).toMatchObject({ status: 202, body: { accepted, dropped } })
})

test('takes the last value of a duplicate key, and keeps nothing of the first', async () => {
  const { post, rows } = await platform()
  const text = `{"events":[{"kind":"page.viewed","kind":"lesson.viewed","at":${NOW},"properties":{"page":"canary","page":"home"}}]}`
  expect((await post(text)).body).toMatchObject({ accepted: 1, stored: true })
  expect(rows('SELECT events FROM visits')).toEqual([
    { events: JSON.stringify([['lesson.viewed', NOW, { page: 'home' }]]) },
  ])
})

test.each([
  ['no table is named', { ANALYTICS_DATASTORE_TABLE: '' }, /no table/],
  ['the store is not persistent', { STORE_URL: '' }, /not persistent/],
  ['the name is no identifier', { ANALYTICS_DATASTORE_TABLE: 'visits"; DROP TABLE x' }, /no table/],
  ['the name belongs to SQLite', { ANALYTICS_DATASTORE_TABLE: 'sqlite_visits' }, /no table/],
])('stores nothing if %s, and says so in the response', async (_, env, reason) => {
  const { post, folder } = await platform(env)
  const { status, body } = await post({ events: [event()] })
  expect({ status, ...body }).toEqual({
    status: 202,
    accepted: 1,
    dropped: {},
    stored: false,
    reason: expect.stringMatching(reason),
  })
  expect(await readdir(folder)).toEqual([])
})

test('Global Privacy Control is an objection: nothing of the request is kept', async () => {
  const { post, folder } = await platform()
  const answer = await post({ events: [event(), event()] }, { 'Sec-GPC': '1' })
  expect(answer).toMatchObject({
    status: 202,
    body: { accepted: 0, dropped: { opted_out: 2 }, stored: false },
  })
  expect(await readdir(folder)).toEqual([])
  // No other value of the header objects.
  expect((await post({ events: [event()] }, { 'Sec-GPC': '0' })).body).toMatchObject({ stored: true })
})

test('batches older than the retention time are deleted, together with their counts', async () => {
  const { platform: it, post, rows, time } = await platform()
  for (let batch = 0; batch < 45; batch += 1) await post({ events: [event()] })
  time.now = NOW + (RETENTION_DAYS - 1) * DAY
  await post({ events: [event({}, time.now)] })
  await it.ingest.prune()
  expect(rows('SELECT count(*) AS batches FROM visits')).toEqual([{ batches: 46 }])
  time.now = NOW + (RETENTION_DAYS + 1) * DAY
  await it.ingest.prune()
  expect(rows('SELECT count(*) AS batches FROM visits')).toEqual([{ batches: 1 }])
  expect(rows('SELECT count FROM visits_daily')).toEqual([{ count: 1 }])
})

test('without a schedule, the first batch of a day deletes old batches', async () => {
  const { post, rows, time } = await platform()
  await post({ events: [event()] })
  time.now = NOW + (RETENTION_DAYS + 1) * DAY
  await post({ events: [event({}, time.now)] })
  await expect.poll(() => rows('SELECT count(*) AS batches FROM visits')).toEqual([{ batches: 1 }])
})

test('answers 503 if the store cannot be opened, and retries with the next request', async () => {
  const folder = await emptyFolder()
  const { post } = await platform({ STORE_URL: `sqlite:${path.join(folder, 'store.sqlite')}` })
  const database = new Database(path.join(folder, 'store-analytics.sqlite'))
  // A file of ours, by its mark, in which the name is taken.
  database.exec(
    'PRAGMA application_id = 0x504c4154; CREATE TABLE other (x); CREATE INDEX visits ON other (x)',
  )
  expect(await post({ events: [event()] })).toMatchObject({
    status: 503,
    body: { code: 'store_unavailable' },
  })
  database.exec('DROP INDEX visits')
  database.close()
  expect((await post({ events: [event()] })).body).toMatchObject({ stored: true })
})

// Thirty ways in which personal data gets into an event; each holds the canary once.
const SHAPES: readonly ((canary: string) => unknown)[] = [
  ...[
    'email',
    'userEmail',
    'firstName',
    'last_name',
    'téléphone',
    'clientIp',
    'homeAddress',
    'birth-date',
  ].map((key) => (canary: string) => event({ [key]: canary })),
  ...['password', 'apiKey', 'sessionId', 'Authorization', 'iban', 'credit_card', 'пароль', '邮箱'].map(
    (key) => (canary: string) => event({ [key]: canary }),
  ),
  (canary) => event({ note: `${canary}@example.com` }),
  (canary) => event({ note: `write to ${canary}%40example.com` }),
  (canary) => event({ note: `${'x'.repeat(64)}${canary}` }),
  (canary) => event({ note: { email: canary } }),
  (canary) => event({ note: [canary] }),
  (canary) => event({ [`${canary}@example.com`]: true }),
  (canary) => event({ [`+49 ${canary}`]: true }),
  (canary) => event({ [`${'x'.repeat(64)}${canary}`]: true }),
  (canary) => ({ ...event(), user: canary }),
  (canary) => ({ ...event(), kind: canary }),
  (canary) => ({ ...event(), at: canary }),
  (canary) => ({ ...event(), properties: canary }),
  (canary) => canary,
  (canary) => JSON.parse(`{"kind":"lesson.viewed","at":${NOW},"properties":{"__proto__":{"x":"${canary}"}}}`),
]

test('none of 100,000 canaries in 30 shapes reaches the database, its WAL, the log or the response', async () => {
  expect(SHAPES).toHaveLength(30)
  const { platform: it, post, file, lines } = await platform()
  const answers: string[] = []
  for (let batch = 0; batch < 200; batch += 1) {
    const events = Array.from({ length: 500 }, (_, index) => SHAPES[index % 30]?.(`canary${batch}x${index}`))
    const answer = await post({ batch: `batch-${batch}`, events })
    expect(answer.status).toBe(202)
    answers.push(JSON.stringify(answer.body))
  }
  const left = [await readFile(file), await readFile(`${file}-wal`)]
  await it.close()
  left.push(await readFile(file))
  for (const bytes of left) expect(bytes.includes('canary')).toBe(false)
  expect(left[2]?.includes('lesson.viewed')).toBe(true)
  expect(JSON.stringify([lines, answers])).not.toContain('canary')
})

test('a platform of one’s own takes its kinds with the properties that they list, and of its preset’s kinds all', async () => {
  const events = { 'kiln.booked': { kiln: 'string', cones: 'number' } } as const
  const own = openPlatform({ env: {}, platform: { preset: 'base', services: { web: {} }, events } })
  onTestFinished(() => own.close())
  const { post } = asking({ web: own.web, api: own.web, agent: own.web })
  const batch = [
    event({ kiln: 'gas', cones: '6', glaze: 'celadon' }, Date.now(), 'kiln.booked'),
    event({ page: 'home' }, Date.now(), 'page.viewed'),
    event({}, Date.now(), 'course.subscribed'),
    event({ lesson: 3 }, Date.now()),
  ]
  expect(await bodyOf(await post('/api/analytics', { events: batch }))).toMatchObject({
    accepted: 3,
    dropped: { property_type: 1, property_unknown: 1, unknown_kind: 1 },
    stored: false,
  })
})

test('the fifteen kinds are taken, whose names programs and browsers know as they know the key that opts out', async () => {
  const { post, rows } = await platform()
  expect(EVENT_KINDS).toEqual([
    ...['lesson.viewed', 'circuit.run', 'tutor.asked', 'exam.completed', 'lesson.completed'],
    ...['exam.started', 'circuit.saved', 'circuit.shared', 'tutor.rated', 'device.selected'],
    ...['search.performed', 'page.viewed', 'pricing.viewed', 'checkout.started', 'course.subscribed'],
  ])
  expect(OPT_OUT_KEY).toBe('platform.optOut')
  expect((await post({ events: EVENT_KINDS.map((kind) => event({}, NOW, kind)) })).body).toMatchObject({
    accepted: 15,
  })
  expect(rows('SELECT count(*) AS kinds FROM visits_daily')).toEqual([{ kinds: 15 }])
})
