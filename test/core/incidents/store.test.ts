import { describe, expect, onTestFinished, test } from 'vitest'
import { DAY_MS, HOUR_MS, MOST_SKEW_MS } from '../../../src/core/durations.ts'
import type { AlertClaim, IncidentStore } from '../../../src/core/incidents/incident.ts'
import { LEASE_MS } from '../../../src/core/lease.ts'
import {
  change,
  channelOf,
  closeIncident,
  hostAt,
  incidentWith,
  openIncident,
  tellDue,
} from '../../support/incidents.ts'
import { olderAlerts } from '../../support/older-alerts.ts'
import { addressOf, openTestStore, STORES } from '../../support/stores.ts'
import { audited } from '../../support/subscribers.ts'

const NOW = Date.UTC(2026, 10, 21, 9)

const incident = (id: string, cause = 'mail') =>
  incidentWith({ id, cause, reason: 'no answer in time', affected: ['api'], openedAt: NOW })

// The store in memory runs the code of the one in a file.
describe.each(STORES.filter((kind) => kind !== 'memory'))('%s', (kind) => {
  /** Two processes on one store. */
  const two = async () => {
    const address = await addressOf(kind)
    return [(await openTestStore(address)).incidents, (await openTestStore(address)).incidents] as const
  }

  /** A store with an incident whose alert is to be sent. */
  const alerted = async (leaseClock?: () => number) => {
    const store = await openTestStore(await addressOf(kind), leaseClock)
    await change(store.incidents, NOW, { opens: [incident('a')] }, CHANNELS)
    return store
  }

  test('keeps at most one open incident for a cause, and closes it when no machine saw it fail lately', async () => {
    const [incidents, other] = await two()
    const both = [openIncident(incidents, incident('a')), openIncident(other, incident('b'))]
    expect((await Promise.all(both)).toSorted()).toEqual([false, true])
    const [open, ...others] = await incidents.list(10)
    expect(others).toEqual([])
    expect(await openIncident(incidents, incident(open?.id ?? '', 'store'))).toBe(false)
    const seen = (at: number, reason: string) =>
      change(other, at, { seen: [{ cause: 'mail', reason, affected: ['agent'], at }] })
    await seen(NOW + 60_000, 'refused')
    // The last look never goes back.
    await seen(NOW + 30_000, 'refused \0')
    await closeIncident(incidents, 'mail', NOW + 90_000, NOW + 59_999)
    expect(await other.list(10)).toMatchObject([
      { closedAt: undefined, seenAt: NOW + 60_000, reason: 'refused \ufffd', affected: ['agent'] },
    ])
    // A clock that is behind ends nothing before it began.
    await closeIncident(incidents, 'mail', NOW - 5, NOW + 60_000)
    expect(await other.list(10)).toMatchObject([{ closedAt: NOW }])
    await openIncident(incidents, { ...incident('c'), openedAt: NOW + 1 })
    await closeIncident(incidents, 'mail', NOW + 90_000)
    expect((await incidents.list(10)).map(({ id, closedAt }) => [id, closedAt])[0]).toEqual([
      'c',
      NOW + 90_000,
    ])
  })

  test('an open incident is acknowledged once, and is listed, however many opened after it', async () => {
    const { incidents } = await openTestStore(await addressOf(kind))
    await openIncident(incidents, incident('old', 'build_skew'))
    for (let n = 1; n <= 3; n += 1) {
      await openIncident(incidents, { ...incident(`flap-${n}`), openedAt: NOW + n })
      await closeIncident(incidents, 'mail', NOW + n)
    }
    expect((await incidents.list(2)).map(({ id }) => id)).toEqual(['flap-3', 'flap-2', 'old'])
    const ack = (id: string, by: string) => incidents.acknowledge({ id, now: NOW, by })
    expect(await ack('old', 'ada')).toBe(true)
    for (const id of ['old', 'flap-3', 'nowhere']) expect(await ack(id, 'bob')).toBe(false)
    expect((await incidents.list(1)).at(-1)).toMatchObject({ acknowledgedBy: 'ada', acknowledgedAt: NOW })
  })

  test('an incident is resolved once, and its end is sent to every channel that was told its beginning', async () => {
    const { incidents, audit } = await openTestStore(await addressOf(kind))
    const told: string[] = []
    const channel = (name: string) =>
      channelOf(name, async ({ id, kind, incident: { resolvedBy } }) => {
        told.push([name, kind, resolvedBy].filter(Boolean).join(' '))
        return { kind: 'sent', id }
      })
    const host = hostAt(() => NOW)
    const send = (...names: string[]) => tellDue(host, incidents, names.map(channel))
    await openIncident(incidents, incident('a'))
    await send('webhook')
    await incidents.acknowledge({ id: 'a', now: NOW, by: 'eve' })
    const resolve = (id: string, now = NOW) => {
      const entry = audited('resolve-incident', now, id)
      return incidents.resolve({ id, now, by: 'ada', reason: 'as bob@example.com asked', audit: entry })
    }
    // On PostgreSQL, either of two at once may be the first.
    const answers = await Promise.all([resolve('a'), resolve('a'), resolve('b')])
    expect(answers.filter(Boolean)).toHaveLength(1)
    expect(answers[2]).toBe(false)
    // Queued with the change, whichever process sends it.
    expect(await incidents.queuedAlerts()).toEqual([
      { incident: 'a', kind: 'closed', channel: 'webhook', at: NOW, leaves: false },
    ])
    await send('webhook', 'mail')
    await send('webhook', 'mail')
    expect(told).toEqual(['webhook opened', 'webhook closed ada'])
    expect(await audit.list(9)).toMatchObject([{ action: 'resolve-incident', subject: 'a' }])
    expect(await incidents.list(1)).toMatchObject([{ closedAt: NOW, resolvedReason: 'as [address] asked' }])
    await openIncident(incidents, incident('c'))
    // A clock that is behind ends nothing before it began.
    expect(await resolve('c', NOW - 5)).toBe(true)
    expect(await incidents.find('c')).toMatchObject({ closedAt: NOW })
  })

  test('an incident that nobody acknowledges escalates once, whichever process or restart sends it, and ends there once', async () => {
    const [first, second] = await two()
    const told: string[] = []
    const channel = channelOf(
      'escalation',
      async ({ id: key, kind: said, incident: { id } }) => {
        told.push(`${id} ${said}`)
        return { kind: 'sent', id: key }
      },
      { afterMs: 900_000 },
    )
    const send = (after: number) => {
      const host = hostAt(() => NOW + after)
      return Promise.all([first, second].map((store) => tellDue(host, store, [channel])))
    }
    await first.silence({ from: NOW, until: NOW + 900_001, reason: 'deploy', by: 'ci' })
    for (const id of ['seen', 'unseen', 'short']) await openIncident(first, incident(id, id))
    await send(0)
    await first.acknowledge({ id: 'seen', now: NOW + 1, by: 'ada' })
    // At once, and not with the next round of checks.
    expect((await second.queuedAlerts()).map((one) => one.incident)).toEqual(['short', 'unseen'])
    await closeIncident(first, 'short', NOW + 2, NOW)
    await send(899_999)
    expect(told).toEqual([])
    await send(900_000)
    expect(told).toEqual([])
    // Until the silence ended, nobody was told that they could acknowledge.
    for (const at of [900_001, 1_800_000]) await send(at)
    expect(told).toEqual([])
    for (const at of [1_800_001, 1_800_002, 5 * HOUR_MS]) await send(at)
    expect(told).toEqual(['unseen opened'])
    await first.acknowledge({ id: 'unseen', now: NOW + 6 * HOUR_MS, by: 'ada' })
    await send(6 * HOUR_MS)
    await closeIncident(first, 'unseen', NOW + 7 * HOUR_MS, NOW)
    for (const at of [7, 8]) await send(at * HOUR_MS)
    expect(told).toEqual(['unseen opened', 'unseen acknowledged', 'unseen closed'])
  })

  test('an escalation counts from when alerts were let go: of a silence, also one that was ended, and of a pause, but not of what leaves during them', async () => {
    const { incidents, sending } = await openTestStore(await addressOf(kind))
    await openIncident(incidents, incident('a'))
    await openIncident(incidents, incident('p', 'courses_paused'))
    const escalation = [{ name: 'escalation', afterMs: 900_000 }]
    const escalates = async (after: number) => {
      await change(incidents, NOW + after, {}, escalation)
      return (await incidents.queuedAlerts())
        .map((one) => `${one.incident} ${(one.at - NOW) / 1000}`)
        .toSorted()
    }
    const silence = (from: number, until: number) =>
      incidents.silence({ from: NOW + from, until: NOW + until, reason: 'deploy', by: 'ci' })
    await silence(-9000, -8000)
    expect(await escalates(0)).toEqual(['a 900', 'p 900'])
    await silence(1000, 5_000_000)
    await silence(2000, 3000)
    expect(await escalates(2000)).toEqual(['a 5900', 'p 900'])
    await silence(4000, 4000)
    expect(await escalates(5000)).toEqual(['a 904', 'p 900'])
    await sending.pause({
      streams: ['alert'],
      now: NOW + 6000,
      reason: 'a storm',
      audit: audited('pause', NOW),
    })
    expect(await escalates(7000)).toEqual(['a 907', 'p 900'])
    await sending.resume({ streams: ['alert'], now: NOW + 10_000, audit: audited('resume', NOW) })
    expect(await escalates(9_000_000)).toEqual(['a 910', 'p 900'])
  })

  test('the timeline of an incident or an announcement is kept as long as it', async () => {
    const { incidents } = await openTestStore(await addressOf(kind))
    await openIncident(incidents, incident('a'))
    await incidents.announce({ id: 'n', text: 'Slow', from: NOW, until: NOW + 100, by: 'ada' }, NOW)
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
    await closeIncident(incidents, 'mail', NOW + 9)
    await incidents.prune({ before: NOW + 200, keep: 9 })
    expect(await incidents.updates()).toEqual([])
  })

  test('an announcement is listed until it ends or is withdrawn, the one that begins first before the others', async () => {
    const { incidents } = await openTestStore(await addressOf(kind))
    const planned = { id: 'a', text: 'Maintenance', from: NOW + 100, until: NOW + 200, by: 'ada' }
    const open = { id: 'b', text: 'Slow\u0000 search', from: NOW, until: undefined, by: 'bob' }
    await incidents.announce(planned, NOW)
    await incidents.announce(open, NOW)
    const listed = async (now: number) => (await incidents.announcements(now)).map(({ id }) => id)
    expect(await incidents.announcements(NOW)).toEqual([
      { ...open, text: expect.not.stringContaining('\u0000') },
      planned,
    ])
    expect(await listed(NOW + 199)).toEqual(['b', 'a'])
    expect(await listed(NOW + 200)).toEqual(['b'])
    const withdraw = (id: string, after: number) => incidents.withdraw({ id, now: NOW + after })
    expect([await withdraw('nowhere', 0), await withdraw('a', 200)]).toEqual([false, false])
    expect([await withdraw('b', 10), await withdraw('b', 11)]).toEqual([true, false])
    // Gone at once, also for a machine whose clock is behind.
    expect(await listed(NOW + 9)).toEqual(['a'])
    // One that is planned can be withdrawn before it begins.
    expect([await withdraw('a', 20), await listed(NOW)]).toEqual([true, []])
  })

  test('what ended is deleted after its time, or when there are too many, with its messages; what goes on stays', async () => {
    const { incidents, sending } = await openTestStore(await addressOf(kind))
    const causes = ['old', 'flap', 'flap', 'flap', 'open']
    for (const [index, cause] of causes.entries()) {
      const [id, at] = [`i${index}`, NOW + index]
      const closedAt = cause === 'open' ? undefined : at
      const opens = [{ ...incident(id, cause), openedAt: at, seenAt: at, closedAt }]
      await change(incidents, at, { opens, told: [{ incident: id, kind: 'opened', channel: 'webhook', at }] })
    }
    await change(incidents, NOW + 9, {}, CHANNELS)
    await incidents.silence({
      from: NOW,
      until: NOW + 1,
      reason: 'for bob@example.com',
      by: 'ci@corp.example',
    })
    expect(await incidents.silenceAt(NOW)).toMatchObject({ reason: 'for [address]', by: 'ci@corp.example' })
    for (const [id, until] of [
      ['gone', NOW],
      ['here', NOW + 1],
      ['always', undefined],
    ] as const)
      await incidents.announce({ id, text: id, from: 1, until, by: 'me' }, 1)
    const left = async () => [
      (await incidents.list(10)).map(({ id }) => id),
      (await incidents.messages(causes.map((_, index) => `i${index}`))).map((one) => one.incident).toSorted(),
      (await incidents.queuedAlerts()).map((one) => one.incident),
      (await sending.queue(NOW + DAY_MS))[0]?.due,
      (await incidents.announcements(0)).map(({ id }) => id),
      (await incidents.silenceAt(NOW))?.until,
    ]
    const prune = (before: number, keep: number) => incidents.prune({ before, keep })
    await prune(NOW + 1, 9)
    const four = ['i1', 'i2', 'i3', 'i4']
    expect(await left()).toEqual([four.toReversed(), four, four, 4, ['always', 'here'], NOW + 1])
    await prune(NOW + 1, 2)
    expect((await left())[0]).toEqual(['i4', 'i3', 'i2'])
    await prune(NOW + 100, 2)
    expect(await left()).toEqual([['i4'], ['i4'], ['i4'], 1, ['always'], undefined])
    await openIncident(incidents, { ...incident('i5', 'last'), closedAt: NOW + 200 })
    await prune(NOW, 0)
    expect((await left())[0]).toEqual(['i4'])
  })

  test('any silence that covers now holds, and one of no length ends those before it', async () => {
    const { incidents } = await openTestStore(await addressOf(kind))
    const silence = (from: number, ms: number) =>
      incidents.silence({ from: NOW + from, until: NOW + from + ms, reason: `${ms} ms`, by: 'ci' })
    const until = async (at: number) => ((await incidents.silenceAt(NOW + at))?.until ?? NOW) - NOW
    expect(await until(0)).toBe(0)
    expect(await silence(0, 1000)).toBe(NOW + 1000)
    // The longest counts, whatever was asked for last.
    expect(await silence(10, 5)).toBe(NOW + 1000)
    expect([await until(-1), await until(0), await until(12), await until(999), await until(1000)]).toEqual([
      0, 1000, 1000, 1000, 0,
    ])
    await silence(0, 20)
    expect(await until(30)).toBe(1000)
    expect(await silence(100, 0)).toBe(NOW + 100)
    expect([await until(99), await until(100), await until(500)]).toEqual([1000, 0, 0])
    await silence(200, 50)
    expect([await until(210), await until(250)]).toEqual([250, 0])
    await silence(200, 0)
    expect(await until(210)).toBe(0)
    // One that was ended stays ended when the clock is set back.
    await silence(1000, DAY_MS)
    await silence(1000 + DAY_MS / 2, 0)
    await change(incidents, NOW + 2000, {})
    expect(await until(2000)).toBe(0)
  })

  test('after the clock was set back nothing of a time to come remains: incidents end, retries and silences too', async () => {
    const { incidents } = await openTestStore(await addressOf(kind))
    const now = NOW - 3 * DAY_MS
    const repaired = async (at: number) => (await change(incidents, at, {}, CHANNELS)).repaired
    const opens = [incident('a'), { ...incident('b', 'store'), closedAt: NOW }]
    const told = [{ incident: 'a', kind: 'reminder-1', channel: 'webhook', at: NOW }] as const
    await change(incidents, NOW, { opens, told }, CHANNELS)
    await take(incidents)
    await incidents.silence({ from: NOW, until: NOW + DAY_MS, reason: 'deploy', by: 'ci' })
    expect(await repaired(NOW - MOST_SKEW_MS)).toBe(0)
    expect(await repaired(now)).toBeGreaterThan(0)
    expect(await repaired(now)).toBe(0)
    expect(await incidents.list(9)).toMatchObject([
      { id: 'a', openedAt: now, closedAt: undefined },
      { id: 'b', openedAt: now, closedAt: now },
    ])
    expect((await incidents.messages(['a'])).map(({ kind, at }) => [kind, at])).toEqual([['opened', now]])
    expect(await incidents.silenceAt(NOW)).toBeUndefined()
    await closeIncident(incidents, 'mail', now + 1, now + 1 - MOST_SKEW_MS)
    expect((await incidents.list(0)).map(({ id }) => id)).toEqual([])
  })

  test('a retry that was planned by a clock ahead comes now, and while it waits no mail has stalled', async () => {
    const { incidents, sending } = await alerted()
    const [claim] = await take(incidents)
    await settle(incidents, claim, 'waits', NOW + 60_000)
    expect(await take(incidents, NOW + 59_999)).toEqual([])
    const asked = { now: NOW + 3 * HOUR_MS, before: NOW + HOUR_MS }
    expect(await sending.stalledSince(asked)).toBeUndefined()
    await change(incidents, NOW - HOUR_MS, {}, CHANNELS)
    expect(await take(incidents, NOW - HOUR_MS)).toMatchObject([{ attempts: 1, attempt: 2 }])
  })

  test('an attempt that was overtaken neither holds an alert nor fails it, and what it sent is sent', async () => {
    let elapsed = NOW
    const { incidents } = await alerted(() => elapsed)
    const state = async () => (await incidents.messages(['a'])).map(({ outcome }) => outcome)
    const [first] = await take(incidents, elapsed)
    const keep = (leaseMs: number) =>
      incidents.keepAlerts({ messages: first ? [first] : [], now: elapsed, leaseMs })
    elapsed += LEASE_MS - 1
    await keep(LEASE_MS)
    elapsed += LEASE_MS - 1
    expect(await take(incidents, elapsed)).toEqual([])
    elapsed += 1
    const [second] = await take(incidents, elapsed)
    expect(second).toMatchObject({ attempt: 2, unknownSince: expect.any(Number) })
    await keep(10 * LEASE_MS)
    elapsed += LEASE_MS
    const [third] = await take(incidents, elapsed)
    expect(third).toMatchObject({ attempt: 3 })
    await settle(incidents, second, 'over')
    await settle(incidents, first, 'waits', NOW)
    expect([await state(), await take(incidents, elapsed)]).toEqual([['pending'], []])
    await settle(incidents, first, 'sent')
    await settle(incidents, third, 'over')
    expect([await state(), await incidents.queuedAlerts()]).toEqual([['sent'], []])
  })

  test('an alert is taken by one process, tried again when due, and never after it was sent; why it was late is kept', async () => {
    const [incidents, other] = await two()
    await change(incidents, NOW, { opens: [incident('a')] }, CHANNELS)
    const [claim, none] = (await Promise.all([take(incidents), take(other)])).flat()
    expect([claim?.attempt, none]).toEqual([1, undefined])
    await settle(incidents, claim, 'waits', NOW + 5)
    expect(await take(other, NOW + 4)).toEqual([])
    const [again] = await take(other, NOW + 5)
    expect(again).toMatchObject({ attempt: 2, attempts: 1 })
    // Planning anew leaves what is out alone, and what waits for its next attempt.
    await change(incidents, NOW + 5, {}, CHANNELS)
    expect(await take(incidents, NOW + 5)).toEqual([])
    await settle(other, again, 'sent', 0, NOW + 6)
    expect(await take(incidents, NOW + 1_000_000)).toEqual([])
    expect(await incidents.messages(['a'])).toEqual([
      { ...KEY, outcome: 'sent', attempts: 2, at: NOW + 6, reason: 'no answer' },
    ])
  })

  test('every attempt at an alert says of its incident what the first one said; one that nobody got does not count', async () => {
    const { incidents } = await alerted()
    const seen = (now: number, reason: string) =>
      change(incidents, now, { seen: [{ cause: 'mail', reason, affected: ['api'], at: now }] }, CHANNELS)
    const saysAt = async (now: number) => {
      const [claim] = await take(incidents, now)
      return { claim, said: claim?.said }
    }
    const given = await saysAt(NOW)
    expect(given.said).toMatchObject({ affected: incident('a').affected })
    await settle(incidents, given.claim, 'waits', NOW + 1, NOW + 1, false)
    await seen(NOW + 1, '5 times')
    const first = await saysAt(NOW + 1)
    expect(first.said).toEqual({ reason: '5 times', affected: ['api'], failsAgain: false })
    await settle(incidents, first.claim, 'waits', NOW + 2)
    await seen(NOW + 2, '6 times')
    const second = await saysAt(NOW + 2)
    expect(second.said).toEqual(first.said)
    await settle(incidents, second.claim, 'sent', 0, NOW + 3)
    const later = NOW + 5 * 60 * 60_000
    await seen(later, '9 times')
    expect((await saysAt(later)).said).toMatchObject({ reason: '9 times' })
  })

  test('an end that comes while the beginning is being sent waits for its outcome', async () => {
    let elapsed = 1_000_000
    const { incidents } = await alerted(() => elapsed)
    const closes = [{ cause: 'mail', at: NOW + 1, unseenSince: NOW + 1 }]
    const [beginning] = await take(incidents)
    // The clock of a server goes back a little.
    elapsed -= 50
    await change(incidents, NOW + 1, { closes }, CHANNELS)
    expect(await take(incidents, NOW + 1)).toEqual([])
    await settle(incidents, beginning, 'sent', 0, NOW + 2)
    await change(incidents, NOW + 2, {}, CHANNELS)
    expect(await take(incidents, NOW + 2)).toMatchObject([{ kind: 'closed' }])
    expect((await incidents.messages(['a'])).map((one) => `${one.kind} ${one.outcome}`).toSorted()).toEqual([
      'closed pending',
      'opened sent',
    ])
  })

  test('an end that one channel was told is still to come on another, however long ago the incident began', async () => {
    const { incidents } = await openTestStore(await addressOf(kind))
    const told = (channel: string, of: 'opened' | 'closed', at: number) => ({
      incident: 'a',
      kind: of,
      channel,
      at,
    })
    const beginnings = ['webhook', 'mail'].map((channel) => told(channel, 'opened', NOW))
    await change(incidents, NOW, { opens: [incident('a')], told: beginnings })
    const at = NOW + 5 * HOUR_MS
    const closes = [{ cause: 'mail', at, unseenSince: at }]
    await change(incidents, at, { closes, told: [told('webhook', 'closed', at)] })
    await change(incidents, at, {}, [...CHANNELS, { name: 'mail' }])
    expect(await incidents.queuedAlerts()).toMatchObject([{ kind: 'closed', channel: 'mail' }])
  })

  test('what was claimed and not handed over counts for nothing: an end is not sent of what nobody was told', async () => {
    const { incidents } = await alerted()
    const [claim] = await take(incidents)
    await settle(incidents, claim, 'waits', NOW, NOW, false)
    expect(await incidents.messages(['a'])).toEqual([])
    const closes = [{ cause: 'mail', at: NOW + 1, unseenSince: NOW + 1 }]
    await change(incidents, NOW + 1, { closes }, CHANNELS)
    expect(await incidents.queuedAlerts()).toEqual([])
  })
})

const CHANNELS = [{ name: 'webhook' }]
const KEY = { incident: 'a', kind: 'opened', channel: 'webhook' } as const

const take = (incidents: IncidentStore, now = NOW) =>
  incidents.claimAlerts({ channel: 'webhook', quiet: false, now, limit: 9, leaseMs: LEASE_MS })

async function settle(
  incidents: IncidentStore,
  claim: AlertClaim | undefined,
  result: 'sent' | 'waits' | 'over',
  nextAttemptAt = 0,
  now = NOW,
  isTried = true,
) {
  if (claim === undefined) throw new TypeError('an alert was claimed')
  const problem = result === 'over' ? ({ kind: 'parked', reason: 'refused', since: now } as const) : undefined
  const record = { result, nextAttemptAt, failures: claim.attempts + 1, problem, untried: !isTried }
  const reason = result === 'waits' && isTried ? 'no answer' : undefined
  const outcome = { outcome: result, reason, providerId: undefined }
  await incidents.settleAlerts([{ claim, record, now, ...outcome, isTried }])
}

describe.each(['sqlite', 'postgres'] as const)('on %s', (kind) => {
  describe.each(['0.2.0', 'later'] as const)('beside a build without the queue, %s', (version) => {
    /** Both builds on one store; each says what it tells, and can be stopped in the middle of it. */
    async function beside() {
      const address = await addressOf(kind)
      const { incidents } = await openTestStore(address)
      if (address === undefined) throw new TypeError('this store has an address')
      let now = NOW
      const told: string[] = []
      let during: (() => Promise<void>) | undefined
      let fails = 0
      const tell = async (by: string, said: string) => {
        told.push(`${by} ${said}`)
        const work = during
        during = undefined
        await work?.()
        fails -= 1
        return fails >= 0
      }
      const older = olderAlerts(address, version, async ({ incident: id, kind: said }) =>
        (await tell('older', `${id} ${said}`)) ? 'pending' : 'sent',
      )
      onTestFinished(() => older.end())
      const channel = channelOf('webhook', async ({ id: key, kind: said, incident: { id } }) =>
        (await tell('new', `${id} ${said}`))
          ? { kind: 'transient', reason: 'no answer', scope: 'message' }
          : { kind: 'sent', id: key },
      )
      const host = hostAt(() => now)
      return {
        ...{ incidents, told, older },
        meanwhile: (work: () => Promise<void>) => {
          during = work
        },
        failsOnce: () => {
          fails = 1
        },
        pass: (ms: number) => {
          now += ms
        },
        now: () => now,
        newRound: () => tellDue(host, incidents, [channel]),
        olderRound: () => older.round('webhook', now),
      }
    }

    test('each alert is told by one of them, whichever opened the incident and whoever has it in hand', async () => {
      const it = await beside()
      await it.older.open('a', NOW)
      await openIncident(it.incidents, incident('b', 'b'))
      it.meanwhile(it.olderRound)
      await it.newRound()
      await it.olderRound()
      expect(it.told.splice(0).toSorted()).toEqual(['new a opened', 'new b opened'])
      await it.older.close('a', NOW + 1)
      await closeIncident(it.incidents, 'b', NOW + 1)
      it.meanwhile(it.newRound)
      await it.olderRound()
      await it.newRound()
      expect(it.told.toSorted()).toEqual(['older a closed', 'older b closed'])
      expect(await it.incidents.queuedAlerts()).toEqual([])
    })

    test('what one of them could not send is tried again by either, after its pause', async () => {
      const it = await beside()
      await openIncident(it.incidents, incident('a'))
      it.failsOnce()
      await it.newRound()
      await it.olderRound()
      it.failsOnce()
      it.pass(15_000)
      await it.olderRound()
      await it.newRound()
      expect(it.told.splice(0)).toEqual(['new a opened', 'older a opened'])
      it.pass(15_000)
      await it.newRound()
      await it.olderRound()
      expect(it.told).toEqual(['new a opened'])
    })

    test('what this build left in the middle of is taken over by the older one, and the reverse', async () => {
      const it = await beside()
      await change(it.incidents, NOW, { opens: [incident('a')] }, CHANNELS)
      expect(await take(it.incidents)).toHaveLength(1)
      it.pass(LEASE_MS - 1)
      await it.olderRound()
      expect(it.told).toEqual([])
      it.pass(1)
      it.failsOnce()
      await it.olderRound()
      expect(it.told.splice(0)).toEqual(['older a opened'])
      it.pass(15_000)
      // A build that dies with the alert in hand says nothing more of it.
      void it.older.round('webhook', it.now())
      await expect.poll(() => it.told).toEqual(['older a opened'])
    })
  })
})

test('after hundreds of crashes around the send nothing is lost, and a receiver that honors the id has nothing twice', async () => {
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
  // Dies before the send, or after it and before its record.
  const channel = channelOf('webhook', ({ id }) => {
    const dies = crashes < 300 && odds() < 0.96
    if (!dies || odds() < 0.5) received.set(id, (received.get(id) ?? 0) + 1)
    if (!dies) return Promise.resolve({ kind: 'sent', id })
    crashes += 1
    return Promise.reject(new Error('killed'))
  })
  const ids = Array.from({ length: 20 }, (_, index) => `incident-${index}`)
  for (const id of ids) await openIncident(incidents, incident(id, id))
  const host = hostAt(() => now)
  for (let round = 0; round < 600; round += 1) {
    await tellDue(host, incidents, [channel]).catch(() => {})
    // Past the lease of whoever was killed.
    now += LEASE_MS + 1000
    const open = (await incidents.messages(ids)).filter(
      ({ kind, outcome }) => kind === 'opened' && outcome === 'sent',
    )
    if (open.length === ids.length) break
  }
  expect(crashes).toBe(300)
  expect([...received.keys()].filter((id) => id.endsWith('.opened')).toSorted()).toEqual(
    ids.map((id) => `alert.${id}.opened`).toSorted(),
  )
})
