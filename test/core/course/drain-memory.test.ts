import { expect, test } from 'vitest'
import { systemClock, type Timer } from '../../../src/core/host.ts'
import { courseWith } from '../../support/course.ts'

test('a run without a limit holds the leases of what it has in hand, and none of what it has recorded', async () => {
  const it = await courseWith(1700, { kind: 'memory' })
  let [held, most] = [0, 0]
  const sleep: Timer['sleep'] = async (ms, signal) => {
    const lease = ms > 1000
    if (lease) most = Math.max(most, ++held)
    try {
      await systemClock.sleep(ms, signal)
    } finally {
      if (lease) held -= 1
    }
  }
  const course = it.open(it.store.course, { timer: { ...systemClock, sleep } })
  expect(await course.dispatch({ limit: Number.POSITIVE_INFINITY })).toMatchObject({ sent: 1700 })
  expect(held).toBe(0)
  expect(most).toBeGreaterThan(0)
  expect(most).toBeLessThanOrEqual(3)
})
