import fc from 'fast-check'
import { expect, test } from 'vitest'
import { plannedAlerts } from '../../../src/core/incidents/due.ts'
import type {
  Hearing,
  MessageKind,
  MessageRecord,
  StoredIncident,
} from '../../../src/core/incidents/incident.ts'
import { incidentWith } from '../../support/incidents.ts'

const OPENED = Date.UTC(2026, 10, 21, 9)
const MINUTE = 60_000
const HOUR = 60 * MINUTE

const incident = (parts: Partial<StoredIncident> = {}) => incidentWith({ openedAt: OPENED, ...parts })
const record = (kind: MessageKind, outcome: MessageRecord['outcome'] = 'sent', channel = 'webhook') => ({
  ...{ incident: 'one', kind, channel, outcome },
  ...{ attempts: 1, at: OPENED, reason: undefined },
})
/** What comes next, and how long after the incident opened. */
const next = (
  incidents: readonly StoredIncident[],
  told: readonly MessageRecord[],
  afterMs: number,
  hearing: Partial<Hearing> = {},
) =>
  plannedAlerts(incidents, told, [{ name: 'webhook', ...hearing }], OPENED + afterMs).map(
    ({ incident: id, kind, at }) => `${id} ${kind} ${(at - OPENED) / MINUTE}`,
  )
const told = (...kinds: MessageKind[]) => kinds.map((kind) => record(kind))

test('an alert is sent when an incident opens, every four hours, and when it closes', () => {
  expect(next([incident()], [], 0)).toEqual(['one opened 0'])
  expect(next([incident()], told('opened'), 1)).toEqual(['one reminder-1 240'])
  expect(next([incident()], told('opened'), 4 * HOUR)).toEqual(['one reminder-1 240'])
  expect(next([incident()], told('opened', 'reminder-1'), 5 * HOUR)).toEqual(['one reminder-2 480'])
  // After a night without the daemon one reminder is enough.
  expect(next([incident()], told('opened', 'reminder-1'), 13 * HOUR)).toEqual(['one reminder-3 720'])
  expect(next([incident()], told('opened', 'reminder-3'), 13 * HOUR)).toEqual(['one reminder-4 960'])
  // After the clock was set back.
  expect(next([incident()], told('opened'), -9 * HOUR)).toEqual(['one reminder-1 240'])
  const closed = incident({ closedAt: OPENED + HOUR })
  expect(next([closed], told('opened', 'reminder-1'), 48 * HOUR)).toEqual(['one closed 60'])
  expect(next([closed], told('opened', 'closed'), HOUR)).toEqual([])
})

test('an acknowledgement is sent once, and ends the reminders', () => {
  const taken = incident({ acknowledgedAt: OPENED + MINUTE, acknowledgedBy: 'ada' })
  expect(next([taken], told('opened'), 5 * HOUR)).toEqual(['one acknowledged 1'])
  expect(next([taken], told('opened', 'acknowledged'), 9 * HOUR)).toEqual([])
})

test('an incident that closed or was acknowledged before its first alert sends none', () => {
  expect(next([incident({ closedAt: OPENED + MINUTE })], [], 2 * MINUTE)).toEqual([])
  expect(next([incident({ acknowledgedAt: OPENED + MINUTE })], [], 2 * MINUTE)).toEqual([])
})

test('what was tried and may have arrived is tried again before what follows it, unless the incident ended; what was given up is not', () => {
  const pending = [record('opened', 'pending')]
  expect(next([incident()], pending, 5 * HOUR)).toEqual(['one opened 0'])
  expect(next([incident({ acknowledgedAt: OPENED })], pending, HOUR)).toEqual(['one opened 0'])
  expect(next([incident({ closedAt: OPENED + 1 })], pending, HOUR)).toEqual([`one closed ${1 / MINUTE}`])
  expect(next([incident()], [record('opened', 'failed')], 4 * HOUR)).toEqual(['one reminder-1 240'])
  expect(next([incident()], [...told('opened'), record('reminder-1', 'pending')], 4 * HOUR)).toEqual([
    'one reminder-1 240',
  ])
})

test('channels hear of an incident each for itself, and of what they take', () => {
  expect(next([incident()], [record('opened', 'sent', 'mail')], HOUR)).toEqual(['one opened 0'])
  const takes: Hearing['takes'] = (kind, { cause }) =>
    kind === 'closed' || (kind === 'opened' && cause === 'x')
  expect(next([incident()], [], 0, { takes })).toEqual([])
  expect(next([incident({ cause: 'x' })], [], 0, { takes })).toEqual(['one opened 0'])
  expect(next([incident()], told('opened'), 4 * HOUR, { takes })).toEqual([])
})

test('an escalation waits until nobody acknowledged in time, reminds nobody, and ends', () => {
  const afterMs = 15 * MINUTE
  expect(next([incident()], [], 0, { afterMs })).toEqual(['one opened 15'])
  expect(next([incident({ acknowledgedAt: OPENED + 1 })], [], 5 * HOUR, { afterMs })).toEqual([])
  expect(next([incident()], told('opened'), 5 * HOUR, { afterMs })).toEqual([])
  // From the end of a silence, but not of one that began after another channel was told.
  const silenced = (...records: MessageRecord[]) =>
    plannedAlerts([incident()], records, [{ name: 'escalation', afterMs }], OPENED, OPENED + HOUR)
  const from = (...records: MessageRecord[]) => silenced(...records).map(({ at }) => (at - OPENED) / MINUTE)
  expect(from()).toEqual([75])
  expect(from(record('opened'))).toEqual([15])
  for (const nobody of [
    record('opened', 'pending'),
    record('opened', 'failed'),
    record('opened', 'sent', 'subscribers'),
  ])
    expect(from(nobody)).toEqual([75])
  const taken = incident({ acknowledgedAt: OPENED + HOUR })
  expect(next([taken], told('opened'), 2 * HOUR, { afterMs })).toEqual(['one acknowledged 60'])
})

test('a cause flaps when it opened four times within the hour: it alerts only once it has lasted ten minutes', () => {
  const before = (...minutes: number[]) =>
    minutes.map((ago, n) =>
      incident({ id: `f${n}`, openedAt: OPENED - ago * MINUTE, closedAt: OPENED - ago * MINUTE + 1 }),
    )
  const heard = ['f0', 'f1', 'f2'].flatMap((id) =>
    told('opened', 'closed').map((one) => ({ ...one, incident: id })),
  )
  const soon = (before: readonly StoredIncident[], records = heard) =>
    next([...before, incident()], records, 0).filter((line) => line.startsWith('one '))
  expect(soon(before(59, 40, 20))).toEqual(['one opened 10'])
  expect(soon(before(60, 40, 20))).toEqual(['one opened 0'])
  expect(soon(before(40, 20))).toEqual(['one opened 0'])
  expect(soon(before(59, 40, 20).map((one) => ({ ...one, cause: 'x' })))).toEqual(['one opened 0'])
  // One that was tried already is not held back.
  expect(soon(before(59, 40, 20), [...heard, record('opened', 'pending')])).toEqual(['one opened 0'])
  // A channel that heard of none of them, or of none for as long as a reminder takes, hears of this one.
  expect(soon(before(59, 40, 20), [])).toEqual(['one opened 0'])
  expect(soon(before(239, 40, 20, 10), heard.slice(0, 2))).toEqual(['one opened 10'])
  expect(soon(before(240, 40, 20, 10), heard.slice(0, 2))).toEqual(['one opened 0'])
})

test('however a cause comes and goes, nobody waits longer to hear of it than for a reminder', () => {
  const spans = fc.array(fc.tuple(fc.integer({ min: 1, max: 200 }), fc.integer({ min: 1, max: 30 })))
  fc.assert(
    fc.property(spans, (all) => {
      const incidents: StoredIncident[] = []
      const heard: MessageRecord[] = []
      let openedAt = OPENED
      for (const [after, lasts] of all) {
        openedAt += after * MINUTE
        const closedAt = openedAt + lasts * MINUTE
        const one = incident({ id: String(openedAt), openedAt })
        const planned = plannedAlerts([...incidents, one], heard, [{ name: 'webhook' }], openedAt)
        const { at = closedAt } = planned.find(({ incident: id }) => id === one.id) ?? {}
        if (at < closedAt)
          heard.push(...told('opened', 'closed').map((all) => ({ ...all, incident: one.id })))
        incidents.push({ ...one, closedAt })
        expect(heard.some(({ incident: id }) => Number(id) > openedAt - 4 * HOUR)).toBe(true)
        openedAt = closedAt
      }
    }),
  )
})
