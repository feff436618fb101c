import { expect, test } from 'vitest'
import { HOUR_MS, MINUTE_MS } from '../../../src/core/durations.ts'
import { courseWith } from '../../support/course.ts'

const BUSY = { kind: 'transient', scope: 'message', reason: 'cannot take it now (503)' } as const

test('a provider that takes nothing for two days parks nobody: each lesson leaves once it takes them again', async () => {
  const it = await courseWith(12)
  it.answer(() => BUSY)
  for (let passed = 0; passed < 48 * HOUR_MS; passed += 5 * MINUTE_MS) {
    await it.course.dispatch({})
    it.pass(5 * MINUTE_MS)
  }
  expect(it.messages.length).toBeGreaterThan(12 * 12)
  it.answer(({ key }) => ({ kind: 'sent', id: key }))
  it.pass(6 * HOUR_MS)
  expect(await it.course.dispatch({})).toMatchObject({ sent: 12, failed: 0 })
})

test.each([false, true])(
  'a lesson that fails twelve times while others are taken is parked; a process for each run: %s',
  async (alone) => {
    const it = await courseWith(3)
    const dispatch = () => (alone ? it.open(it.store.course) : it.course).dispatch({})
    const ofOne = () => it.messages.filter(({ to }) => to.address === 'p0@example.com').length
    it.answer((message) =>
      message.to.address === 'p0@example.com' ? BUSY : { kind: 'sent', id: message.key },
    )
    for (let passed = 0; passed < 60 * HOUR_MS; passed += 5 * MINUTE_MS) {
      await dispatch()
      it.pass(5 * MINUTE_MS)
    }
    expect(ofOne()).toBeGreaterThanOrEqual(12)
    const [one] = await it.rows()
    expect(one).toMatchObject({ nextAttemptAt: undefined, problem: { kind: 'parked' } })
    const before = ofOne()
    it.pass(12 * HOUR_MS)
    await dispatch()
    expect(ofOne()).toBe(before)
  },
)
