import { expect, onTestFinished, test } from 'vitest'
import { systemClock } from '../../src/core/clock.ts'
import { createPacer } from '../../src/core/mail/feedback/pacer.ts'
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
