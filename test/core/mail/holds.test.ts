import { expect, test } from 'vitest'
import { createHeld, type Hold } from '../../../src/core/mail/holds.ts'

test('a pause, and its end, is in force everywhere within ten seconds, for its own stream alone', async () => {
  let now = 0
  let holds: readonly Hold[] | undefined = []
  const held = createHeld(
    async () => {
      if (holds === undefined) throw new Error('the store is away')
      return holds
    },
    () => now,
  )
  expect(await held('mail')).toBeUndefined()
  holds = [{ stream: 'mail', at: 1, reason: 'wrong texts' }]
  now += 10_000
  expect([await held('mail'), await held('course')]).toEqual([holds[0], undefined])
  now += 10_000
  holds = undefined
  await expect(held('mail')).rejects.toThrow('the store is away')
  // A fault is no answer for the next ten seconds.
  holds = []
  expect(await held('mail')).toBeUndefined()
})
