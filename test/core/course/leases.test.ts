import { describe, expect, test } from 'vitest'
import type { CourseStore } from '../../../src/core/course/store.ts'
import { DAY_MS } from '../../../src/core/durations.ts'
import { PlatformError } from '../../../src/core/errors.ts'
import type { Outcome } from '../../../src/core/mail/mailer.ts'
import { virtualTime } from '../../simulation/virtual-time.ts'
import { ADA, courseWith, START } from '../../support/course.ts'
import { KEPT } from '../../support/stores.ts'
import { outcomeOf } from '../../support/subscribers.ts'
import { during } from '../../support/virtual-work.ts'

const SECOND = 1000
const MINUTE = 60 * SECOND
const sent = { kind: 'sent', id: 'x' } as const

test('an outcome is recorded though the store cannot be written for some seconds; the call ends when it cannot for longer than a lease', async () => {
  for (const seconds of [5, Infinity]) {
    const time = virtualTime(START)
    const it = await courseWith(20, { time, kind: 'memory' })
    const settle: CourseStore['settle'] = async (settlements) => {
      if (time.elapsed() < seconds * SECOND) throw new PlatformError('store_unavailable', 'locked')
      return it.store.course.settle(settlements)
    }
    const call = during(time, it.open({ ...it.store.course, settle }).dispatch({ limit: 100 }))
    if (seconds === 5) expect(await call).toMatchObject({ sent: 20 })
    else await expect(call).rejects.toThrow('locked')
    for (const row of await it.rows()) expect(row?.sentDays).toEqual(seconds === 5 ? [1] : [])
    expect(time.elapsed()).toBeLessThanOrEqual(90 * SECOND)
  }
})

describe.each(KEPT)('on %s', (kind) => {
  test('a claim is held by its call and no other, also while its subscriber is gone, until its lease ends', async () => {
    let lease = 1_000_000
    const it = await courseWith(1, { kind, leaseClock: () => lease })
    const { course } = it.store
    const claim = (call: string) =>
      course.claimDue({ now: it.now(), limit: 1, retries: 0, leaseMs: MINUTE, call })
    const claims = await claim('first')
    const keep = (call: string) => course.keep({ claims, call, now: it.now(), leaseMs: MINUTE })
    const person = { id: 'person-0', enrolment: 1, now: it.now() }
    await course.unsubscribe(person)
    lease += MINUTE - 1
    await keep('first')
    lease += MINUTE - 1
    await course.undoUnsubscribe(person)
    await keep('another')
    expect(await claim('second')).toEqual([])
    lease += 1
    expect(await claim('first')).toEqual([])
    expect(await claim('second')).toMatchObject([{ day: 1, problem: { kind: 'unknown' } }])
  })

  test('a lesson whose subscriber left while it was in hand is never due again, although its claim was renewed', async () => {
    let lease = 1_000_000
    const it = await courseWith(1, { kind, leaseClock: () => lease })
    const { course } = it.store
    const asked = { limit: 1, retries: 0, leaseMs: MINUTE }
    const claims = await course.claimDue({ ...asked, now: it.now(), call: 'first' })
    await course.unsubscribe({ id: 'person-0', now: it.now() })
    await course.keep({ claims, call: 'first', now: it.now(), leaseMs: MINUTE })
    // Its holder is gone without an outcome.
    lease += 2 * MINUTE
    it.pass(DAY_MS)
    expect(await course.findById('person-0')).toMatchObject({
      state: 'unsubscribed',
      nextAttemptAt: undefined,
    })
    expect(await course.isDue(it.now())).toBe(false)
    expect(await course.backlog(it.now())).toMatchObject({ due: 0, waiting: 0, oldestDueAt: undefined })
    expect(await course.claimDue({ ...asked, now: it.now(), call: 'second' })).toEqual([])
    expect(await it.course.dispatch({ limit: 10 })).toMatchObject({ processed: 0, remaining: 0 })
  })

  test('what became of a lesson that another process has taken over meanwhile is in the history', async () => {
    let lease = 1_000_000
    const it = await courseWith(1, { kind, leaseClock: () => lease })
    const { course } = it.store
    const asked = { limit: 1, retries: 0, leaseMs: MINUTE, now: it.now() }
    const claims = await course.claimDue({ ...asked, call: 'first' })
    lease += 2 * MINUTE
    await course.claimDue({ ...asked, call: 'second' })
    const late = { sent: false, failures: 1, attempt: { outcome: 'transient', reason: 'later' } } as const
    await course.settle(claims.map((claim) => outcomeOf(claim, it.now() + 1, late)))
    const attempts = (await course.history('person-0')).filter((entry) => entry.kind === 'attempt')
    expect(attempts.map(({ outcome }) => outcome)).toEqual(['unknown', 'transient'])
    expect(await course.findById('person-0')).toMatchObject({ failures: 0 })
  })

  test('a dispatcher whose clock is two minutes ahead takes nothing that another has in hand', async () => {
    const it = await courseWith(20, { kind })
    const answers: ((outcome: Outcome) => void)[] = []
    it.answer(() => new Promise((resolve) => answers.push(resolve)))
    const first = it.course.dispatch({ limit: 100 })
    await expect.poll(() => answers.length).toBe(20)
    const ahead = it.open((await it.anotherStore()).course, { aheadMs: 2 * MINUTE })
    expect(await ahead.dispatch({ limit: 100 })).toMatchObject({ processed: 0 })
    for (const answer of answers) answer(sent)
    expect(await first).toMatchObject({ sent: 20 })
    expect(it.messages).toHaveLength(20)
  })
})

test('keeps the claim on a lesson in flight for ten minutes while its subscriber leaves and returns', async () => {
  const time = virtualTime(START)
  const it = await courseWith(1, { time, patienceMs: 14 * MINUTE })
  await during(time, it.course.dispatch({ limit: 1 }))
  const link = it.link()
  time.stepWallClock(DAY_MS)
  it.answer(async () => {
    await time.clock.sleep(10 * MINUTE)
    return sent
  })
  const first = it.course.dispatch({ limit: 1 })
  time.after(10 * SECOND, () => void it.course.unsubscribe(link))
  time.after(4 * MINUTE, () => void it.course.undoUnsubscribe(link))
  for (let minute = 1; minute < 10; minute += 1)
    time.after(minute * MINUTE + SECOND, () => void it.open(it.store.course).dispatch({ limit: 1 }))
  expect(await during(time, first)).toMatchObject({ sent: 1 })
  expect((await it.rows())[0]).toMatchObject({ state: 'confirmed', sentDays: [1, 2] })
  expect(it.messages).toHaveLength(2)
})

test('a confirmation that is out for five minutes is sent by no other process', async () => {
  const time = virtualTime(START)
  const it = await courseWith(0, { time, patienceMs: 14 * MINUTE })
  it.answer(async () => {
    await time.clock.sleep(5 * MINUTE)
    return sent
  })
  await it.course.subscribe(ADA)
  for (let minute = 1; minute < 5; minute += 1)
    time.after(minute * MINUTE, () => void it.open(it.store.course).deliverMessages())
  await during(time, it.course.close())
  expect(it.messages).toHaveLength(1)
})

test('keeps the claim of an undecided refusal while other messages of the call are in flight', async () => {
  const time = virtualTime(START)
  const it = await courseWith(2, { time, patienceMs: 14 * MINUTE })
  it.answer(async ({ to }) => {
    if (to.address === 'p0@example.com') return { kind: 'permanent', hardBounce: false, reason: 'no' }
    await time.clock.sleep(5 * MINUTE)
    return sent
  })
  const first = it.course.dispatch({ limit: 10 })
  for (let minute = 1; minute < 5; minute += 1)
    time.after(minute * MINUTE, () => void it.open(it.store.course).dispatch({ limit: 10 }))
  expect(await during(time, first)).toMatchObject({ sent: 1, failed: 1 })
  expect(it.messages).toHaveLength(2)
  expect(await it.rows()).toMatchObject([{ problem: { kind: 'parked' } }, { sentDays: [1] }])
})

test('abandons an attempt that exceeds its timeout before its lease ends', async () => {
  const time = virtualTime(START)
  const it = await courseWith(1, { time })
  it.answer(() => new Promise(() => {}))
  // The store takes 8 s to answer that the lesson is claimed.
  const slow: CourseStore = {
    ...it.store.course,
    claimDue: async (asked) => {
      const claims = await it.store.course.claimDue(asked)
      await time.clock.sleep(8 * SECOND)
      return claims
    },
  }
  const call = it.open(slow).dispatch({ limit: 1 })
  expect(await during(time, call)).toMatchObject({ unknown: 1 })
  expect(time.elapsed()).toBeLessThan(90 * SECOND)
})

test('a lesson claimed while the clock was a day ahead waits until it is due', async () => {
  const time = virtualTime(START)
  const it = await courseWith(1, { time })
  await during(time, it.course.dispatch({ limit: 1 }))
  const stepping: CourseStore = {
    ...it.store.course,
    claimDue: async (asked) => {
      const claims = await it.store.course.claimDue(asked)
      // Set right once, while the lesson is in hand.
      if (claims.length > 0) time.stepWallClock(-DAY_MS)
      return claims
    },
  }
  time.stepWallClock(DAY_MS)
  expect(await during(time, it.open(stepping).dispatch({ limit: 1 }))).toMatchObject({ processed: 0 })
  time.stepWallClock(10 * MINUTE)
  expect(await during(time, it.course.dispatch({ limit: 1 }))).toMatchObject({ processed: 0 })
  time.stepWallClock(DAY_MS)
  expect(await during(time, it.course.dispatch({ limit: 1 }))).toMatchObject({ sent: 1 })
})

test.each([365 * DAY_MS, 10 * 60 * MINUTE])(
  'an address that subscribed while the clock was %i ms ahead can subscribe again now, within the budget of the day',
  async (aheadMs) => {
    const time = virtualTime(START)
    const it = await courseWith(0, { time })
    const course = it.open(it.store.course, { more: { confirmationsPerDay: 1 } })
    time.stepWallClock(aheadMs)
    await it.subscribe(ADA, course)
    time.stepWallClock(-aheadMs)
    await it.subscribe(ADA, course)
    expect(it.messages).toHaveLength(2)
  },
)
