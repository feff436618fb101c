import { expect, test } from 'vitest'
import { createHeld, type Hold } from '../../../src/core/mail/holds.ts'

test('a pause, and its end, is in force everywhere within ten seconds, for its own stream alone', async () => {
  let now = 0
  let holds: readonly Hold[] = []
  const held = createHeld(
    async () => holds,
    () => now,
  )
  expect(await held('mail')).toBeUndefined()
  holds = [{ stream: 'mail', at: 1, reason: 'wrong texts' }]
  now += 10_000
  expect([await held('mail'), await held('course')]).toEqual([holds[0], undefined])
  holds = []
  now += 10_000
  expect(await held('mail')).toBeUndefined()
})
