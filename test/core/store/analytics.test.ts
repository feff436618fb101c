import { describe, expect, onTestFinished, test } from 'vitest'
import type { AnalyticsEvent } from '../../../src/core/analytics/events.ts'
import { dayOf } from '../../../src/core/analytics/store.ts'
import type { StoreAddress } from '../../../src/core/env/settings.ts'
import { secret } from '../../../src/core/secret.ts'
import { openAnalyticsStore } from '../../../src/core/store/open.ts'
import { createPool, transaction } from '../../../src/core/store/postgres/connection.ts'
import { addressOf, newDatabase } from '../../support/stores.ts'

const NOW = Date.UTC(2026, 10, 21, 12)
const events: readonly AnalyticsEvent[] = [
  { kind: 'lesson.viewed', at: NOW, properties: { lesson: 3, topic: 'a "quoted" ünï \0 text', done: true } },
  { kind: 'circuit.run', at: NOW - 1, properties: {} },
]
const counts = [
  { day: '2026-11-20', kind: 'page.viewed' as const, count: 2 },
  { day: '2026-11-21', kind: 'circuit.run' as const, count: 1 },
]
const id = (value: number) => new Uint8Array(16).fill(value)

describe.each(['sqlite', 'postgres'] as const)('analytics in %s', (kind) => {
  const open = async (table = 'visits', at?: StoreAddress) => {
    const address = at ?? (await addressOf(kind))
    const store = await openAnalyticsStore(address, { table })
    onTestFinished(() => store.close())
    return { store, address }
  }

  test('a batch is stored once, however often and by how many it is sent', async () => {
    const { store, address } = await open()
    const { store: second } = await open('visits', address)
    const batch = { id: id(1), receivedAt: NOW, events, counts }
    const outcomes = await Promise.all(
      Array.from({ length: 20 }, (_, index) => (index % 2 ? store : second).append(batch)),
    )
    const [stored, ...others] = outcomes.filter((outcome) => outcome.kind === 'stored')
    expect(others).toEqual([])
    // Repeats use up no budget.
    expect((await store.usage(dayOf(NOW))).today).toBe(stored?.bytes)
    expect(await store.append({ ...batch, id: id(2) })).toMatchObject({ kind: 'stored' })
    expect(await store.append({ ...batch, id: undefined })).toMatchObject({ kind: 'stored' })
    expect(await store.append({ ...batch, id: undefined })).toMatchObject({ kind: 'stored' })
    expect(await store.status()).toEqual({
      kind: address.kind,
      table: 'visits',
      batches: 4,
      events: 8,
      bytes: expect.any(Number),
    })
  })

  test('counts are added up by day and kind, since a day', async () => {
    const { store } = await open()
    expect(await store.counts(undefined)).toEqual([])
    for (const value of [1, 2, 3]) await store.append({ id: id(value), receivedAt: NOW, events, counts })
    expect(await store.counts(undefined)).toEqual([
      { day: '2026-11-20', kind: 'page.viewed', count: 6 },
      { day: '2026-11-21', kind: 'circuit.run', count: 3 },
    ])
    expect(await store.counts('2026-11-21')).toEqual([{ day: '2026-11-21', kind: 'circuit.run', count: 3 }])
  })

  test('events received before a given time are deleted with their counts, in as many steps as needed', async () => {
    const { store } = await open()
    for (let index = 0; index < 530; index += 1)
      await store.append({ id: undefined, receivedAt: NOW + index, events, counts })
    await store.prune(NOW + 525)
    expect(await store.status()).toMatchObject({ batches: 5 })
    expect(await store.counts('2026-11-21')).toEqual([{ day: '2026-11-21', kind: 'circuit.run', count: 5 }])
    await store.prune(NOW)
    expect(await store.status()).toMatchObject({ batches: 5 })
  })

  test('keeps the events when opened again, and a second table beside them', async () => {
    const { store, address } = await open()
    await store.append({ id: id(1), receivedAt: NOW, events, counts })
    const { store: again } = await open('visits', address)
    expect(await again.status()).toMatchObject({ batches: 1 })
    const { store: other } = await open('a'.repeat(63), address)
    expect(await other.status()).toMatchObject({ batches: 0 })
    await other.append({ id: id(1), receivedAt: NOW, events, counts })
    expect(await other.counts('2026-11-21')).toHaveLength(1)
    await other.ping()
  })
})

test('in PostgreSQL the events are rows of a view, also with what it cannot store', async () => {
  const { address, query } = await newDatabase()
  const store = await openAnalyticsStore(address, { table: 'Visits' })
  await store.append({ id: undefined, receivedAt: NOW, events, counts })
  await store.close()
  const { rows } = await query(
    `SELECT kind, properties ->> 'topic' AS topic FROM platformctl_analytics."Visits_events" ORDER BY at DESC`,
  )
  expect(rows).toEqual([
    { kind: 'lesson.viewed', topic: 'a "quoted" ünï  text' },
    { kind: 'circuit.run', topic: null },
  ])
})

test('in PostgreSQL a dashboard that reads the views for long keeps no process from starting, and one without them gets them', async () => {
  const { url, address, query } = await newDatabase()
  const open = async () => (await openAnalyticsStore(address, { table: 'visits' })).close()
  await open()
  const pool = createPool({ url: secret(url), size: 1, limitMs: 60_000 })
  onTestFinished(() => pool.end())
  await transaction(pool, async (dashboard) => {
    await dashboard.query('SELECT * FROM platformctl_analytics.visits_events')
    await dashboard.query('SELECT * FROM platformctl_analytics.visits_daily')
    await open()
  })
  await query('DROP VIEW platformctl_analytics.visits_daily')
  await open()
  expect((await query('SELECT * FROM platformctl_analytics.visits_daily')).rowCount).toBe(0)
})

test('reports an unreachable server in one sentence without its address', async () => {
  const address: StoreAddress = { kind: 'postgres', url: secret('postgres://user:hunter2@127.0.0.1:1/x') }
  await expect(openAnalyticsStore(address, { table: 'visits' })).rejects.toThrow(
    'The PostgreSQL of STORE_URL refused the connection: check that it runs, and its host and port.',
  )
})
