import { expect, test } from 'vitest'
import type { CourseStore } from '../../../src/core/course/store.ts'
import {
  enrol,
  newSubscription,
  readConfirmation,
  wantsConfirmation,
} from '../../../src/core/course/transitions/enrol.ts'
import { undoUnsubscribe, unsubscribe } from '../../../src/core/course/transitions/leave.ts'
import { createRefusals } from '../../../src/core/delivery/refusals.ts'
import { DAY_MS } from '../../../src/core/durations.ts'
import { LINES } from '../../../src/core/mail/mailer.ts'
import { virtualTime } from '../../simulation/virtual-time.ts'
import { courseWith, START } from '../../support/course.ts'
import { during } from '../../support/virtual-work.ts'

const SECOND = 1000
const HOUR_MS = 60 * 60 * SECOND
const NOW = 100 * DAY_MS

const ada = newSubscription({
  course: 'quantum',
  id: 'ada',
  identity: 'ada@example.com',
  address: 'ada@example.com',
  now: 0,
})

const enrolled = enrol(ada, {
  now: NOW,
  start: { dueAt: NOW, lessons: 7 },
  timeZone: undefined,
  language: undefined,
  suppression: undefined,
  consent: { at: NOW, how: 'form' },
})

test('a confirmation is mailed when the last one is an hour old and fewer than three are of this day', () => {
  const wants = (count: number, newestAt: number | undefined) =>
    wantsConfirmation(ada, { count, newestAt }, NOW)
  expect([wants(0, undefined), wants(2, NOW - HOUR_MS), wants(2, NOW - HOUR_MS + 1), wants(3, 0)]).toEqual([
    true,
    true,
    false,
    false,
  ])
})

test('a link works for exactly seven days, reports its use afterwards, and is invalid once replaced', () => {
  const read = (age: number, usedAt?: number, replaced = false) =>
    readConfirmation({ createdAt: NOW - age, usedAt, replaced }, NOW)
  expect([read(7 * DAY_MS - 1), read(7 * DAY_MS)]).toEqual(['use', 'expired'])
  expect([read(90 * DAY_MS, NOW, true), read(1, undefined, true)]).toEqual(['confirmed', 'invalid'])
})

test('undoing an unsubscribe puts an unknown lesson back in line until its key is 20 hours old', () => {
  const since = NOW
  const left = unsubscribe(
    { ...enrolled, problem: { kind: 'unknown', reason: 'the line broke', since } },
    1,
    NOW,
  )
  if (left === undefined) throw new Error('a confirmed subscription can be ended')
  const nextAt = (age: number) => undoUnsubscribe(left, 1, since + age)?.nextAttemptAt
  expect(nextAt(20 * HOUR_MS - 1)).toBe(since + 20 * HOUR_MS - 1)
  expect(nextAt(20 * HOUR_MS)).toBeUndefined()
  // A link of an enrolment that is still to come is no link of ours.
  expect([unsubscribe(enrolled, 2, NOW), undoUnsubscribe(left, 2, NOW)]).toEqual([undefined, undefined])
})

test('the fifth equal refusal in a row stops a call; four, another reason or a message taken between do not', async () => {
  const refusals = createRefusals()
  const verdicts: (string | undefined)[] = []
  const refuse = (reason: string, times: number) => {
    for (let n = 0; n < times; n += 1) {
      refusals.handOver()
      void refusals
        .refused({ kind: 'permanent', hardBounce: false, reason })
        .then((about) => verdicts.push(about))
    }
  }
  refuse('no', 4)
  refuse('never', 4)
  refusals.accepted(refusals.handOver())
  refuse('never', 4)
  expect(refusals.stop).toBeUndefined()
  await Promise.resolve()
  expect(verdicts).toEqual(Array(8).fill('one'))
  refuse('never', 1)
  expect(refusals.stop).toBe('5 failures in a row: never')
  await Promise.resolve()
  expect(verdicts.slice(8)).toEqual(Array(5).fill('all'))
  // Whatever is refused after that is about us too, and the first reason stays.
  refuse('other', 1)
  await Promise.resolve()
  expect(verdicts.slice(13)).toEqual(['all'])
  refuse('other', 4)
  expect(refusals.stop).toBe('5 failures in a row: never')
})

test('a refusal is about its message only once a message that was handed over after it is taken', async () => {
  const refusals = createRefusals()
  const before = refusals.handOver()
  const own = refusals.handOver()
  const verdict: string[] = []
  void refusals
    .refused({ kind: 'transient', scope: 'sender', reason: 'no' })
    .then((about) => verdict.push(about))
  for (const number of [before, own]) refusals.accepted(number)
  await Promise.resolve()
  expect(verdict).toEqual([])
  refusals.accepted(refusals.handOver())
  await Promise.resolve()
  expect(verdict).toEqual(['one'])
})

test('at the end of a call each refusal that is still unclear is taken for what its transport says', async () => {
  const refusals = createRefusals()
  const verdicts = [
    refusals.refused({ kind: 'permanent', hardBounce: false, reason: 'no' }),
    refusals.refused({ kind: 'transient', scope: 'sender', reason: 'never' }),
  ]
  refusals.end()
  expect(await Promise.all(verdicts)).toEqual(['one', 'all'])
})

test('five faults of ours in a row stop a call as five refusals do', () => {
  const refusals = createRefusals()
  for (let n = 0; n < 4; n += 1) refusals.failed('no slot')
  expect(refusals.stop).toBeUndefined()
  refusals.failed('no slot')
  expect(refusals.stop).toBe('5 failures in a row: no slot')
})

test('as many messages are out at once as the transport has lines, and no more', async () => {
  const time = virtualTime(START)
  const it = await courseWith(LINES.api + 10, { time, kind: 'memory' })
  let [out, most] = [0, 0]
  it.answer(async (message) => {
    out += 1
    most = Math.max(most, out)
    await time.clock.sleep(SECOND)
    out -= 1
    return { kind: 'sent', id: message.key }
  })
  expect(await during(time, it.course.dispatch({ limit: 1000 }))).toMatchObject({ sent: LINES.api + 10 })
  expect(most).toBe(LINES.api)
})

test.each([
  [25, 3],
  [26, 0],
])('of three claims that the store gave after %i seconds, begins %i', async (seconds, begun) => {
  const time = virtualTime(START)
  const it = await courseWith(3, { time, kind: 'memory' })
  const slow: CourseStore = {
    ...it.store.course,
    claimDue: async (asked) => {
      const claims = await it.store.course.claimDue(asked)
      if (claims.length > 0) await time.clock.sleep(seconds * SECOND)
      return claims
    },
  }
  const call = during(time, it.open(slow).dispatch({ limit: 3 }))
  if (begun > 0) expect(await call).toMatchObject({ sent: begun })
  else await expect(call).rejects.toThrow('The store took too long to claim what is due.')
  expect(it.messages).toHaveLength(begun)
  // Claims that were not begun are returned, and the next call takes them.
  expect(await during(time, it.course.dispatch({ limit: 3 }))).toMatchObject({ sent: 3 - begun })
})
