import { describe, expect, test } from 'vitest'
import { type DispatchResult, PAUSED } from '../../../src/core/course/dispatch.ts'
import { dueAt } from '../../../src/core/course/due.ts'
import { createWakes } from '../../../src/core/course/wakes.ts'
import { DAY_MS, HOUR_MS, MINUTE_MS } from '../../../src/core/durations.ts'
import { courseWith } from '../../support/course.ts'

describe.each(['sqlite', 'postgres'] as const)('the schedule on %s', (kind) => {
  async function schedule() {
    const it = await courseWith(2, { kind })
    const calls: unknown[] = []
    const course = {
      dispatch: (options: Parameters<typeof it.course.dispatch>[0]) => {
        calls.push(options)
        return it.course.dispatch(options)
      },
    }
    const clock = { now: it.now, monotonic: it.now }
    const isDue = () => it.store.course.isDue(it.now())
    const wakes = createWakes({ dispatch: course.dispatch, isDue, clock })
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
    expect(await it.store.course.rewindLessons(it.now())).toBe(1)
    expect(await it.minute()).toBe(1)
    expect(await it.store.course.rewindLessons(it.now())).toBe(0)
    expect((await it.rows()).map((one) => one?.nextAttemptAt)).toEqual(
      (await it.rows()).map((one) => one?.dueAt),
    )
    it.answer(() => ({ kind: 'transient', scope: 'message', reason: 'busy' }))
    expect(await it.minute(DAY_MS)).toBe(2)
    expect(await it.store.course.rewindLessons(it.now())).toBe(0)
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
  const clock = { now: () => 0, monotonic: () => 0 }
  const wakes = createWakes({ dispatch, isDue: async () => true, clock })
  for (let minute = 0; minute < 2; minute += 1) await wakes.minute(new AbortController().signal)
  expect(made).toBe(calls)
})

test('a spacing below an hour does not let overdue lessons come in a burst', () => {
  const plan = { cadence: { kind: 'every', ms: DAY_MS }, spacingMs: MINUTE_MS } as const
  const next = (lastSentAt: number) => dueAt(plan, { confirmedAt: 0, lastSentAt }, 2, undefined)
  expect(next(5 * DAY_MS)).toBe(5 * DAY_MS + HOUR_MS)
  expect(next(DAY_MS - 1)).toBe(DAY_MS + MINUTE_MS - 1)
})
