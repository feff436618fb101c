import { expect, test } from 'vitest'
import {
  ALERT,
  COURSE,
  type Delivery,
  type Job,
  MAIL,
  recordOf,
  type Stream,
} from '../../../src/core/delivery/retries.ts'
import { HOUR_MS, KEY_LIFE_MS, MINUTE_MS } from '../../../src/core/durations.ts'
import type { Outcome } from '../../../src/core/mail/mailer.ts'

const NOW = Date.UTC(2026, 10, 22)

const job = { dueAt: NOW - HOUR_MS, failures: 0, unknownSince: undefined, wasTried: false }

test.each([
  [Number.POSITIVE_INFINITY, HOUR_MS],
  [20 * MINUTE_MS, 20 * MINUTE_MS],
  [-1e15, 5 * MINUTE_MS],
  [Number.NaN, 5 * MINUTE_MS],
])('a transport that asks to be left alone for %d ms is tried again after %i', (retryAfterMs, pause) => {
  const delivery = { kind: 'transient', scope: 'message', reason: 'busy', retryAfterMs } as const
  for (const stream of [COURSE, MAIL])
    expect(recordOf(job, delivery, { now: NOW, fraction: 0, stream })).toMatchObject({
      result: 'waits',
      nextAttemptAt: NOW + pause,
    })
})

const failing = (scope: Extract<Outcome, { kind: 'transient' }>['scope']) =>
  ({ kind: 'transient', scope, reason: 'no' }) as const
const refused = { kind: 'permanent', hardBounce: false, reason: 'no' } as const
const lost = { kind: 'unknown', reason: 'no' } as const
const ours = { kind: 'not_composed', reason: 'no' } as const
/** What is written of a failure: its result, the failures counted, its problem, and the minutes until the next attempt. */
function written(stream: Stream, delivery: Delivery, of: Partial<Job> = {}, fraction = 0) {
  const record = recordOf({ ...job, ...of }, delivery, { now: NOW, fraction, stream })
  const minutes = record.result === 'waits' ? [(record.nextAttemptAt - NOW) / MINUTE_MS] : []
  return [record.result, record.failures, record.problem?.kind, ...minutes]
}

test.each([
  ['the message', failing('message'), ['waits', 1, 'failed', 5], ['waits', 1, 'failed', 5]],
  ['a refusal for good', refused, ['over', 1, 'parked'], ['over', 1, 'parked']],
  ['a dead address', { ...refused, hardBounce: true }, ['over', 1, 'bounced'], ['over', 1, 'bounced']],
  ['the sender', failing('sender'), ['waits', 0, 'failed', 5], ['waits', 1, 'failed', 5]],
  ['the connection', failing('connection'), ['waits', 0, 'failed', 5], ['waits', 1, 'failed', 5]],
  ['no answer', lost, ['waits', 1, 'unknown', 5], ['waits', 1, 'unknown', 5]],
  ['our own texts', ours, ['waits', 0, undefined, 0], ['waits', 0, undefined, 10]],
] as const)('%s is recorded of a lesson and of a mail as its row says', (_, delivery, lesson, mail) => {
  expect([written(COURSE, delivery), written(MAIL, delivery)]).toEqual([lesson, mail])
})

test('a lesson is parked by its twelfth failure, and one that may have been delivered before the provider forgets its key', () => {
  expect(written(COURSE, failing('message'), { failures: 10 })[0]).toBe('waits')
  expect(written(COURSE, failing('message'), { failures: 11 })).toEqual(['over', 12, 'parked'])
  expect(written(COURSE, lost, { failures: 40, unknownSince: NOW - HOUR_MS })[0]).toBe('waits')
  // A later fault of another kind leaves it unknown.
  for (const delivery of [lost, failing('message')]) {
    const before = (ms: number) => written(COURSE, delivery, { unknownSince: NOW - KEY_LIFE_MS + ms })
    expect(before(5 * MINUTE_MS + 1)).toEqual(['waits', 1, 'unknown', 5])
    expect(before(5 * MINUTE_MS)).toEqual(['over', 1, 'unknown'])
  }
})

test.each([
  [0, 0.9, 5],
  [1, 0.5, 7.5],
  [2, 0, 10],
  [3, 0, 20],
  [4, 0, 40],
  [5, 0, 80],
  [6, 0, 160],
  [7, 0, 180],
  [11, 0.5, 270],
])('after %i failures, with a spread of %d, a lesson waits %d minutes', (failures, fraction, minutes) => {
  expect(written(COURSE, lost, { failures }, fraction).at(-1)).toBe(minutes)
  // A clock that was stepped back makes no attempt come before the lesson is due.
  const dueAt = NOW + 10 * HOUR_MS
  expect(written(COURSE, lost, { failures, dueAt }, fraction).at(-1)).toBe(600)
})

test('an alert is tried hourly from its fifth failure, given up after fifteen, and its end only when it may have arrived or cannot', () => {
  const pauses = [0, 1, 2, 3, 4, 13].map((failures) => written(ALERT, failing('message'), { failures })[3])
  expect(pauses).toEqual([0.25, 1, 5, 15, 60, 60])
  const last = { failures: 14 }
  const end = { ...last, untilTaken: true }
  for (const delivery of [failing('message'), failing('connection'), lost, refused])
    expect(written(ALERT, delivery, last)[0]).toBe('over')
  for (const delivery of [failing('message'), failing('connection'), refused])
    expect(written(ALERT, delivery, end)[0]).toBe('waits')
  for (const delivery of [lost, { ...refused, hardBounce: true }])
    expect(written(ALERT, delivery, end)[0]).toBe('over')
})
