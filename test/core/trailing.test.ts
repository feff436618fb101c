import fc from 'fast-check'
import { expect, test } from 'vitest'
import { spaced, trailing } from '../../src/core/calls.ts'

const tick = () => new Promise<void>((resolve) => setImmediate(resolve))

test('in any order of requests and results: no stale answer, no overlap, no caller forgotten', async () => {
  const step = fc.oneof(fc.integer({ min: 1, max: 40 }), fc.constantFrom('ends', 'fails'))
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 30 }), async (steps) => {
      let now = 0
      const runs: { readonly settle: (fails: boolean) => void; isOpen: boolean }[] = []
      const asked: { readonly at: number; began?: number }[] = []
      const call = trailing(() => {
        now += 1
        const began = now
        return new Promise<number>((resolve, reject) => {
          runs.push({ isOpen: true, settle: (fails) => (fails ? reject({ began }) : resolve(began)) })
        })
      })
      const ask = () => {
        now += 1
        const entry: (typeof asked)[number] = { at: now }
        asked.push(entry)
        const answered = (began: number) => {
          entry.began = began
        }
        call().then(answered, (error: { began: number }) => answered(error.began))
      }
      const settle = (fails: boolean) => {
        const run = runs.find(({ isOpen }) => isOpen)
        if (run === undefined) return
        run.isOpen = false
        run.settle(fails)
      }
      const isWaiting = () => asked.some(({ began }) => began === undefined)
      // Everybody is answered once what runs has ended: by two more runs at most.
      for (const next of [...steps, 'ends', 'ends']) {
        const before = runs.length
        if (typeof next === 'string') settle(next === 'fails')
        else for (let count = 0; count < next; count += 1) ask()
        expect(runs.length - before, 'a burst begins at most one run at once').toBeLessThanOrEqual(1)
        await tick()
        const open = runs.filter(({ isOpen }) => isOpen).length
        expect(open, 'two runs never overlap').toBeLessThanOrEqual(1)
        if (isWaiting()) expect(open, 'nobody waits while nothing runs').toBe(1)
        for (const { at, began = Number.POSITIVE_INFINITY } of asked)
          expect(began, 'no answer is older than its request').toBeGreaterThan(at)
      }
      expect(isWaiting()).toBe(false)
    }),
    { numRuns: 60 },
  )
})

test('a run that fails keeps none of the spaced ones after it from beginning', async () => {
  let runs = 0
  const run = async () => {
    runs += 1
    if (runs === 1) throw new Error('gone')
    return runs
  }
  const call = spaced(run, { monotonic: () => runs * 1000, sleep: async () => {} })
  await expect(call()).rejects.toThrow('gone')
  expect(await call()).toBe(2)
})
