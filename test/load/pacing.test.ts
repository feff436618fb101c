import { describe, expect, onTestFinished, test } from 'vitest'
import { systemClock } from '../../src/core/host.ts'
import { createPacer } from '../../src/core/mail/feedback/pacer.ts'
import { courseWith } from '../support/course.ts'
import { addressOf, openTestStore } from '../support/stores.ts'

const DISPATCHERS = 16
const PER_SECOND = 100
const SECONDS = 10

test('sixteen dispatchers on PostgreSQL keep to the pace within 2 %', async () => {
  const address = await addressOf('postgres')
  const stores = await Promise.all(Array.from({ length: DISPATCHERS }, () => openTestStore(address)))
  const pacers = stores.map((store) =>
    createPacer({ perSecond: PER_SECOND, store: async () => store.sending, timer: systemClock }),
  )
  const stop = new AbortController()
  onTestFinished(() => stop.abort())
  const turns: number[] = []
  let left = PER_SECOND * SECONDS
  await Promise.all(
    pacers.map(async (pacer) => {
      while (left > 0) {
        left -= 1
        await pacer.places(1, stop.signal)
        turns.push(performance.now())
      }
    }),
  )
  // At the end each dispatcher holds places that nobody needs any more; before that none is lost.
  const steady = turns.sort((a, b) => a - b).slice(0, PER_SECOND * SECONDS * 0.8)
  const rate = ((steady.length - 1) / ((steady.at(-1) ?? 0) - (steady[0] ?? 0))) * 1000
  process.stderr.write(`${rate.toFixed(2)} of ${PER_SECOND} a second\n`)
  expect(rate / PER_SECOND).toBeGreaterThan(0.98)
  expect(rate / PER_SECOND).toBeLessThan(1.02)
}, 60_000)

describe.each(['sqlite', 'postgres'] as const)('on %s', (kind) => {
  test.each([
    [1, 20, 30],
    [4, 40, 60],
  ])(
    '%i dispatchers with stores of their own keep the pace of %i a second',
    async (dispatchers, perSecond, people) => {
      const it = await courseWith(people, { kind })
      const sentAt: number[] = []
      it.answer((message) => {
        sentAt.push(performance.now())
        return { kind: 'sent', id: message.key }
      })
      const courses = await Promise.all(
        Array.from({ length: dispatchers }, async () => {
          const store = await it.anotherStore()
          const pace = createPacer({ perSecond, store: async () => store.sending, timer: systemClock })
          return it.open(store.course, { more: { pace } })
        }),
      )
      const results = await Promise.all(courses.map((course) => course.dispatch({ limit: 1000 })))
      expect(results.reduce((sum, { sent }) => sum + sent, 0)).toBe(people)
      const seconds = ((sentAt.at(-1) ?? 0) - (sentAt[0] ?? 0)) / 1000
      expect(seconds).toBeGreaterThan(people / perSecond - 1)
      expect(seconds).toBeLessThan(people / perSecond + 10)
    },
    60_000,
  )
})
