import { describe, expect, onTestFinished, test } from 'vitest'
import { type AuditEntry, auditEntry, PROGRAM } from '../../../src/core/audit.ts'
import { DAY_MS, HOUR_MS, MINUTE_MS } from '../../../src/core/durations.ts'
import { systemRandom } from '../../../src/core/host.ts'
import type { StoredIncident } from '../../../src/core/incidents/incident.ts'
import type { MailCount } from '../../../src/core/mail/feedback/sending.ts'
import { suppressionChange } from '../../../src/core/mail/feedback/store.ts'
import { DAYS_KEPT, HOURS_KEPT, INCIDENTS_KEPT_PER_PROBE } from '../../../src/core/status/history.ts'
import { openHistory } from '../../../src/core/store/open.ts'
import { change, closeIncident, openIncident } from '../../support/incidents.ts'
import { addressOf, isErased, openTestStore } from '../../support/stores.ts'

const NOW = 20_000 * DAY_MS

const incident = (id: string, parts: Partial<StoredIncident> = {}): StoredIncident => ({
  id,
  cause: id,
  service: 'web',
  reason: 'no answer',
  affected: ['api'],
  openedAt: NOW,
  seenAt: NOW,
  closedAt: undefined,
  acknowledgedAt: undefined,
  acknowledgedBy: undefined,
  ...parts,
})

describe.each(['sqlite', 'postgres'] as const)('on %s', (kind) => {
  const opened = async () => {
    const lease = { now: 1_000_000 }
    return { lease, ...(await openTestStore(await addressOf(kind), () => lease.now)) }
  }

  test('a cause has one open incident, whose last look never goes back, and another once it is closed', async () => {
    const { incidents } = await opened()
    expect(await openIncident(incidents, incident('a', { cause: 'mail' }))).toBe(true)
    expect(await openIncident(incidents, incident('b', { cause: 'mail' }))).toBe(false)
    expect(await openIncident(incidents, incident('a', { cause: 'store' }))).toBe(false)
    const seen = (at: number, reason: string | undefined, ...affected: string[]) =>
      change(incidents, NOW, { seen: [{ cause: 'mail', reason, affected, at }] })
    await seen(NOW + 10, 'a \0 of', 'api', 'agent')
    await seen(NOW + 5, undefined)
    expect(await incidents.list(9)).toEqual([
      incident('a', { cause: 'mail', reason: undefined, affected: [], seenAt: NOW + 10 }),
    ])
    await closeIncident(incidents, 'mail', NOW + 20, NOW + 9)
    expect((await incidents.list(9))[0]?.closedAt).toBeUndefined()
    // A clock that is behind ends nothing before it began.
    await closeIncident(incidents, 'mail', NOW - 5, NOW + 10)
    expect((await incidents.list(9))[0]?.closedAt).toBe(NOW)
    expect(await openIncident(incidents, incident('b', { cause: 'mail' }))).toBe(true)
    await closeIncident(incidents, 'mail', NOW + 30, NOW + 30)
    expect((await incidents.list(9)).map(({ id, closedAt }) => [id, closedAt])).toEqual([
      ['a', NOW],
      ['b', NOW + 30],
    ])
  })

  test('an open incident is acknowledged once, and every open one is listed whatever the limit', async () => {
    const { incidents } = await opened()
    const close = (id: string) => closeIncident(incidents, id, NOW + 9, NOW + 9)
    for (const [index, id] of ['old-open', 'old', 'new', 'newest'].entries())
      await openIncident(incidents, incident(id, { openedAt: NOW + index, seenAt: NOW }))
    for (const id of ['old', 'new', 'newest']) await close(id)
    expect((await incidents.list(2)).map(({ id }) => id)).toEqual(['newest', 'new', 'old-open'])
    const ack = (id: string, by: string) => incidents.acknowledge({ id, now: NOW + 1, by })
    expect([await ack('new', 'ada'), await ack('none', 'ada')]).toEqual([false, false])
    expect([await ack('old-open', 'ada'), await ack('old-open', 'eve')]).toEqual([true, false])
    expect((await incidents.list(9)).at(-1)).toMatchObject({ acknowledgedAt: NOW + 1, acknowledgedBy: 'ada' })
  })

  test('what is pruned ended before the moment or is beyond the newest, with its messages; what goes on stays', async () => {
    const { incidents } = await opened()
    const over = (id: string, closedAt: number) => incident(id, { openedAt: 1, seenAt: 1, closedAt })
    for (const one of [
      over('old', NOW - 1),
      over('a', NOW),
      over('b', NOW + 1),
      incident('open', { openedAt: 1 }),
    ])
      await change(incidents, NOW, { opens: [one] })
    for (const id of ['old', 'b', 'open'])
      await change(incidents, NOW, { told: [{ incident: id, kind: 'opened', channel: 'mail', at: NOW }] })
    const silence = (from: number, until: number) => incidents.silence({ from, until, reason: 'r', by: 'me' })
    await silence(1, NOW - 1)
    await silence(2, NOW)
    for (const [id, until] of [
      ['gone', NOW - 1],
      ['here', NOW],
      ['always', undefined],
    ] as const)
      await incidents.announce({ id, text: id, from: 1, until, by: 'me' }, 1)
    await incidents.prune({ before: NOW, keep: 2 })
    expect((await incidents.list(9)).map(({ id }) => id).sort()).toEqual(['a', 'b', 'open'])
    await incidents.prune({ before: NOW, keep: 1 })
    expect((await incidents.list(9)).map(({ id }) => id).sort()).toEqual(['b', 'open'])
    expect((await incidents.messages(['old', 'a', 'b', 'open'])).map((one) => one.incident).sort()).toEqual([
      'b',
      'open',
    ])
    expect(await incidents.silenceAt(NOW - 2)).toMatchObject({ from: 2 })
    expect(await incidents.silenceAt(1)).toBeUndefined()
    expect((await incidents.announcements(0)).map(({ id }) => id)).toEqual(['always', 'here'])
    await incidents.prune({ before: NOW, keep: 0 })
    expect((await incidents.list(9)).map(({ id }) => id)).toEqual(['open'])
  })

  test('an announcement is there until its end or its withdrawal', async () => {
    const { incidents } = await opened()
    const announce = (id: string, from: number, until?: number) =>
      incidents.announce({ id, text: `${id} \0`, from, until, by: 'me' }, NOW)
    await announce('later', NOW + 5)
    await announce('ends', NOW, NOW + 10)
    const shown = async (now: number) => (await incidents.announcements(now)).map(({ id }) => id)
    expect(await shown(NOW + 9)).toEqual(['ends', 'later'])
    expect(await shown(NOW + 10)).toEqual(['later'])
    const withdraw = (id: string, now: number) => incidents.withdraw({ id, now })
    expect([await withdraw('ends', NOW + 10), await withdraw('none', NOW)]).toEqual([false, false])
    expect([await withdraw('later', NOW + 6), await withdraw('later', NOW + 6)]).toEqual([true, false])
    await announce('long', NOW + 7, NOW + 100)
    expect([await withdraw('long', NOW + 8), await shown(NOW + 8)]).toEqual([true, ['ends']])
  })

  test('a job is expected once, a failure of it stays until a success, and nothing of that moves when it was expected', async () => {
    const { heartbeats } = await opened()
    const none = { beatAt: undefined, failedAt: undefined, exitCode: undefined }
    expect(await heartbeats.expect({ name: 'a', now: 1 })).toEqual({ name: 'a', since: 1, ...none })
    expect(await heartbeats.expect({ name: 'a', now: 2 })).toMatchObject({ since: 1 })
    const beat = (name: string, now: number, exitCode?: number) =>
      heartbeats.beat({ name, now, failed: exitCode === undefined ? undefined : { exitCode } })
    expect(await beat('a', 3)).toEqual({ name: 'a', since: 1, ...none, beatAt: 3 })
    expect(await beat('a', 4, 7)).toMatchObject({ since: 1, beatAt: 3, failedAt: 4, exitCode: 7 })
    expect(await heartbeats.expect({ name: 'a', now: 5 })).toMatchObject({ failedAt: 4, exitCode: 7 })
    expect(await beat('a', 6)).toEqual({ name: 'a', since: 1, ...none, beatAt: 6 })
    expect(await beat('new', 7, 1)).toEqual({ name: 'new', since: 7, ...none, failedAt: 7, exitCode: 1 })
    expect(await beat('newer', 8)).toEqual({ name: 'newer', since: 8, ...none, beatAt: 8 })
  })

  test('courses pause by what the last 24 hours hold, to the minute, and not by what was there before they were resumed', async () => {
    const { sending, audit } = await opened()
    const counted = (what: MailCount['kind'], count: number, at: number): MailCount => ({
      at,
      kind: what,
      source: 'smtp',
      domain: 'other',
      count,
    })
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
    const entry = auditEntry({ action: 'resume', operator: PROGRAM, now: NOW + 2, random: systemRandom })
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
    const one = (at: number, parts: Partial<MailCount> = {}): MailCount => ({
      at,
      kind: 'sent',
      source: 'smtp',
      domain: 'other',
      count: 2,
      ...parts,
    })
    await sending.count([one(NOW), one(NOW + DAY_MS - 1), one(NOW, { domain: 'gmail.com' }), one(NOW - 1)])
    await sending.count([one(NOW), one(NOW, { kind: 'complaint', count: 1 })])
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
    await course.erase({
      identity: 'c@x.example',
      spellings: ['c@x.example'],
      recipients: [],
      suppressionHash: 'hash-c',
      now: NOW,
    })
    expect(await apply(NOW, change('c@x.example', 'two', ['other', 'hash-c']))).toEqual(['erased'])
    expect(await feedback.find('c@x.example')).toBeUndefined()
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
    for (let round = 0; round < 20; round += 1) await Promise.all(stores.map((store) => store.ping()))
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
