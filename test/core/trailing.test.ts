import fc from 'fast-check'
import { expect, test } from 'vitest'
import { trailing } from '../../src/core/calls.ts'

interface Model {
  /** Logical time. */
  now: number
  answered: number
}
interface Real {
  readonly call: () => Promise<number>
  readonly runs: { readonly began: number; readonly settle: (fails: boolean) => void; done: boolean }[]
  readonly asked: { readonly at: number; began: number | undefined }[]
}

const tick = () => new Promise<void>((resolve) => setImmediate(resolve))

async function checkInvariants(model: Model, real: Real): Promise<void> {
  await tick()
  const open = real.runs.filter(({ done }) => !done)
  expect(open.length, 'two runs never overlap').toBeLessThanOrEqual(1)
  const waiting = real.asked.filter(({ began }) => began === undefined)
  if (waiting.length > 0) expect(open.length, 'nobody waits while nothing runs').toBe(1)
  for (const { at, began } of real.asked) {
    if (began !== undefined) expect(began, 'no answer is older than its request').toBeGreaterThan(at)
  }
  model.answered = real.asked.length - waiting.length
}

class Call implements fc.AsyncCommand<Model, Real> {
  readonly count: number
  constructor(count: number) {
    this.count = count
  }
  check = () => true
  async run(model: Model, real: Real) {
    const before = real.runs.length
    for (let index = 0; index < this.count; index += 1) {
      model.now += 1
      const entry: Real['asked'][number] = { at: model.now, began: undefined }
      real.asked.push(entry)
      const answered = (began: number) => {
        entry.began = began
      }
      real.call().then(answered, (error: { began: number }) => answered(error.began))
    }
    expect(real.runs.length - before, 'a burst begins at most one run at once').toBeLessThanOrEqual(1)
    await checkInvariants(model, real)
  }
  toString = () => `${this.count} ask`
}

class Settle implements fc.AsyncCommand<Model, Real> {
  readonly fails: boolean
  constructor(fails: boolean) {
    this.fails = fails
  }
  check = () => true
  async run(model: Model, real: Real) {
    const open = real.runs.find(({ done }) => !done)
    if (open === undefined) return
    open.done = true
    open.settle(this.fails)
    await checkInvariants(model, real)
  }
  toString = () => (this.fails ? 'the run fails' : 'the run ends')
}

test('in any order of requests and results: no stale answer, no overlap, no caller forgotten', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.commands(
        [
          fc.integer({ min: 1, max: 40 }).map((count) => new Call(count)),
          fc.boolean().map((fails) => new Settle(fails)),
        ],
        { maxCommands: 30 },
      ),
      async (commands) => {
        const model: Model = { now: 0, answered: 0 }
        const runs: Real['runs'] = []
        const call = trailing(() => {
          model.now += 1
          const began = model.now
          return new Promise<number>((resolve, reject) => {
            runs.push({ began, done: false, settle: (fails) => (fails ? reject({ began }) : resolve(began)) })
          })
        })
        const real: Real = { call, runs, asked: [] }
        await fc.asyncModelRun(() => ({ model, real }), commands)
        // Everybody is answered once what runs has ended: by two more runs at most.
        for (let rest = 0; rest < 2; rest += 1) await new Settle(false).run(model, real)
        expect(model.answered).toBe(real.asked.length)
      },
    ),
    { numRuns: 60 },
  )
})
