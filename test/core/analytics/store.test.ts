import { expect, test } from 'vitest'
import {
  type AnalyticsStore,
  createIngest,
  type Destination,
  RETENTION_DAYS,
} from '../../../src/core/analytics/store.ts'
import { systemClock } from '../../../src/core/host.ts'

const DAY = 86_400_000
const NOW = Date.UTC(2026, 10, 21, 12)
const event = (at: number, kind = 'page.viewed') => ({ kind, at })

/** Ingest over a store that remembers what it was given. */
function ingest({ total = 0, destination }: { total?: number; destination?: Destination } = {}) {
  const time = { now: NOW }
  const seen: Parameters<AnalyticsStore['append']>[0][] = []
  const pruned: number[] = []
  const refused: string[] = []
  const state = { repeated: false, pruneFails: false }
  const store: AnalyticsStore = {
    append: async (batch) => {
      seen.push(batch)
      return state.repeated ? { kind: 'repeated' } : { kind: 'stored', bytes: 10 }
    },
    usage: async () => ({ total, today: 0, disk: undefined }),
    counts: async () => [],
    prune: async (before) => {
      pruned.push(before)
      if (state.pruneFails) throw new Error('the store is busy')
    },
    status: async () => ({ kind: 'sqlite', table: 't', batches: 0, events: 0, bytes: 0 }),
    ping: async () => {},
    close: async () => {},
  }
  const made = createIngest({
    destination: destination ?? { store: async () => store },
    events: [{ name: 'page.viewed' }, { name: 'lesson.viewed' }],
    budget: { totalBytes: 1000, dailyBytes: 800 },
    clock: { ...systemClock, now: () => time.now, monotonic: () => time.now },
    onRefused: (refusal) => void refused.push(refusal),
  })
  const take = (events: unknown[], options: { objects?: boolean; client?: string; id?: string } = {}) =>
    made.take({ id: options.id, events }, { objects: options.objects ?? false, client: options.client })
  return { ...made, take, seen, pruned, refused, state, time }
}

test.each([
  ['a day ahead', NOW + DAY, true],
  ['more than a day ahead', NOW + DAY + 1, false],
  ['as old as the retention', NOW - RETENTION_DAYS * DAY, true],
  ['older than the retention', NOW - RETENTION_DAYS * DAY - 1, false],
])('an event from %s is taken: %s', async (_, at, taken) => {
  const it = ingest()
  expect(await it.take([event(at), event(NOW)])).toEqual({
    accepted: taken ? 2 : 1,
    dropped: taken ? {} : { time_out_of_range: 1 },
    stored: true,
  })
})

test('a batch without an event that may stay is not stored', async () => {
  const it = ingest()
  expect(await it.take(['x', { kind: 'unknown', at: NOW }, event(-1)])).toEqual({
    accepted: 0,
    dropped: { malformed: 1, unknown_kind: 1, time_out_of_range: 1 },
    stored: false,
    reason: 'no event is left to store',
  })
  expect(it.seen).toEqual([])
})

test('without a destination the answer says why, and counts all the same', async () => {
  const it = ingest({ destination: { store: undefined, reason: 'no table' } })
  expect(await it.take([event(NOW), 'x'])).toEqual({
    accepted: 1,
    dropped: { malformed: 1 },
    stored: false,
    reason: 'no table',
  })
  expect(await it.size()).toBeUndefined()
  await it.prune()
  expect(it.pruned).toEqual([])
})

test('a batch is stored with the time of the server, its counts by day and kind, and a digest for its id', async () => {
  const it = ingest()
  await it.take(
    [
      event(NOW),
      event(NOW),
      event(NOW, 'lesson.viewed'),
      event(NOW - (NOW % DAY) - 1),
      event(NOW - (NOW % DAY)),
    ],
    { id: 'batch-1' },
  )
  await it.take([event(NOW)])
  expect(it.seen[0]).toMatchObject({
    receivedAt: NOW,
    counts: [
      { day: '2026-11-21', kind: 'page.viewed', count: 3 },
      { day: '2026-11-21', kind: 'lesson.viewed', count: 1 },
      { day: '2026-11-20', kind: 'page.viewed', count: 1 },
    ],
  })
  expect(it.seen[0]?.id).toHaveLength(16)
  expect(Buffer.from(it.seen[0]?.id ?? []).toString()).not.toContain('batch')
  expect(it.seen[1]?.id).toBeUndefined()
  // An id that already looks like a digest is hashed too.
  for (const [id, form] of [
    ['sixteen letters!', 'utf8'],
    ['0f'.repeat(16), 'hex'],
    [`${'A1b2'.repeat(5)}Aw`, 'base64url'],
  ] as const) {
    await it.take([event(NOW)], { id })
    expect(Buffer.from(it.seen.at(-1)?.id ?? []).toString(form)).not.toBe(id)
  }
})

test('acknowledges a repeated batch without charging its client', async () => {
  const it = ingest()
  it.state.repeated = true
  for (let n = 0; n < 20; n += 1)
    expect(await it.take([event(NOW)], { client: 'a', id: 'same' })).toMatchObject({
      stored: true,
      reason: 'this batch was stored before',
    })
  it.state.repeated = false
  for (let n = 0; n < 10; n += 1)
    expect(await it.take([event(NOW)], { client: 'a' })).toMatchObject({ stored: true })
  expect(await it.take([event(NOW)], { client: 'a' })).toMatchObject({
    accepted: 1,
    stored: false,
    reason: expect.stringContaining('this client'),
  })
  expect(it.refused).toEqual(['client'])
})

test('when all is full old batches go, and the answer and health say so', async () => {
  const it = ingest({ total: 1000 })
  expect(it.full()).toBeUndefined()
  expect(await it.take([event(NOW)])).toMatchObject({
    stored: false,
    reason: expect.stringContaining('ANALYTICS_TOTAL_MB'),
  })
  expect([it.pruned, it.refused, it.seen]).toEqual([[NOW - RETENTION_DAYS * DAY], ['total'], []])
  expect(it.full()).toContain('ANALYTICS_TOTAL_MB')
  expect(await it.size()).toBe(1000)
})

test('old batches go once a day, and a day whose attempt failed is tried again', async () => {
  const it = ingest()
  await it.take([event(NOW)])
  await it.take([event(NOW)])
  expect(it.pruned).toHaveLength(1)
  it.time.now += DAY
  it.state.pruneFails = true
  await it.take([event(NOW)])
  expect(it.pruned).toHaveLength(2)
  it.state.pruneFails = false
  await it.take([event(NOW)])
  await it.take([event(NOW)])
  expect(it.pruned).toHaveLength(3)
})
