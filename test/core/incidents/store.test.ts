import { describe, expect, test } from 'vitest'
import type { StoredIncident } from '../../../src/core/incidents/incident.ts'
import { type Channel, sendDueAlerts } from '../../../src/core/incidents/teller.ts'
import { silentLog } from '../../../src/core/log.ts'
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

  test('an open incident is acknowledged once, and the newest silence counts', async () => {
    const { incidents } = await openTestStore(await addressOf(kind))
    await incidents.open(incident('a'))
    expect(await incidents.acknowledge({ id: 'a', now: NOW, by: 'ada' })).toBe(true)
    expect(await incidents.acknowledge({ id: 'a', now: NOW, by: 'bob' })).toBe(false)
    expect(await incidents.acknowledge({ id: 'nowhere', now: NOW, by: 'bob' })).toBe(false)
    expect(await incidents.list(1)).toMatchObject([{ acknowledgedBy: 'ada', acknowledgedAt: NOW }])
    expect(await incidents.lastSilence()).toBeUndefined()
    await incidents.silence({ from: NOW, until: NOW + 10, reason: 'deploy', by: 'ci' })
    await incidents.silence({ from: NOW + 5, until: NOW + 6, reason: 'done', by: 'ci' })
    expect(await incidents.lastSilence()).toEqual({ from: NOW + 5, until: NOW + 6, reason: 'done', by: 'ci' })
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
    expect(await listed(NOW + 9)).toEqual(['a', 'b'])
    expect(await listed(NOW + 10)).toEqual(['b'])
    // One that is planned can be withdrawn before it begins.
    expect(await incidents.withdraw({ id: 'b', now: NOW + 20 })).toBe(true)
    expect(await listed(NOW + 150)).toEqual([])
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
    expect((await incidents.messages(10)).map((one) => one.incident).toSorted()).toEqual(['i2', 'i3', 'i4'])
    expect(await incidents.lastSilence()).toMatchObject({ until: NOW + 1 })
    await incidents.prune({ before: NOW + 100, keep: 2 })
    expect(await ids()).toEqual(['i4'])
    expect(await incidents.lastSilence()).toBeUndefined()
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
    expect(await incidents.messages(10)).toEqual([
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
    const open = (await incidents.messages(2000)).filter(
      ({ kind, outcome }) => kind === 'opened' && outcome === 'sent',
    )
    if (open.length === ids.length) break
  }
  expect(crashes).toBe(1000)
  expect([...received.keys()].filter((id) => id.endsWith('.opened')).toSorted()).toEqual(
    ids.map((id) => `alert.${id}.opened`).toSorted(),
  )
})
