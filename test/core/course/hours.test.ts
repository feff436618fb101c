import { describe, expect, test } from 'vitest'
import { createCatalog } from '../../../src/core/course/catalog.ts'
import { type DispatchResult, PAUSED } from '../../../src/core/course/dispatch.ts'
import { dueAt } from '../../../src/core/course/due.ts'
import { createWakes } from '../../../src/core/course/hours.ts'
import { DAY_MS, HOUR_MS, MINUTE_MS } from '../../../src/core/durations.ts'
import { learning } from '../../../src/presets/learning/platform.ts'
import { courseWith } from '../../support/course.ts'
import { KEPT } from '../../support/stores.ts'

describe.each(KEPT)('the schedule on %s', (kind) => {
  async function schedule() {
    const it = await courseWith(2, { kind })
    const calls: unknown[] = []
    const wakes = createWakes({
      dispatch: (options) => {
        calls.push(options)
        return it.course.dispatch(options)
      },
      isDue: () => it.store.course.isDue(it.now()),
      clock: { now: it.now, monotonic: it.now },
    })
    const { signal } = new AbortController()
    return {
      ...it,
      calls,
      /** A minute passes; gives how many were sent at its end. */
      async minute(ms = MINUTE_MS) {
        it.pass(ms)
        const before = it.messages.length
        await wakes.minute(signal)
        return it.messages.length - before
      },
    }
  }

  test('sends what became due in each minute, and calls nothing while nothing is due', async () => {
    const it = await schedule()
    expect(await it.minute()).toBe(2)
    expect(await it.minute()).toBe(0)
    expect(await it.minute(DAY_MS - 3 * MINUTE_MS)).toBe(0)
    expect(it.calls).toHaveLength(1)
    expect(await it.minute()).toBe(2)
  })

  test('a retry that a clock ten days ahead has planned is made now, one within its pause stays, and nobody else’s moves', async () => {
    const it = await schedule()
    it.answer(() => ({ kind: 'transient', scope: 'connection', reason: 'busy' }))
    await it.open(it.store.course, { aheadMs: 10 * DAY_MS }).dispatch({ limit: 1 })
    it.answer(({ key }) => ({ kind: 'sent', id: key }))
    expect(await it.minute()).toBe(1)
    await it.course.redate()
    expect(await it.minute()).toBe(1)
    await it.course.redate()
    expect((await it.rows()).map((one) => one?.nextAttemptAt)).toEqual(
      (await it.rows()).map((one) => one?.dueAt),
    )
    it.answer(() => ({ kind: 'transient', scope: 'message', reason: 'busy' }))
    expect(await it.minute(DAY_MS)).toBe(2)
    const waiting = await it.rows()
    await it.course.redate()
    expect(await it.rows()).toEqual(waiting)
  })

  test('a course that a clock three days ahead began goes on a day later once it is right, and each lesson comes once', async () => {
    const it = await courseWith(1, { kind })
    await it.join('late@example.com', { id: 'late', at: it.now() + 3 * DAY_MS })
    const ahead = it.open(it.store.course, { aheadMs: 3 * DAY_MS })
    expect(await ahead.dispatch({ limit: 10 })).toMatchObject({ sent: 2 })
    it.pass(HOUR_MS)
    const untouched = (await it.rows())[0]
    await it.course.redate()
    expect((await it.rows())[0]).toEqual(untouched)
    const redated = await it.store.course.findById('late')
    expect(redated).toMatchObject({ lastSentAt: it.now(), dueAt: it.now() + DAY_MS })
    await it.course.redate()
    expect(await it.store.course.findById('late')).toEqual(redated)
    expect(await it.course.history('late')).toContainEqual(
      expect.objectContaining({ kind: 'set', reason: expect.stringContaining('clock') }),
    )
    for (let day = 2; day <= 7; day += 1) {
      it.pass(DAY_MS)
      expect(await it.course.dispatch({ limit: 10 })).toMatchObject({ sent: 2, remaining: 0 })
      expect(await it.store.course.lastSentAt()).toBe(it.now())
    }
    expect(new Set(it.messages.map(({ key }) => key)).size).toBe(14)
    expect(it.messages).toHaveLength(14)
  })

  test('a lesson that was never sent, or failed, under a clock that was ahead leaves once it is right', async () => {
    const it = await courseWith(0, { kind })
    const at = it.now() + 3 * DAY_MS
    await it.join('fails@example.com', { at })
    it.answer(() => ({ kind: 'transient', scope: 'message', reason: 'busy' }))
    await it.open(it.store.course, { aheadMs: 3 * DAY_MS }).dispatch({ limit: 1 })
    await it.join('waits@example.com', { at })
    it.answer(({ key }) => ({ kind: 'sent', id: key }))
    expect(await it.course.dispatch({ limit: 10 })).toMatchObject({ processed: 0 })
    // However many pages of people there are.
    const page = async (after: string) => (await it.store.course.page(after)).slice(0, 1)
    await it.open({ ...it.store.course, page }).redate()
    expect(await it.course.dispatch({ limit: 10 })).toMatchObject({ sent: 2 })
  })

  test('the spacing from a lesson that a clock ahead has sent is counted from when it is right', async () => {
    const [course] = learning.courses
    const spaced = createCatalog(course ? [{ ...course, spacingMs: DAY_MS }] : [])
    const it = await courseWith(0, { kind, catalog: spaced })
    await it.join('a@example.com', { id: 'a', begins: await spaced.begin() })
    await it.open(it.store.course, { aheadMs: 3 * DAY_MS }).dispatch({ limit: 10 })
    await it.course.redate()
    expect(await it.store.course.findById('a')).toMatchObject({
      confirmedAt: it.now(),
      nextAttemptAt: it.now() + DAY_MS,
    })
  })

  test('nothing is dated anew that an import has planned, that is in hand, or that no clock ahead has dated', async () => {
    const it = await courseWith(1, { kind })
    it.answer(() => ({ kind: 'unknown', reason: 'lost' }))
    const before = await it.rows()
    await it.course.redate()
    expect(await it.rows()).toEqual(before)
    const ahead = { now: it.now() + 3 * DAY_MS, limit: 1, retries: 0, leaseMs: MINUTE_MS, call: 'c' }
    await it.store.course.claimDue(ahead)
    const claimed = await it.rows()
    await it.course.redate()
    expect(await it.rows()).toEqual(claimed)
  })

  test('sends one overdue lesson an hour after an outage, while each call of the endpoint sends one', async () => {
    const it = await schedule()
    expect(await it.minute(4 * DAY_MS)).toBe(2)
    expect(await it.minute()).toBe(0)
    expect(it.calls).toHaveLength(1)
    expect(await it.course.dispatch({ limit: 10 })).toMatchObject({ sent: 2, remaining: 2 })
    expect(await it.minute(HOUR_MS - 1)).toBe(0)
    expect(await it.minute(1)).toBe(2)
    expect(await it.course.dispatch({ limit: 1 })).toMatchObject({ sent: 1 })
  })

  test('a lesson that a clock ahead has sent holds up no overdue one', async () => {
    const it = await schedule()
    it.pass(4 * DAY_MS)
    await it.open(it.store.course, { aheadMs: 3 * HOUR_MS }).dispatch({ limit: 10 })
    expect(await it.minute()).toBe(2)
  })

  test('who becomes due within the pause of others is sent to alone', async () => {
    const it = await schedule()
    expect(await it.minute(4 * DAY_MS)).toBe(2)
    await it.join('late@example.com', { id: 'late' })
    expect(await it.minute()).toBe(1)
    expect(it.messages.at(-1)?.to.address).toBe('late@example.com')
  })

  test('leaves a provider that refuses us alone for five minutes, and then goes on', async () => {
    const it = await schedule()
    it.answer(() => ({ kind: 'transient', scope: 'connection', reason: 'no answer' }))
    await it.minute()
    expect(it.calls).toHaveLength(1)
    expect(await it.minute(4 * MINUTE_MS)).toBe(0)
    it.answer(({ key }) => ({ kind: 'sent', id: key }))
    let sent = 0
    for (let minute = 0; minute < 10; minute += 1) sent += await it.minute()
    expect(sent).toBe(2)
  })
})

test.each([
  [undefined, 2],
  // What was paused meanwhile goes on in the minute after its resume.
  [PAUSED, 2],
  ['the provider refused the key', 1],
])('after a call that ended with the reason %j, two minutes make %i calls', async (reason, calls) => {
  let made = 0
  async function dispatch(): Promise<DispatchResult> {
    made += 1
    const none = { processed: 0, sent: 0, failed: 0, unknown: 0, remaining: 0, limit: 100, results: [] }
    return { ...none, ...(reason !== undefined && { reason }) }
  }
  let now = 0
  const clock = { now: () => now, monotonic: () => 0 }
  const wakes = createWakes({ dispatch, isDue: async () => true, clock })
  for (let minute = 0; minute < 2; minute += 1) {
    await wakes.minute(new AbortController().signal)
    // A clock that is set makes no pause shorter.
    now += HOUR_MS
  }
  expect(made).toBe(calls)
})

test('a spacing below an hour does not let overdue lessons come in a burst', () => {
  const plan = { cadence: { kind: 'every', ms: DAY_MS }, spacingMs: MINUTE_MS } as const
  const next = (lastSentAt: number) => dueAt(plan, { confirmedAt: 0, lastSentAt }, 2, undefined)
  expect(next(5 * DAY_MS)).toBe(5 * DAY_MS + HOUR_MS)
  expect(next(DAY_MS - 1)).toBe(DAY_MS + MINUTE_MS - 1)
})
