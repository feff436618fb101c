import { describe, expect, test } from 'vitest'
import { auditEntry, PROGRAM } from '../../../src/core/audit.ts'
import { DAY_MS, MOST_SKEW_MS } from '../../../src/core/durations.ts'
import type { StoredIncident } from '../../../src/core/incidents/incident.ts'
import { type Channel, sendDueAlerts } from '../../../src/core/incidents/teller.ts'
import { silentLog } from '../../../src/core/log.ts'
import { systemRandom } from '../../../src/core/random.ts'
import { addressOf, openTestStore, STORES } from '../../support/stores.ts'

const NOW = Date.UTC(2026, 10, 21, 9)

const incident = (id: string, cause = 'mail'): StoredIncident => ({
  id,
  cause,
  service: 'web',
  reason: 'no answer in time',
  affected: ['api'],
  openedAt: NOW,
  seenAt: NOW,
  closedAt: undefined,
  acknowledgedAt: undefined,
  acknowledgedBy: undefined,
})

describe.each(STORES)('%s', (kind) => {
  test('keeps at most one open incident for a cause, and closes it when no machine saw it fail lately', async () => {
    const address = await addressOf(kind)
    const { incidents } = await openTestStore(address)
    const other = kind === 'memory' ? incidents : (await openTestStore(address)).incidents
    expect(await Promise.all([incidents.open(incident('a')), other.open(incident('b'))])).toContain(false)
    expect(await incidents.list(10)).toHaveLength(1)
    await other.seen({ cause: 'mail', reason: 'refused', affected: ['agent'], now: NOW + 60_000 })
    await incidents.close({ cause: 'mail', now: NOW + 90_000, unseenSince: NOW })
    expect(await other.list(10)).toMatchObject([
      { closedAt: undefined, reason: 'refused', affected: ['agent'] },
    ])
    await incidents.close({ cause: 'mail', now: NOW + 90_000, unseenSince: NOW + 60_000 })
    expect(await other.list(10)).toMatchObject([{ closedAt: NOW + 90_000 }])
    expect(await incidents.open({ ...incident('c'), openedAt: NOW + 1 })).toBe(true)
    expect((await incidents.list(10)).map(({ id }) => id)[0]).toBe('c')
  })

  test('an open incident is acknowledged once', async () => {
    const { incidents } = await openTestStore(await addressOf(kind))
    await incidents.open(incident('a'))
    expect(await incidents.acknowledge({ id: 'a', now: NOW, by: 'ada' })).toBe(true)
    expect(await incidents.acknowledge({ id: 'a', now: NOW, by: 'bob' })).toBe(false)
    expect(await incidents.acknowledge({ id: 'nowhere', now: NOW, by: 'bob' })).toBe(false)
    expect(await incidents.list(1)).toMatchObject([{ acknowledgedBy: 'ada', acknowledgedAt: NOW }])
  })

  test('an incident is resolved once, and its end is sent to every channel that was told its beginning', async () => {
    const { incidents, audit } = await openTestStore(await addressOf(kind))
    const clock = { now: () => NOW }
    const told: string[] = []
    const channel = (name: string): Channel => ({
      name,
      async tell({ kind, incident: { resolvedBy } }) {
        told.push([name, kind, resolvedBy].filter(Boolean).join(' '))
        return { kind: 'sent' }
      },
    })
    const send = (...names: string[]) =>
      sendDueAlerts({ store: incidents, channels: names.map(channel), clock, log: silentLog })
    await incidents.open(incident('a'))
    await send('webhook')
    const entry = (id: string) =>
      auditEntry({
        action: 'resolve-incident',
        operator: PROGRAM,
        now: NOW,
        random: systemRandom,
        subject: id,
      })
    const resolve = (id: string) =>
      incidents.resolve({ id, now: NOW, by: 'ada', reason: 'removed', audit: entry(id) })
    // On PostgreSQL, either of two at once may be the first.
    const answers = await Promise.all([resolve('a'), resolve('a'), resolve('b')])
    expect(answers.filter(Boolean)).toHaveLength(1)
    expect(answers[2]).toBe(false)
    await send('webhook', 'mail')
    await send('webhook', 'mail')
    expect(told).toEqual(['webhook opened', 'webhook closed ada'])
    expect(await audit.list(9)).toMatchObject([{ action: 'resolve-incident', subject: 'a' }])
    expect(await incidents.list(1)).toMatchObject([{ closedAt: NOW, resolvedReason: 'removed' }])
    expect(await incidents.open(incident('c'))).toBe(true)
  })

  test('an incident that nobody acknowledges escalates once, whichever process or restart sends it, and ends there once', async () => {
    const address = await addressOf(kind)
    const first = (await openTestStore(address)).incidents
    const second = kind === 'memory' ? first : (await openTestStore(address)).incidents
    const told: string[] = []
    const channel: Channel = {
      name: 'escalation',
      afterMs: 900_000,
      async tell({ kind: said, incident: { id } }) {
        told.push(`${id} ${said}`)
        return { kind: 'sent' }
      },
    }
    const send = (at: number) =>
      Promise.all(
        [first, second].map((store) =>
          sendDueAlerts({ store, channels: [channel], clock: { now: () => at }, log: silentLog }),
        ),
      )
    const silence = { from: NOW, until: NOW + 900_001, reason: 'deploy', by: 'ci' }
    await first.silence(silence)
    for (const id of ['seen', 'unseen', 'short']) await first.open(incident(id, id))
    await first.acknowledge({ id: 'seen', now: NOW + 1, by: 'ada' })
    await first.close({ cause: 'short', now: NOW + 2, unseenSince: NOW })
    await send(NOW + 899_999)
    expect(told).toEqual([])
    await send(NOW + 900_000)
    expect(told).toEqual([])
    for (const at of [900_001, 900_002, 5 * 3_600_000]) await send(NOW + at)
    expect(told).toEqual(['unseen opened'])
    await first.acknowledge({ id: 'unseen', now: NOW + 6 * 3_600_000, by: 'ada' })
    await send(NOW + 6 * 3_600_000)
    await first.close({ cause: 'unseen', now: NOW + 7 * 3_600_000, unseenSince: NOW })
    for (const at of [7, 8]) await send(NOW + at * 3_600_000)
    expect(told).toEqual(['unseen opened', 'unseen acknowledged', 'unseen closed'])
  })

  test('the timeline of an incident or an announcement is kept as long as it, and mailed as notices', async () => {
    const { incidents, notices } = await openTestStore(await addressOf(kind))
    await incidents.open(incident('a'))
    await incidents.announce({ id: 'n', text: 'Slow', from: NOW, until: NOW + 100, by: 'ada' })
    const update = (id: string, subject: string, at: number) =>
      incidents.update({ id, subject, at, text: 'Seen\u0000', state: 'identified', by: 'ada' })
    expect(await update('1', 'a', NOW + 1)).toBe(true)
    expect(await update('2', 'n', NOW + 2)).toBe(true)
    expect(await update('3', 'nowhere', NOW)).toBe(false)
    expect(await update('4', 'n', NOW + 100)).toBe(false)
    expect(await incidents.updates()).toEqual([
      expect.objectContaining({ subject: 'a', state: 'identified', by: 'ada', cause: 'mail', openedAt: NOW }),
      expect.objectContaining({ subject: 'n', at: NOW + 2, cause: undefined }),
    ])
    expect(await notices.after(0)).toMatchObject([
      { subject: '1', kind: 'announced', facts: { about: 'a', cause: 'mail', state: 'identified' } },
      { subject: '2', kind: 'announced', facts: { about: 'n', until: NOW + 100 } },
    ])
    await incidents.close({ cause: 'mail', now: NOW + 9, unseenSince: NOW + 9 })
    await incidents.prune({ before: NOW + 200, keep: 9 })
    expect(await incidents.updates()).toEqual([])
  })

  test('an announcement is listed until it ends or is withdrawn, the one that begins first before the others', async () => {
    const { incidents } = await openTestStore(await addressOf(kind))
    const planned = { id: 'b', text: 'Maintenance', from: NOW + 100, until: NOW + 200, by: 'ada' }
    const open = { id: 'a', text: 'Slow\u0000 search', from: NOW, until: undefined, by: 'bob' }
    await incidents.announce(planned)
    await incidents.announce(open)
    const listed = async (now: number) => (await incidents.announcements(now)).map(({ id }) => id)
    expect(await incidents.announcements(NOW)).toEqual([
      { ...open, text: expect.not.stringContaining('\u0000') },
      planned,
    ])
    expect(await listed(NOW + 199)).toEqual(['a', 'b'])
    expect(await listed(NOW + 200)).toEqual(['a'])
    expect(await incidents.withdraw({ id: 'nowhere', now: NOW })).toBe(false)
    expect(await incidents.withdraw({ id: 'a', now: NOW + 10 })).toBe(true)
    expect(await incidents.withdraw({ id: 'a', now: NOW + 11 })).toBe(false)
    // Gone at once, also for a machine whose clock is behind.
    expect(await listed(NOW + 9)).toEqual(['b'])
    // One that is planned can be withdrawn before it begins.
    expect(await incidents.withdraw({ id: 'b', now: NOW + 20 })).toBe(true)
    expect(await listed(NOW)).toEqual([])
    for (const one of [planned, { ...open, until: NOW + 10 }]) await incidents.announce(one)
    await incidents.prune({ before: NOW + 15, keep: 10 })
    expect(await listed(0)).toEqual(['b'])
  })

  test('closed incidents are deleted after their time or when there are too many; open ones stay', async () => {
    const { incidents } = await openTestStore(await addressOf(kind))
    for (const [index, cause] of ['old', 'flap', 'flap', 'flap', 'open'].entries()) {
      await incidents.open({ ...incident(`i${index}`, cause), openedAt: NOW + index, seenAt: NOW + index })
      await incidents.claim({
        incident: `i${index}`,
        kind: 'opened',
        channel: 'webhook',
        now: NOW,
        leaseMs: 1,
      })
      if (cause !== 'open') await incidents.close({ cause, now: NOW + index, unseenSince: NOW + 10 })
    }
    await incidents.silence({ from: NOW, until: NOW + 1, reason: 'deploy', by: 'ci' })
    await incidents.prune({ before: NOW + 1, keep: 2 })
    const ids = async () => (await incidents.list(10)).map(({ id }) => id)
    expect(await ids()).toEqual(['i4', 'i3', 'i2'])
    expect(
      (await incidents.messages(['i0', 'i1', 'i2', 'i3', 'i4'])).map((one) => one.incident).toSorted(),
    ).toEqual(['i2', 'i3', 'i4'])
    expect(await incidents.silenceAt(NOW)).toMatchObject({ until: NOW + 1 })
    await incidents.prune({ before: NOW + 100, keep: 2 })
    expect(await ids()).toEqual(['i4'])
    expect(await incidents.silenceAt(NOW)).toBeUndefined()
  })

  test('an open incident is listed, however many opened after it', async () => {
    const { incidents } = await openTestStore(await addressOf(kind))
    await incidents.open(incident('old', 'build_skew'))
    for (let n = 1; n <= 3; n += 1) {
      await incidents.open({ ...incident(`flap-${n}`), openedAt: NOW + n })
      await incidents.close({ cause: 'mail', now: NOW + n, unseenSince: NOW + n })
    }
    expect((await incidents.list(2)).map(({ id }) => id)).toEqual(['flap-3', 'flap-2', 'old'])
  })

  test('a silence that was ended stays ended when the clock is set back', async () => {
    const { incidents } = await openTestStore(await addressOf(kind))
    const silence = (from: number, until: number) =>
      incidents.silence({ from, until, reason: 'deploy', by: 'ci' })
    await silence(NOW, NOW + DAY_MS)
    await silence(NOW + DAY_MS / 2, NOW + DAY_MS / 2)
    await incidents.rewind(NOW + 1000)
    expect(await incidents.silenceAt(NOW + 1000)).toBeUndefined()
  })

  test('any silence that covers now holds, and one of no length ends those before it', async () => {
    const { incidents } = await openTestStore(await addressOf(kind))
    const silence = (from: number, ms: number) =>
      incidents.silence({ from: NOW + from, until: NOW + from + ms, reason: `${ms} ms`, by: 'ci' })
    const until = async (at: number) => ((await incidents.silenceAt(NOW + at))?.until ?? NOW) - NOW
    expect(await until(0)).toBe(0)
    await silence(0, 1000)
    await silence(10, 5)
    expect([await until(-1), await until(0), await until(12), await until(999), await until(1000)]).toEqual([
      0, 1000, 1000, 1000, 0,
    ])
    await silence(0, 20)
    expect(await until(30)).toBe(1000)
    await silence(100, 0)
    expect([await until(99), await until(100), await until(500)]).toEqual([1000, 0, 0])
    await silence(200, 50)
    expect([await until(210), await until(250)]).toEqual([250, 0])
    await silence(200, 0)
    expect(await until(210)).toBe(0)
  })

  test('what is open or was told to begin is found by that, however old, until its end was told', async () => {
    const { incidents } = await openTestStore(await addressOf(kind))
    const open = (id: string, at: number) =>
      incidents.open({ ...incident(id, id), openedAt: NOW + at, seenAt: NOW + at })
    const tell = async (id: string, kind: 'opened' | 'closed', outcome: 'sent' | 'pending' | 'failed') => {
      const key = { incident: id, kind, channel: 'webhook' }
      await incidents.claim({ ...key, now: NOW, leaseMs: 1 })
      await incidents.settle({ ...key, outcome, now: NOW, nextAt: NOW, reason: undefined })
    }
    const found = async (channel: string, since = NOW + 100) =>
      (await incidents.unfinished({ channels: [channel], since })).map(({ id }) => id)
    for (const [at, id] of ['open', 'told', 'untold', 'new'].entries()) await open(id, at)
    await tell('told', 'opened', 'sent')
    for (const cause of ['told', 'untold', 'new'])
      await incidents.close({ cause, now: NOW + 50, unseenSince: NOW + 50 })
    expect([await found('webhook'), await found('mail')]).toEqual([['told', 'open'], ['open']])
    expect(await found('mail', NOW + 2)).toEqual(['new', 'open'])
    await tell('told', 'closed', 'pending')
    expect(await found('webhook')).toEqual(['told', 'open'])
    await tell('told', 'closed', 'sent')
    expect(await found('webhook')).toEqual(['open'])
  })

  test('after the clock was set back nothing of a time to come remains: incidents end, retries and silences too', async () => {
    const { incidents } = await openTestStore(await addressOf(kind))
    const now = NOW - 3 * DAY_MS
    await incidents.open(incident('a'))
    await incidents.open({ ...incident('b', 'store'), closedAt: NOW })
    for (const kind of ['opened', 'reminder-1'] as const)
      await incidents.claim({ incident: 'a', kind, channel: 'webhook', now: NOW, leaseMs: 0 })
    await incidents.silence({ from: NOW, until: NOW + DAY_MS, reason: 'deploy', by: 'ci' })
    expect(await incidents.rewind(NOW - MOST_SKEW_MS)).toBe(0)
    expect(await incidents.rewind(now)).toBeGreaterThan(0)
    expect(await incidents.rewind(now)).toBe(0)
    expect(await incidents.list(9)).toMatchObject([
      { id: 'a', openedAt: now, closedAt: undefined },
      { id: 'b', openedAt: now, closedAt: now },
    ])
    expect((await incidents.messages(['a'])).map(({ kind, at }) => [kind, at])).toEqual([['opened', now]])
    expect(await incidents.silenceAt(NOW)).toBeUndefined()
    await incidents.close({ cause: 'mail', now: now + 1, unseenSince: now + 1 - MOST_SKEW_MS })
    expect((await incidents.list(0)).map(({ id }) => id)).toEqual([])
  })

  test('an attempt that was overtaken neither holds a message nor fails it, and what it sent is sent', async () => {
    let elapsed = NOW
    const { incidents } = await openTestStore(await addressOf(kind), () => elapsed)
    const key = { incident: 'a', kind: 'opened', channel: 'mail' } as const
    const claim = () => incidents.claim({ ...key, now: NOW, leaseMs: 100 })
    const settle = (attempt: number, outcome: 'pending' | 'failed' | 'sent') =>
      incidents.settle({ ...key, attempt, outcome, now: NOW, nextAt: NOW, reason: undefined })
    const state = async () => (await incidents.messages(['a'])).map(({ outcome }) => outcome)
    expect(await claim()).toBe(1)
    elapsed += 99
    await incidents.renew({ ...key, attempt: 1, leaseMs: 100 })
    elapsed += 99
    expect(await claim()).toBeUndefined()
    elapsed += 1
    expect(await claim()).toBe(2)
    await incidents.renew({ ...key, attempt: 1, leaseMs: 1000 })
    elapsed += 100
    expect(await claim()).toBe(3)
    await settle(2, 'failed')
    await settle(1, 'pending')
    expect([await state(), await claim()]).toEqual([['pending'], undefined])
    await settle(1, 'sent')
    await settle(3, 'failed')
    expect(await state()).toEqual(['sent'])
  })

  test('a message is taken by one caller, tried again when due, and never after it was sent', async () => {
    const address = await addressOf(kind)
    const { incidents } = await openTestStore(address)
    const key = { incident: 'a', kind: 'opened', channel: 'webhook' } as const
    const claim = (now = NOW) => incidents.claim({ ...key, now, leaseMs: 90_000 })
    expect((await Promise.all([claim(), claim()])).filter((attempt) => attempt !== undefined)).toEqual([1])
    await incidents.settle({ ...key, outcome: 'pending', now: NOW, nextAt: NOW + 5, reason: 'no answer' })
    expect(await claim(NOW + 4)).toBeUndefined()
    expect(await claim(NOW + 5)).toBe(2)
    await incidents.settle({ ...key, outcome: 'sent', now: NOW + 6, nextAt: 0, reason: undefined })
    expect(await claim(NOW + 1_000_000)).toBeUndefined()
    expect(await incidents.messages(['a'])).toEqual([
      { ...key, outcome: 'sent', attempts: 2, at: NOW + 6, reason: undefined },
    ])
  })
})

test('after a thousand crashes around the send nothing is lost, and a receiver that honors the id has nothing twice', async () => {
  let now = NOW
  const { incidents } = await openTestStore(undefined, () => now)
  let seed = 7
  /** Numerical Recipes' generator: the same crashes in every run. */
  const odds = () => {
    seed = (seed * 1664525 + 1013904223) >>> 0
    return seed / 2 ** 32
  }
  const received = new Map<string, number>()
  let crashes = 0
  // Dies before the send, or after it and before its record: the promise that never settles is a killed process.
  const channel: Channel = {
    name: 'webhook',
    tell: ({ id }) => {
      const dies = crashes < 1000 && odds() < 0.9
      if (!dies || odds() < 0.5) received.set(id, (received.get(id) ?? 0) + 1)
      if (!dies) return Promise.resolve({ kind: 'sent' })
      crashes += 1
      return Promise.reject(new Error('killed'))
    },
  }
  const ids = Array.from({ length: 60 }, (_, index) => `incident-${index}`)
  for (const id of ids) await incidents.open(incident(id, id))
  for (let round = 0; round < 2000; round += 1) {
    await sendDueAlerts({
      store: incidents,
      channels: [channel],
      clock: { now: () => now },
      log: silentLog,
    }).catch(() => {})
    // Past the lease of whoever was killed.
    now += 91_000
    const open = (await incidents.messages(ids)).filter(
      ({ kind, outcome }) => kind === 'opened' && outcome === 'sent',
    )
    if (open.length === ids.length) break
  }
  expect(crashes).toBe(1000)
  expect([...received.keys()].filter((id) => id.endsWith('.opened')).toSorted()).toEqual(
    ids.map((id) => `alert.${id}.opened`).toSorted(),
  )
})
