import { describe, expect, onTestFinished, test } from 'vitest'
import { DAY_MS, HOUR_MS, MINUTE_MS } from '../../../src/core/durations.ts'
import type { MailCount } from '../../../src/core/mail/feedback/sending.ts'
import { suppressionChange } from '../../../src/core/mail/feedback/store.ts'
import { DAYS_KEPT, HOURS_KEPT, INCIDENTS_KEPT_PER_PROBE } from '../../../src/core/status/history.ts'
import { openHistory } from '../../../src/core/store/open.ts'
import { addressOf, isErased, openTestStore } from '../../support/stores.ts'
import { audited } from '../../support/subscribers.ts'

const NOW = 20_000 * DAY_MS

const counted = (kind: MailCount['kind'], count: number, at: number, domain = 'other'): MailCount => ({
  at,
  kind,
  source: 'smtp',
  domain,
  count,
})

describe.each(['sqlite', 'postgres'] as const)('on %s', (kind) => {
  const opened = async () => openTestStore(await addressOf(kind))

  test('courses pause by what the last 24 hours hold, to the minute, and not by what was there before they were resumed', async () => {
    const { sending } = await opened()
    const before = NOW - DAY_MS
    await sending.count([counted('sent', 50, NOW - 1), counted('hard-bounce', 2, NOW)])
    // The minute that began a day ago counts no more.
    await sending.count([counted('hard-bounce', 9, before + MINUTE_MS - 1)])
    expect(await sending.check(NOW)).toBeUndefined()
    await sending.count([counted('hard-bounce', 1, before + MINUTE_MS)])
    const pause = { at: NOW + 1, reason: expect.stringContaining('3 of 50 messages') }
    expect(await sending.check(NOW + 1)).toEqual(pause)
    const resume = { streams: ['course'], now: NOW + 2, audit: audited('resume', NOW + 2) } as const
    expect(await sending.resume(resume)).toEqual([{ stream: 'course', ...pause }])
    await sending.count([counted('sent', 100, NOW + 3), counted('hard-bounce', 4, NOW + 3)])
    expect(await sending.check(NOW + 4)).toBeUndefined()
    await sending.count([counted('hard-bounce', 1, NOW + MINUTE_MS)])
    const next = { at: NOW + MINUTE_MS, reason: expect.stringContaining('5 of 100 messages') }
    expect(await sending.check(NOW + MINUTE_MS)).toEqual(next)
  })

  test('minutes of mail are deleted without their days', async () => {
    const { sending } = await opened()
    await sending.count([counted('sent', 50, NOW), counted('complaint', 50, NOW)])
    await sending.prune(NOW + 2 * DAY_MS)
    expect(await sending.check(NOW + DAY_MS - 1)).toBeUndefined()
    expect((await sending.days(NOW + 5)).map(({ kind: of, count }) => `${of} ${count}`)).toEqual([
      'complaint 50',
      'sent 50',
    ])
  })

  test('suppressed addresses are listed page by page, by the time and then the address', async () => {
    const { feedback } = await opened()
    const listed = async (...asked: Parameters<typeof feedback.listSuppressed>) =>
      (await feedback.listSuppressed(...asked)).map(({ identity }) => identity)
    for (const [identity, at] of [
      ['b@x', NOW],
      ['a@x', NOW],
      ['0@x', NOW + 1],
    ] as const) {
      const suppression = { cause: 'hard-bounce', at, reason: 'r', source: 'standard' } as const
      await feedback.apply([suppressionChange(identity, suppression, () => [])], at)
    }
    expect(await listed(2)).toEqual(['a@x', 'b@x'])
    expect(await listed(9, { at: NOW, identity: 'a@x' })).toEqual(['b@x', '0@x'])
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

  test('the last hour is the latest that anybody took, and hours after one are forgotten', async () => {
    const { lastHour, claimHour, forgetHoursAfter } = await opened()
    for (const hour of ['2026-11-21T05', '2026-11-21T04']) await claimHour({ hour, leaseMs: 1000 })
    expect(await lastHour()).toBe('2026-11-21T05')
    expect([await forgetHoursAfter('2026-11-21T04'), await lastHour()]).toEqual([1, '2026-11-21T04'])
  })

  test('processes that check their store at the same moment find it well, and those that make a key get the same one', async () => {
    const address = await addressOf(kind)
    const stores = await Promise.all(Array.from({ length: 6 }, () => openTestStore(address)))
    for (let round = 0; round < 8; round += 1) {
      await Promise.all(stores.map((store) => store.ping()))
      const made = stores.map((store, at) => store.getOrCreate(`key ${round}`, () => `of ${at}`))
      expect(new Set(await Promise.all(made)).size).toBe(1)
    }
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
