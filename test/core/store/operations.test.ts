import { describe, expect, onTestFinished, test } from 'vitest'
import type { AuditEntry } from '../../../src/core/audit.ts'
import { DAY_MS, HOUR_MS, MINUTE_MS } from '../../../src/core/durations.ts'
import type { MailCount } from '../../../src/core/mail/feedback/sending.ts'
import { suppressionChange } from '../../../src/core/mail/feedback/store.ts'
import { DAYS_KEPT, HOURS_KEPT, INCIDENTS_KEPT_PER_PROBE } from '../../../src/core/status/history.ts'
import { openHistory } from '../../../src/core/store/open.ts'
import { addressOf, isErased, openTestStore } from '../../support/stores.ts'
import { audited, erasureOf } from '../../support/subscribers.ts'

const NOW = 20_000 * DAY_MS

const counted = (kind: MailCount['kind'], count: number, at: number, domain = 'other'): MailCount => ({
  at,
  kind,
  source: 'smtp',
  domain,
  count,
})

describe.each(['sqlite', 'postgres'] as const)('on %s', (kind) => {
  const opened = async () => {
    const lease = { now: 1_000_000 }
    return { lease, ...(await openTestStore(await addressOf(kind), () => lease.now)) }
  }

  test('courses pause by what the last 24 hours hold, to the minute, and not by what was there before they were resumed', async () => {
    const { sending, audit } = await opened()
    const before = NOW - DAY_MS
    await sending.count([counted('sent', 50, NOW - 1), counted('hard-bounce', 2, NOW)])
    // The minute that began a day ago counts no more.
    await sending.count([counted('hard-bounce', 9, before + MINUTE_MS - 1)])
    expect(await sending.check(NOW)).toBeUndefined()
    await sending.count([counted('hard-bounce', 1, before + MINUTE_MS)])
    const pause = { at: NOW + 1, reason: expect.stringContaining('3 of 50 messages') }
    expect(await sending.check(NOW + 1)).toEqual(pause)
    // A pause keeps its time and its reason, and ends by the operator alone.
    expect(await sending.check(NOW + 2 * DAY_MS)).toEqual(pause)
    expect(await sending.holds()).toEqual([{ stream: 'course', ...pause }])
    const entry = audited('resume', NOW + 2)
    const resume = (entry: AuditEntry) => sending.resume({ streams: ['course'], now: NOW + 2, audit: entry })
    expect(await resume(entry)).toEqual([{ stream: 'course', ...pause }])
    expect(await resume({ ...entry, id: `${entry.id}x` })).toEqual([])
    expect(await audit.list(9)).toHaveLength(1)
    expect(await sending.holds()).toEqual([])
    await sending.count([counted('sent', 50, NOW + 3), counted('hard-bounce', 50, NOW + 3)])
    expect(await sending.check(NOW + 4)).toBeUndefined()
    await sending.count([counted('sent', 50, NOW + MINUTE_MS), counted('hard-bounce', 50, NOW + MINUTE_MS)])
    expect(await sending.check(NOW + MINUTE_MS)).toMatchObject({ at: NOW + MINUTE_MS })
  })

  test('counts of a day are added up by source and domain, and minutes are deleted without their days', async () => {
    const { sending } = await opened()
    const two = (at: number, domain = 'other') => counted('sent', 2, at, domain)
    await sending.count([two(NOW), two(NOW + DAY_MS - 1), two(NOW, 'gmail.com'), two(NOW - 1)])
    await sending.count([two(NOW), counted('complaint', 1, NOW)])
    await sending.count([])
    const days = async (since: number) =>
      (await sending.days(since)).map(({ domain, kind: of, count }) => `${domain} ${of} ${count}`)
    expect(await days(NOW + 5)).toEqual(['gmail.com sent 2', 'other complaint 1', 'other sent 6'])
    expect(await days(NOW - 1)).toHaveLength(4)
    await sending.prune(NOW + 2 * DAY_MS)
    expect(await sending.check(NOW + DAY_MS - 1)).toBeUndefined()
    expect(await days(NOW - 1)).toHaveLength(4)
  })

  test('a report takes effect once for its key, not for the erased, and its key is forgotten after its time', async () => {
    const { feedback, course } = await opened()
    const suppression = { cause: 'hard-bounce', at: NOW, reason: 'r', source: 'standard' } as const
    const change = (identity: string, key?: string, hashes: readonly string[] = []) => ({
      ...suppressionChange(identity, suppression, () => hashes),
      key,
    })
    const apply = (now: number, ...changes: ReturnType<typeof change>[]) => feedback.apply(changes, now)
    expect(await apply(NOW, change('a@x.example', 'one'), change('b@x.example', 'one'))).toEqual([
      'changed',
      'repeated',
    ])
    expect(await apply(NOW, change('a@x.example'))).toEqual(['unchanged'])
    expect(await feedback.find('b@x.example')).toBeUndefined()
    await course.erase(erasureOf('cy', 'hash-c', NOW))
    expect(await apply(NOW, change('cy@example.com', 'two', ['other', 'hash-c']))).toEqual(['erased'])
    expect(await feedback.find('cy@example.com')).toBeUndefined()
    await feedback.prune(NOW)
    expect(await apply(NOW, change('b@x.example', 'one'))).toEqual(['repeated'])
    await feedback.prune(NOW + 1)
    expect(await apply(NOW, change('b@x.example', 'one'))).toEqual(['changed'])
    const listed = async (...asked: Parameters<typeof feedback.listSuppressed>) =>
      (await feedback.listSuppressed(...asked)).map(({ identity }) => identity)
    expect(await listed(9)).toEqual(['a@x.example', 'b@x.example'])
    expect(await listed(1)).toEqual(['a@x.example'])
    const later = suppressionChange('0@x.example', { ...suppression, at: NOW + 1 }, () => [])
    await feedback.apply([later], NOW + 1)
    expect(await listed(9, { at: NOW, identity: 'a@x.example' })).toEqual(['b@x.example', '0@x.example'])
  })

  test('a list may hold texts that PostgreSQL cannot store: they are found again as they were stored', async () => {
    const { feedback, incidents, course } = await opened()
    const odd = 'a \0 of \ud83d'
    const suppression = { cause: 'hard-bounce', at: NOW, reason: 'r', source: 'standard' } as const
    const change = { ...suppressionChange('a@x.example', suppression, () => [odd]), key: odd }
    expect(await feedback.apply([change], NOW)).toEqual(['changed'])
    expect(await feedback.apply([change], NOW)).toEqual(['repeated'])
    await incidents.follow({
      ...{ now: NOW, channels: [] },
      decide: () => ({ told: [{ incident: odd, kind: 'opened', channel: 'mail', at: NOW }] }),
    })
    expect(await incidents.messages([odd])).toMatchObject([{ channel: 'mail', outcome: 'sent' }])
    expect(await feedback.wasSent({ identity: odd, recipients: [odd], messageId: odd })).toBe(false)
    const erased = { identity: odd, spellings: [odd], recipients: [odd], suppressionHash: odd, now: NOW }
    expect(await course.erase(erased)).toMatchObject({ existed: false })
    expect(await isErased({ course }, odd)).toBe(true)
    expect(await course.findPerson(odd)).toEqual([])
  })

  test('the first platform to claim a store keeps it until another adopts it', async () => {
    const { owner } = await opened()
    expect(await owner.name()).toBeUndefined()
    const claims = await Promise.all(['Kiln School', 'Quantum'].map((name) => owner.claim(name)))
    expect(new Set(claims).size).toBe(1)
    expect(await owner.name()).toBe(claims[0])
    expect(await owner.claim('Another')).toBe(claims[0])
    expect(await owner.claim('Another', true)).toBe('Another')
    expect(await owner.claim('Another')).toBe('Another')
    expect(await owner.name()).toBe('Another')
  })

  test('what a replica runs with is noted for the others until it was not seen for three minutes', async () => {
    const { noteConfiguration } = await opened()
    expect(await noteConfiguration('a', 'one', 0)).toEqual([])
    expect(await noteConfiguration('b', 'two', 60_000)).toEqual(['one'])
    expect(await noteConfiguration('a', 'two', 120_000)).toEqual(['two'])
    expect(await noteConfiguration('b', 'two', 299_999)).toEqual(['two'])
    expect(await noteConfiguration('b', 'two', 300_000)).toEqual([])
  })

  test('a value is made once, and the last hour is the latest that anybody took', async () => {
    const { getOrCreate, lastHour, claimHour, forgetHoursAfter, ping } = await opened()
    expect([await getOrCreate('key', () => 'one'), await getOrCreate('key', () => 'two')]).toEqual([
      'one',
      'one',
    ])
    expect(await lastHour()).toBeUndefined()
    for (const hour of ['2026-11-21T05', '2026-11-21T04']) await claimHour({ hour, leaseMs: 1000 })
    expect(await lastHour()).toBe('2026-11-21T05')
    expect([await forgetHoursAfter('2026-11-21T04'), await lastHour()]).toEqual([1, '2026-11-21T04'])
    await ping()
    expect(await getOrCreate('key', () => 'three')).toBe('one')
  })

  test('processes that check their store at the same moment find it well', async () => {
    const address = await addressOf(kind)
    const stores = await Promise.all(Array.from({ length: 6 }, () => openTestStore(address)))
    for (let round = 0; round < 8; round += 1) await Promise.all(stores.map((store) => store.ping()))
  })
})

test('a history keeps its hours, days and incidents as long as they are shown, and 200 incidents of a probe', async () => {
  const history = await openHistory(undefined)
  onTestFinished(() => history.close())
  const look = (at: number, state: 'ok' | 'failing' = 'ok', probe = 'mail') =>
    history.record({
      at,
      observations: [
        {
          service: 'web',
          probe,
          state,
          reason: undefined,
          latencyMs: 5,
          credit: { state, from: at - 1000, to: at },
        },
      ],
      builds: {},
    })
  const first = NOW - (DAYS_KEPT - 1) * DAY_MS
  await look(first - 1)
  await look(first + 5000)
  const begun = NOW - (DAYS_KEPT - 2) * DAY_MS
  await look(begun, 'failing')
  await look(begun + 1000)
  const hour = NOW - (HOURS_KEPT - 2) * HOUR_MS
  await look(hour + 1000)
  await look(NOW + 1000)
  const [mail] = (await history.read(NOW)).series
  expect(mail?.days.map(({ start }) => start)).toEqual([first, begun, hour - (hour % DAY_MS), NOW])
  expect(mail?.hours.map(({ start }) => start)).toEqual([hour, NOW])
  expect((await history.read(NOW)).incidents).toMatchObject([
    { probe: 'mail', beganAt: begun, endedAt: begun + 1000 },
  ])
  // A fault that was seen ten minutes ago goes on, and one of longer ago is another.
  await look(NOW + 1, 'failing', 'store')
  await look(NOW + 1 + 10 * MINUTE_MS, 'failing', 'store')
  await look(NOW + 2 + 20 * MINUTE_MS, 'failing', 'store')
  const store = async (now: number) =>
    (await history.read(now)).incidents.filter(({ probe }) => probe === 'store')
  expect(
    (await store(NOW + HOUR_MS)).map(({ beganAt, endedAt }) => [beganAt - NOW, endedAt && endedAt - NOW]),
  ).toEqual([
    [2 + 20 * MINUTE_MS, undefined],
    [1, 1 + 10 * MINUTE_MS],
  ])
  for (let n = 0; n < INCIDENTS_KEPT_PER_PROBE; n += 1) {
    await look(NOW + HOUR_MS + n * 2000, 'failing', 'store')
    await look(NOW + HOUR_MS + n * 2000 + 1000, 'ok', 'store')
  }
  const next = NOW + DAY_MS
  await look(next)
  expect(await store(next)).toHaveLength(INCIDENTS_KEPT_PER_PROBE)
  expect((await store(next)).at(-1)?.beganAt).toBe(NOW + HOUR_MS)
})
