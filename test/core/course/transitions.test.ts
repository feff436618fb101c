import { expect, test } from 'vitest'
import type { Claim, SubscriptionRecord } from '../../../src/core/course/subscription.ts'
import {
  claimOf,
  inTurn,
  lostAttempt,
  record,
  resolve,
  take,
} from '../../../src/core/course/transitions/claim.ts'
import {
  enrol,
  enrolRefusal,
  newSubscription,
  prefer,
  wantsConfirmation,
} from '../../../src/core/course/transitions/enrol.ts'
import { endByFeedback, undoUnsubscribe, unsubscribe } from '../../../src/core/course/transitions/leave.ts'
import type { Outcome } from '../../../src/core/mail/mailer.ts'
import { settle } from '../../support/settle.ts'

const MINUTE = 60_000
const HOUR = 60 * MINUTE
const DAY = 24 * HOUR
const NOW = 100 * DAY

const ada = newSubscription({
  course: 'pottery',
  id: 'ada',
  identity: 'ada@example.com',
  address: 'Ada@example.com',
  now: NOW - DAY,
})
const START = { dueAt: NOW + 1, lessons: 3, pinned: { version: 'v1', plan: '{}', texts: [] } }
const consent = { at: NOW, how: 'form at the fair' }
const begin = {
  ...{ now: NOW, start: START, timeZone: 'Europe/Berlin', language: 'de', suppression: undefined, consent },
}
const enrolled = enrol(ada, begin)
const lease = { now: NOW + HOUR, leaseMs: 90_000, leaseUntil: 7_000, call: 'call-1' }
const taken = take(enrolled, lease)
const claim = claimOf(taken) as Claim

/** The fields that a change has changed, and what they are now: nothing else may have. */
function changes(before: SubscriptionRecord, after: SubscriptionRecord | undefined) {
  if (after === undefined) return undefined
  // Its own keys, as the type has no index.
  const [a, b] = [before, after] as unknown as Record<string, unknown>[]
  const names = new Set([...Object.keys(before), ...Object.keys(after)])
  return Object.fromEntries(
    [...names].filter((name) => !Object.is(a?.[name], b?.[name])).map((name) => [name, b?.[name]]),
  )
}

test('an enrolment sets the course, its times and its subscriber’s zone and language, and a new one clears the old', () => {
  expect(changes(ada, enrolled)).toEqual({
    consent,
    state: 'confirmed',
    enrolment: 1,
    fence: 1,
    confirmedAt: NOW,
    lessons: 3,
    dueAt: NOW + 1,
    courseVersion: 'v1',
    timeZone: 'Europe/Berlin',
    language: 'de',
    nextAttemptAt: NOW + 1,
  })
  const over = record(taken, settle(claim, { kind: 'permanent', hardBounce: false, reason: 'no' }, NOWS))
  if (over === undefined) throw new Error('the claim holds')
  const again = enrol(
    { ...over, sentDays: [1], sentLessons: ['a'], needs: 2, lastSentAt: 5, unsubscribedAt: 6 },
    begin,
  )
  expect(again).toEqual({ ...enrolled, enrolment: 2, fence: over.fence + 1, claimedBy: 'call-1' })
})
const NOWS = { now: NOW + 2 * HOUR, fraction: 0, next: undefined }

test('on a suppressed address an enrolment ends at once, as dead after a bounce and as suppressed after a complaint or by hand', () => {
  const on = (cause: 'hard-bounce' | 'complaint' | 'manual') =>
    enrol(ada, { ...begin, suppression: { cause, at: 5, reason: 'r', source: 'operator' } })
  expect(changes(enrolled, on('hard-bounce'))).toEqual({
    state: 'unsubscribed',
    unsubscribedAt: NOW,
    nextAttemptAt: undefined,
    fence: 2,
    problem: { kind: 'bounced', reason: 'r', since: NOW },
  })
  expect(on('complaint').problem).toEqual({ kind: 'suppressed', reason: 'r', since: NOW })
  for (const one of [on('hard-bounce'), on('complaint'), on('manual')]) {
    expect(enrolRefusal(one)).toBe('suppressed')
    expect(undoUnsubscribe(one, NOW)).toBeUndefined()
    expect(wantsConfirmation(one, { count: 0, newestAt: undefined }, NOW)).toBe(false)
  }
})

test('a claim sets its lease and its call, keeps the moment of the first attempt, and makes a lost attempt unknown', () => {
  expect(changes(enrolled, taken)).toEqual({
    nextAttemptAt: NOW + HOUR + 90_000,
    firstAttemptAt: NOW + HOUR,
    claimedAt: NOW + HOUR,
    leaseUntil: 7_000,
    claimedBy: 'call-1',
    fence: 2,
  })
  expect(lostAttempt(enrolled, taken)).toBeUndefined()
  const again = take(taken, { now: NOW + 2 * HOUR, leaseMs: 1, leaseUntil: 8_000, call: 'call-2' })
  expect(changes(taken, again)).toEqual({
    nextAttemptAt: NOW + 2 * HOUR + 1,
    claimedAt: NOW + 2 * HOUR,
    leaseUntil: 8_000,
    claimedBy: 'call-2',
    fence: 3,
    problem: { kind: 'unknown', reason: expect.stringContaining('ended before'), since: NOW + HOUR },
  })
  expect(lostAttempt(taken, again)).toEqual({
    at: NOW + HOUR,
    kind: 'attempt',
    enrolment: 1,
    day: 1,
    outcome: 'unknown',
    reason: again.problem?.reason,
  })
  // Unknown already: since the first.
  const problem = { kind: 'unknown', reason: 'the line broke', since: 5 } as const
  expect(take({ ...taken, problem }, lease).problem?.since).toBe(5)
  expect(take({ ...enrolled, problem }, lease).problem).toBe(problem)
  // Failed before: that attempt delivered nothing, and the lost one may have.
  const failed = { kind: 'failed', reason: 'greylisted', since: 5 } as const
  expect(take({ ...taken, problem: failed }, lease).problem).toEqual(again.problem)
})

test('claims that may have been delivered leave first; of any others, neighbors leave far apart', () => {
  const of = (n: number) => ({ ...claim, id: String(n) })
  const unknown = { ...of(-1), problem: { kind: 'unknown', reason: 'lost', since: 1 } } as const
  for (const size of [10, 24, 100, 400]) {
    const order = inTurn([...Array.from({ length: size }, (_, n) => of(n)), unknown, unknown])
    const places = order.map(({ id }) => Number(id))
    expect(places.slice(0, 2)).toEqual([-1, -1])
    expect(places.slice(2).toSorted((a, b) => a - b)).toEqual(Array.from({ length: size }, (_, n) => n))
    // Of the first third, never two in a row that are followed by a third.
    const refused = places.slice(2).map((n) => n < size / 3)
    expect(refused.some((one, n) => one && refused[n + 1] && refused[n + 2])).toBe(false)
  }
})

const next = { dueAt: NOW + DAY, lessons: 3 }
const FREE = { claimedAt: undefined, leaseUntil: undefined }
test.each<[string, Outcome, Partial<SubscriptionRecord>]>([
  [
    'sent',
    { kind: 'sent', id: 'm' },
    {
      sentDays: [1],
      dueAt: next.dueAt,
      lastSentAt: NOWS.now,
      nextAttemptAt: next.dueAt,
      firstAttemptAt: undefined,
    },
  ],
  [
    'refused for good',
    { kind: 'permanent', hardBounce: false, reason: 'no' },
    {
      nextAttemptAt: undefined,
      failures: 1,
      problem: { kind: 'parked', reason: 'no', since: NOWS.now },
    },
  ],
  [
    'refused for a dead address',
    { kind: 'permanent', hardBounce: true, reason: 'gone' },
    {
      state: 'unsubscribed',
      unsubscribedAt: NOWS.now,
      nextAttemptAt: undefined,
      failures: 1,
      problem: { kind: 'bounced', reason: 'gone', since: NOWS.now },
    },
  ],
  [
    'of an unknown outcome',
    { kind: 'unknown', reason: 'late' },
    {
      nextAttemptAt: NOWS.now + 5 * MINUTE,
      failures: 1,
      problem: { kind: 'unknown', reason: 'late', since: NOWS.now },
    },
  ],
])('a lesson that was %s changes exactly these fields of its subscription', (_, outcome, expected) => {
  const after = record(taken, settle(claim, outcome, { ...NOWS, next }))
  expect(changes(taken, after)).toEqual({ fence: 3, ...FREE, ...expected })
})

test('an outcome whose claim is lost counts only if the lesson was sent, and only once, and only in its enrolment', () => {
  const sent = settle(claim, { kind: 'sent', id: 'm' }, { ...NOWS, next })
  const failed = settle(claim, { kind: 'unknown', reason: 'late' }, NOWS)
  for (const fence of [claim.fence - 1, claim.fence + 1]) {
    expect(record({ ...taken, fence, claimedBy: 'call-2' }, failed)).toBeUndefined()
    expect(record({ ...taken, fence }, sent)?.sentDays).toEqual([1])
  }
  expect(record({ ...taken, enrolment: 2 }, failed)).toBeUndefined()
  expect(record({ ...taken, enrolment: 2 }, sent)).toBeUndefined()
  expect(record({ ...taken, sentDays: [1] }, sent)).toBeUndefined()
  // A subscriber who left meanwhile gets no further attempt, and a bounce is remembered.
  const left = unsubscribe(taken, NOW)
  expect(left && record(left, sent)).toMatchObject({ state: 'unsubscribed', nextAttemptAt: undefined })
  const problem = { kind: 'bounced', reason: 'r', since: 5 } as const
  expect(left && record({ ...left, problem }, sent)?.problem).toBe(problem)
})

test('an attempt whose claim was ended while it was out is over when it is answered, and what is unknown stays known', () => {
  const left = unsubscribe(taken, NOW) as SubscriptionRecord
  const over = { claimedAt: undefined, leaseUntil: undefined }
  const answered = (outcome: Outcome, before = left) =>
    changes(before, record(before, settle(claim, outcome, NOWS)))
  const unknown = { kind: 'unknown', reason: 'late' } as const
  expect(answered({ kind: 'permanent', reason: 'r', hardBounce: false })).toEqual(over)
  expect(answered(unknown)).toEqual({ ...over, problem: { ...unknown, since: NOWS.now } })
  const problem = { kind: 'bounced', reason: 'r', since: 5 } as const
  expect(answered(unknown, { ...left, problem })).toEqual(over)
  expect(record({ ...left, ...over }, settle(claim, unknown, NOWS))).toBeUndefined()
})

test('a returned claim waits from its due time if nothing was tried, and from now otherwise', () => {
  const due = { ...claim, dueAt: NOW }
  const problem = { kind: 'failed', reason: 'r', since: 1 } as const
  const back = (one: Claim, kind: 'untried' | 'again', now: number) =>
    settle(one, { kind }, { now, fraction: 0 })
  const at = (...args: Parameters<typeof back>) => back(...args).nextAttemptAt
  expect([
    at(due, 'untried', NOW + 5),
    at(due, 'again', NOW + 5),
    at({ ...due, problem }, 'untried', NOW + 5),
  ]).toEqual([NOW, NOW + 5, NOW + 5])
  expect(at(due, 'again', NOW - 5)).toBe(NOW)
  expect(changes(taken, record(taken, back({ ...claim, failures: 2, problem }, 'untried', NOW)))).toEqual({
    nextAttemptAt: NOW + 1,
    failures: 2,
    problem,
    claimedBy: undefined,
    fence: 3,
    ...FREE,
  })
  expect(record(taken, back(claim, 'again', NOW))?.claimedBy).toBe('call-1')
})

test('leaving ends what is due and voids the claim, but keeps the lease of a message that is out', () => {
  expect(changes(taken, unsubscribe(taken, NOW + 9))).toEqual({
    state: 'unsubscribed',
    unsubscribedAt: NOW + 9,
    nextAttemptAt: undefined,
    fence: 3,
  })
  expect(unsubscribe(ada, NOW)).toBeUndefined()
  const bounced = endByFeedback(enrolled, 'end-dead', { at: NOW, reason: 'r', now: NOW })
  if (bounced === undefined) throw new Error('it ends')
  // After a bounce the subscriber’s own word counts, and no operator brings them back.
  expect(changes(bounced, unsubscribe(bounced, NOW))).toEqual({ unsubscribedAt: NOW + 1 })
  expect(changes(bounced, unsubscribe(bounced, NOW + 7))).toEqual({ unsubscribedAt: NOW + 7 })
})

test('coming back goes on with the lesson in hand, now or when it is due, and not with one that waits', () => {
  const left = unsubscribe(enrolled, NOW)
  if (left === undefined) throw new Error('it ends')
  const back = (change: Partial<SubscriptionRecord>, now = NOW + DAY) =>
    changes(left, undoUnsubscribe({ ...left, ...change }, now))
  expect(back({})).toEqual({
    state: 'confirmed',
    unsubscribedAt: undefined,
    nextAttemptAt: NOW + DAY,
    fence: 3,
  })
  expect(back({}, NOW - DAY)).toMatchObject({ nextAttemptAt: NOW + 1 })
  expect(back({ sentDays: [1, 2, 3] })).not.toHaveProperty('nextAttemptAt')
  expect(back({ problem: { kind: 'parked', reason: 'r', since: NOW } })).not.toHaveProperty('nextAttemptAt')
  expect(back({ problem: { kind: 'failed', reason: 'r', since: 0 } })).toMatchObject({
    nextAttemptAt: NOW + DAY,
  })
  // An unknown one is repeated while the provider knows its key.
  const unknown = { problem: { kind: 'unknown', reason: 'r', since: NOW } } as const
  expect(back(unknown, NOW + 20 * HOUR - 1)).toMatchObject({ nextAttemptAt: NOW + 20 * HOUR - 1 })
  expect(back(unknown, NOW + 20 * HOUR)).not.toHaveProperty('nextAttemptAt')
  expect(undoUnsubscribe({ ...left, confirmedAt: undefined }, NOW)).toBeUndefined()
  expect(undoUnsubscribe(enrolled, NOW)).toBeUndefined()
})

test('in another time zone the lesson in hand moves, unless it was tried already', () => {
  const there = { timeZone: 'Asia/Tokyo' }
  const moved = { ...there, dueAt: NOW + 5, nextAttemptAt: NOW + 5 }
  expect(changes(enrolled, prefer(enrolled, there, NOW + 5))).toEqual(moved)
  expect(changes(taken, prefer(taken, there, NOW + 5))).toEqual(there)
  expect(changes(enrolled, prefer(enrolled, { language: 'fr' }, NOW + 5))).toEqual({ language: 'fr' })
  expect(prefer(enrolled, { timeZone: 'Europe/Berlin', language: 'de' }, NOW + 5)).toBeUndefined()
  // Nothing is planned for somebody who has left.
  const left = { ...enrolled, state: 'unsubscribed', nextAttemptAt: undefined } as const
  expect(prefer(left, there, NOW + 5)).toMatchObject({ ...there, nextAttemptAt: undefined })
})

test('feedback about an address ends its course, with the reason, and says nothing twice', () => {
  const at = { at: NOW, reason: 'r', now: NOW + 5 }
  expect(changes(enrolled, endByFeedback(enrolled, 'end-suppressed', at))).toEqual({
    state: 'unsubscribed',
    unsubscribedAt: NOW + 5,
    nextAttemptAt: undefined,
    fence: 2,
    problem: { kind: 'suppressed', reason: 'r', since: NOW + 5 },
  })
  const dead = endByFeedback(enrolled, 'end-dead', at)
  expect(dead && endByFeedback(dead, 'end-dead', at)).toBeUndefined()
  expect(dead && endByFeedback(dead, 'end-suppressed', at)?.problem?.kind).toBe('suppressed')
  expect(endByFeedback(ada, 'end-dead', at)).toBeUndefined()
  const left = unsubscribe(enrolled, NOW + 9)
  // Later than their own end, which stays.
  expect(left && endByFeedback(left, 'end-dead', at)).toMatchObject({
    unsubscribedAt: NOW + 9,
    problem: { since: NOW + 10 },
  })
  expect(changes(dead ?? ada, dead && endByFeedback(dead, 'release', at))).toEqual({
    problem: undefined,
    fence: 3,
  })
  expect(endByFeedback(enrolled, 'release', at)).toBeUndefined()
})

test('an unsubscribe reported by a provider ends the course unless the confirmation is clearly later', () => {
  const MARGIN = 5 * 60_000
  const of = (record: SubscriptionRecord, age: number, heard = DAY) =>
    endByFeedback(record, 'unsubscribe', { at: NOW + age, reason: 'r', now: NOW + heard })?.state
  expect([of(enrolled, -MARGIN - 1), of(enrolled, -MARGIN), of(enrolled, 0)]).toEqual([
    undefined,
    'unsubscribed',
    'unsubscribed',
  ])
  expect(of(ada, 0)).toBeUndefined()
  // Somebody who was imported agreed before the course was reckoned to begin, or agreed anew after it.
  const agreed = (at: number) => ({ ...enrolled, consent: { ...consent, at: NOW + at } })
  expect([of(agreed(-9), -MARGIN - 9), of(agreed(9), 8 - MARGIN)]).toEqual(['unsubscribed', undefined])
  // A clock that is ahead wrote the confirmation: it was not later than the report is heard.
  const ahead = agreed(DAY)
  expect([of(ahead, 1, 1 + MARGIN), of(ahead, 0, 1 + MARGIN)]).toEqual(['unsubscribed', undefined])
})

test('an operator retries what waits, or counts it as sent from when it was first tried', () => {
  const refused = settle(claim, { kind: 'permanent', hardBounce: false, reason: 'no' }, NOWS)
  const waiting = record(taken, refused) as SubscriptionRecord
  const asked: unknown[] = []
  const decide = (as: 'retry' | 'sent', change: Partial<SubscriptionRecord> = {}, now = NOW + DAY) =>
    resolve(
      { ...waiting, ...change },
      {
        ...{ as, now },
        next: ({ dueAt }, sentAt) => {
          asked.push([dueAt, sentAt])
          return next
        },
      },
    )
  const over = { problem: undefined, failures: 0, fence: waiting.fence + 1 }
  expect(changes(waiting, decide('retry'))).toEqual({ ...over, nextAttemptAt: NOW + DAY })
  expect(decide('retry', {}, NOW - DAY)?.nextAttemptAt).toBe(NOW + 1)
  expect(decide('retry', { claimedAt: 5 })?.claimedAt).toBe(NOW + DAY)
  expect(asked).toEqual([])
  expect(changes(waiting, decide('sent'))).toEqual({
    ...over,
    sentDays: [1],
    lastSentAt: NOW + HOUR,
    firstAttemptAt: undefined,
    dueAt: NOW + DAY,
    nextAttemptAt: NOW + DAY,
  })
  expect(decide('sent', { firstAttemptAt: undefined })?.lastSentAt).toBe(NOW + DAY)
  expect(asked).toEqual([
    [waiting.dueAt, NOW + HOUR],
    [waiting.dueAt, NOW + DAY],
  ])
  const undecidable: Partial<SubscriptionRecord>[] = [
    { problem: undefined },
    { sentDays: [1, 2, 3] },
    { confirmedAt: undefined },
    { unreadableDays: 'x' },
    { state: 'unsubscribed' },
  ]
  for (const none of undecidable) expect(decide('retry', none)).toBeUndefined()
  // Only a lesson that is due, and that nobody is sending, may have been sent before a restore.
  const untold = { problem: undefined }
  expect([decide('sent', untold)?.sentDays, decide('sent', untold, NOW)]).toEqual([[1], undefined])
  expect(decide('sent', { ...untold, claimedAt: 5 })).toBeUndefined()
})
