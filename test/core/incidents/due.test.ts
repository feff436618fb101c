import { expect, test } from 'vitest'
import { dueMessages } from '../../../src/core/incidents/due.ts'
import type { MessageKind, MessageRecord, StoredIncident } from '../../../src/core/incidents/incident.ts'

const OPENED = Date.UTC(2026, 10, 21, 9)
const MINUTE_MS = 60_000
const HOUR_MS = 60 * MINUTE_MS

const incident = (parts: Partial<StoredIncident> = {}): StoredIncident => ({
  id: 'one',
  cause: 'mail',
  service: 'web',
  reason: undefined,
  affected: [],
  openedAt: OPENED,
  seenAt: OPENED,
  closedAt: undefined,
  acknowledgedAt: undefined,
  acknowledgedBy: undefined,
  ...parts,
})

const told = (...kinds: MessageKind[]): MessageRecord[] =>
  kinds.map((kind) => ({
    incident: 'one',
    kind,
    channel: 'webhook',
    outcome: 'sent',
    attempts: 1,
    at: OPENED,
    reason: undefined,
  }))

const due = (incidents: StoredIncident[], messages: MessageRecord[], afterMs: number) =>
  dueMessages({ incidents, messages, channel: 'webhook', now: OPENED + afterMs }).map(({ kind }) => kind)

test('an alert is sent when an incident opens, every four hours, and when it closes', () => {
  expect(due([incident()], [], 0)).toEqual(['opened'])
  expect(due([incident()], told('opened'), 3.9 * HOUR_MS)).toEqual([])
  expect(due([incident()], told('opened'), 4 * HOUR_MS)).toEqual(['reminder-1'])
  // After a night without the daemon one reminder is enough.
  expect(due([incident()], told('opened', 'reminder-1'), 13 * HOUR_MS)).toEqual(['reminder-3'])
  const closed = incident({ closedAt: OPENED + HOUR_MS })
  expect(due([closed], told('opened'), HOUR_MS)).toEqual(['closed'])
  expect(due([closed], told('opened', 'closed'), HOUR_MS)).toEqual([])
})

test('an acknowledgement is sent once, and ends the reminders', () => {
  const taken = incident({ acknowledgedAt: OPENED + MINUTE_MS, acknowledgedBy: 'ada' })
  expect(due([taken], told('opened'), 5 * HOUR_MS)).toEqual(['acknowledged'])
  expect(due([taken], told('opened', 'acknowledged'), 9 * HOUR_MS)).toEqual([])
})

test('an incident that closed before its first alert sends none', () => {
  expect(due([incident({ closedAt: OPENED + MINUTE_MS })], [], 2 * MINUTE_MS)).toEqual([])
})

test('a flapping cause raises an alert only once it has lasted ten minutes', () => {
  const flaps = Array.from({ length: 4 }, (_, index) =>
    incident({
      id: `flap-${index}`,
      openedAt: OPENED - (4 - index) * 5 * MINUTE_MS,
      closedAt: OPENED - (4 - index) * 5 * MINUTE_MS + MINUTE_MS,
    }),
  )
  expect(due([...flaps, incident()], [], 9 * MINUTE_MS)).toEqual([])
  expect(due([...flaps, incident()], [], 10 * MINUTE_MS)).toEqual(['opened'])
})
