import { expect, test } from 'vitest'
import { virtualTime } from '../../simulation/virtual-time.ts'
import { courseWith, START } from '../../support/course.ts'
import { during } from '../../support/virtual-work.ts'

const SECOND = 1000

test('sends as many messages as the limit in one call through a slow provider', async () => {
  const time = virtualTime(START)
  const it = await courseWith(600, { time, kind: 'memory' })
  it.answer(async (message) => {
    await time.clock.sleep(20 * SECOND)
    return { kind: 'sent', id: message.key }
  })
  const call = await during(time, it.course.dispatch({ limit: 400 }))
  expect(call).toMatchObject({ processed: 400, sent: 400, remaining: 200 })
  expect(new Set(it.messages.map(({ key }) => key)).size).toBe(400)
})
