import { expect, test } from 'vitest'
import { createHours, createWakes } from '../../src/core/course/hours.ts'
import { silentLog } from '../../src/core/host.ts'
import { createPacer } from '../../src/core/mail/feedback/pacer.ts'
import { virtualTime } from '../simulation/virtual-time.ts'
import { courseWith, START } from '../support/course.ts'

const SECOND = 1000
const MINUTE = 60 * SECOND

test('a slow pace holds back no hour: what one leaves the next goes on with at once', async () => {
  const time = virtualTime(START)
  time.stepWallClock(50 * MINUTE)
  const it = await courseWith(150, { time })
  const sentAt: number[] = []
  it.answer((message) => {
    sentAt.push(time.elapsed())
    return { kind: 'sent', id: message.key }
  })
  const pace = createPacer({ perSecond: 0.2, store: async () => it.store.sending, timer: time.clock })
  const course = it.open(it.store.course, { more: { pace } })
  const wakes = createWakes({ dispatch: course.dispatch, isDue: async () => false, clock: time.clock })
  const done: [string, number][] = []
  const hours = createHours({
    store: it.store,
    clock: time.clock,
    log: silentLog,
    async run(signal) {
      await wakes.hour(signal)
      return 'done'
    },
    onDone: (hour) => done.push([hour, time.elapsed() / MINUTE]),
    onFault: (error) => {
      throw error
    },
  })
  hours.tick()
  await time.passUntil(30 * MINUTE, () => done.length === 2)
  expect(sentAt).toHaveLength(150)
  expect(sentAt.at(-1)).toBeLessThanOrEqual(150 * 5 * SECOND)
  expect(done.map(([hour, at]) => [hour, Math.floor(at)])).toEqual([
    ['2026-03-28T00', 10],
    ['2026-03-28T01', 12],
  ])
  await hours.stop()
})
