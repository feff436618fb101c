import { expect, onTestFinished, test, vi } from 'vitest'
import { readSettings } from '../../src/core/env/settings.ts'
import type { IncidentStore, StoredIncident } from '../../src/core/incidents/incident.ts'
import { en } from '../../src/core/messages/en.ts'
import type { History, Recorded, Series } from '../../src/core/status/history.ts'
import { meaningOf, sharedIncidents, statusSource, targetOf } from '../../src/daemon/status.ts'
import { learning } from '../../src/presets/learning/platform.ts'

const NOW = Date.UTC(2026, 10, 22)
const RECORDED: Recorded = { series: [{} as Series], incidents: [], builds: [] }

/** A history whose reads are counted, and give what `give` says. */
function counted(give: () => Promise<Recorded> = async () => RECORDED) {
  let reads = 0
  const history: History = {
    persistent: true,
    record: async () => {},
    read: () => {
      reads += 1
      return give()
    },
    close: async () => {},
  }
  return { history, reads: () => reads }
}

test('a record is read once for ten seconds, whichever way the clock moves, and visitors who come at once share a read', async () => {
  const { history, reads } = counted()
  const source = statusSource(history)
  await Promise.all([source.read(NOW), source.read(NOW), source.read(NOW)])
  for (const at of [NOW + 9_999, NOW - 9_999]) await source.read(at)
  expect(reads()).toBe(1)
  await source.read(NOW + 10_000)
  expect(reads()).toBe(2)
  await source.read(NOW)
  expect(reads()).toBe(3)
})

test('a read that failed or found nothing yet is not kept', async () => {
  const failing = counted(() => Promise.reject(new Error('canary')))
  const source = statusSource(failing.history)
  await expect(source.read(NOW)).rejects.toThrow('canary')
  await expect(source.read(NOW)).rejects.toThrow('canary')
  expect(failing.reads()).toBe(2)
  const empty = counted(async () => ({ ...RECORDED, series: [] }))
  const young = statusSource(empty.history)
  await young.read(NOW)
  await young.read(NOW)
  expect(empty.reads()).toBe(2)
})

test('what a source is, is what its history is', async () => {
  expect(statusSource(undefined)).toMatchObject({ recorded: 'none', sampleUntil: undefined })
  expect(await statusSource(undefined).read(NOW)).toEqual({ series: [], incidents: [], builds: [] })
  const { history } = counted()
  expect(statusSource({ ...history, sampleUntil: 7 })).toMatchObject({ recorded: 'file', sampleUntil: 7 })
  expect(statusSource({ ...history, persistent: false }).recorded).toBe('memory')
})

test('what the store adds is shown, and a store that fails or hangs for a second adds nothing', async () => {
  const announcements = [{ id: 'a', text: 'x', from: 1, until: undefined, by: 'me' }]
  const { history } = counted()
  expect(await statusSource(history, async () => ({ announcements })).read(NOW)).toEqual({
    ...RECORDED,
    announcements,
  })
  expect(await statusSource(history, () => Promise.reject(new Error('canary'))).read(NOW)).toEqual(RECORDED)
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
  onTestFinished(() => void vi.useRealTimers())
  let read: Recorded | undefined
  const reading = statusSource(history, () => new Promise(() => {}))
    .read(NOW)
    .then((recorded) => {
      read = recorded
    })
  await vi.advanceTimersByTimeAsync(999)
  expect(read).toBeUndefined()
  await vi.advanceTimersByTimeAsync(1)
  await reading
  expect(read).toEqual(RECORDED)
})

test('while the store fails, what operators announced before stays on the page, and its incidents do not', async () => {
  let announcements = [{ id: 'a', text: 'no sign-in for an hour', from: 1, until: NOW + 1, by: 'me' }]
  let broken = false
  const { history } = counted()
  const source = statusSource(history, async () => {
    if (broken) throw new Error('canary')
    return { announcements, updates: [], shared: [] }
  })
  expect(await source.read(NOW)).toEqual({ ...RECORDED, announcements, updates: [], shared: [] })
  broken = true
  expect(await source.read(NOW + 10_000)).toEqual({ ...RECORDED, announcements, updates: [] })
  // What was withdrawn since does not come back with the next failure.
  broken = false
  announcements = []
  expect(await source.read(NOW + 20_000)).toEqual({ ...RECORDED, announcements, updates: [], shared: [] })
  broken = true
  expect(await source.read(NOW + 30_000)).toEqual({ ...RECORDED, announcements, updates: [] })
})

test('of stored incidents those of probes and services are shown, with their length so far', async () => {
  const incident = (cause: string, closedAt?: number): StoredIncident => ({
    id: cause,
    cause,
    service: 'web',
    reason: 'no answer',
    affected: ['api'],
    openedAt: NOW - 60_000,
    seenAt: NOW,
    closedAt,
    acknowledgedAt: undefined,
    acknowledgedBy: undefined,
  })
  const asked: number[] = []
  const store = {
    list: async (limit: number) => {
      asked.push(limit)
      return [incident('payments', NOW - 45_000), incident('api'), incident('disk_nearly_full')]
    },
  } as Partial<IncidentStore> as IncidentStore
  const found = await sharedIncidents(store, learning, NOW)
  const shown = {
    service: 'web',
    state: 'failing',
    reason: 'no answer',
    beganAt: NOW - 60_000,
    feltBy: ['api'],
  }
  expect(found).toEqual([
    { ...shown, probe: 'payments', endedAt: NOW - 45_000, lengthMs: 15_000 },
    { ...shown, probe: 'api', endedAt: undefined, lengthMs: 60_000 },
  ])
  expect(asked).toEqual([200])
  // The clock of another machine is ahead.
  expect((await sharedIncidents(store, learning, NOW - 70_000))[1]?.lengthMs).toBe(0)
})

test('a target is told as its origin, and one that is no address or not set is not told', () => {
  const own = (text: string | undefined) =>
    targetOf(
      {
        ...learning,
        probes: [
          {
            name: 'kiln',
            service: 'web',
            target: () => text,
            open: () => async () => ({ state: 'ok', checked: true }),
          },
        ],
      },
      readSettings(learning, {}),
      'kiln',
    )
  expect(own('https://user@kiln.example:8443/secret?key=1')).toBe('https://kiln.example:8443')
  expect(own('kiln.internal')).toBeUndefined()
  expect(own(undefined)).toBeUndefined()
  expect(targetOf(learning, readSettings(learning, {}), 'kiln')).toBeUndefined()
})

test('what is not configured is told by its own meaning, then by its group, and never left out', () => {
  const probe = { service: 'web', open: () => async () => ({ state: 'ok', checked: true }) as const }
  const platform = {
    ...learning,
    probes: [
      { ...probe, name: 'kiln', group: 'datastore', meaning: 'no firings' },
      { ...probe, name: 'oven', group: 'datastore' },
      { ...probe, name: 'api', meaning: 'never told' },
      { ...probe, name: 'lost', group: 'nothing' },
    ],
  }
  const means = (name: string) => meaningOf(platform, name, en)
  expect(means('kiln')).toBe('no firings')
  expect(means('oven')).toBe(en.status.absent.datastore ?? learning.contract.group('datastore')?.absent)
  expect(means('datastore')).toBe(means('oven'))
  expect(means('api')).toBe(en.status.addressNotSet)
  expect(means('lost')).toBe(en.status.nothingDependsOnIt)
})
