import type { HourStore } from '../../src/core/course/hours.ts'
import { MOST_SKEW_MS } from '../../src/core/durations.ts'
import { silentLog } from '../../src/core/host.ts'
import type { Core } from './core.ts'
import type { Seeded } from './seeded.ts'
import type { VirtualTime } from './virtual-time.ts'
import type { Witness } from './witness.ts'

const MINUTE = 60_000
const HOUR = 60 * MINUTE
/** In the second half of each hour nothing fails, so that an hour that was begun can end. */
const FAULTS_UNTIL = 30 * MINUTE
const PROCESSES = 2
const NEVER = new Promise<never>(() => {})

/**
 * The hourly schedule of several daemons over one store. Their runs fail and take longer than a lease, their processes
 * are killed, the store fails them, and the clock is set hours and days ahead and back; yet each hour's work is done, by
 * one at a time, and not again once that is recorded.
 */
export function simulateHours(input: {
  readonly core: Pick<Core, 'createHours' | 'PlatformError'>
  readonly store: HourStore
  readonly time: VirtualTime
  /** Start of the wall clock. */
  readonly start: number
  readonly random: Seeded
  /** Draws the steps of the wall clock; undefined: it is never stepped. */
  readonly steps: Seeded | undefined
  readonly witness: Pick<Witness, 'violation' | 'note'>
  readonly forMs: number
}): void {
  const { core, store, time, start, random, steps, witness, forMs } = input
  let ahead = 0
  /** When the clock was stepped last, and how often. */
  let stepped = { at: 0, times: 0 }
  const now = () => start + time.elapsed() + ahead
  const hourAt = (at: number) => new Date(at).toISOString().slice(0, 13)
  const meets = (oneIn: number) => now() % HOUR < FAULTS_UNTIL && random.oneIn(oneIn)
  const running = new Set<string>()
  const finished = new Set<string>()
  /** Each hour whose work was recorded, with the number of steps before its run. */
  const done = new Map<string, number>()
  let doneAt = Number.NEGATIVE_INFINITY

  function process(n: number): void {
    let alive = true
    /** The hour that it runs. */
    let at: string | undefined
    let begun = 0
    let kept = true
    async function call<T>(work: () => Promise<T>, oneIn = 15): Promise<T> {
      if (!alive) return NEVER
      if (meets(oneIn)) throw new core.PlatformError('store_unavailable', 'The store cannot be written.')
      const result = await work()
      if (oneIn > 0 && meets(50))
        throw new core.PlatformError('store_unavailable', 'The answer of the store was lost.')
      return result
    }
    const hours = core.createHours({
      clock: { now },
      log: silentLog,
      store: {
        claimHour: (claim) => call(() => store.claimHour(claim)),
        forgetHoursAfter: (hour) => call(() => store.forgetHoursAfter(hour)),
        // Not twice in a row: a claim that could not be renewed for as long as a lease is lost by right.
        keepHour: async (claim) => {
          const mayFail = kept
          kept = false
          await call(() => store.keepHour(claim), mayFail ? 15 : 0)
          kept = true
        },
        endHour: (hour, isDone) =>
          call(async () => {
            if (isDone && !finished.has(hour))
              witness.violation('an hour was taken for handled whose work failed', hour)
            await store.endHour(hour, isDone)
            if (!isDone) return
            done.set(hour, begun)
            doneAt = time.elapsed()
          }),
      },
      async run() {
        const hour = hourAt(now())
        begun = stepped.times
        if (done.get(hour) === begun) witness.violation('an hour that was handled was run again', hour)
        if (running.has(hour)) witness.violation('two processes ran one hour at once', hour)
        running.add(hour)
        at = hour
        await time.clock.sleep(random.pick([1000, 2 * MINUTE, 8 * MINUTE]))
        if (!alive) return NEVER
        running.delete(hour)
        at = undefined
        if (meets(4)) throw new core.PlatformError('store_unavailable', 'The store cannot be read.')
        finished.add(hour)
        return 'done'
      },
      onFault: (_, hour) => witness.note('', `daemon ${n} failed in the hour ${hour}`),
    })
    const tick = () => {
      if (!alive || time.elapsed() > forMs) return
      if (meets(60)) {
        alive = false
        witness.note('', `daemon ${n} killed`)
        // The processes that it started ended with it.
        if (at !== undefined) running.delete(at)
        time.after(random.between(1000, 5 * MINUTE), () => process(n))
        return
      }
      hours.tick()
      time.after(MINUTE, tick)
    }
    tick()
  }
  for (let n = 1; n <= PROCESSES; n += 1) time.after(random.between(0, MINUTE), () => process(n))
  // Shortly before a full hour that the clock counted from its beginning, its work was done.
  const look = () => {
    const [sinceFull, begins] = [now() % HOUR, time.elapsed() - (now() % HOUR)]
    if (sinceFull >= HOUR - MINUTE && begins > stepped.at + MOST_SKEW_MS + MINUTE && doneAt < begins)
      witness.violation('an hour of the schedule was never handled', hourAt(now()))
    if (time.elapsed() < forMs) time.after(MINUTE, look)
  }
  time.after(MINUTE, look)
  const step = (by: Seeded) => {
    if (time.elapsed() > forMs) return
    ahead += by.pick([-1, 1]) * by.pick([HOUR, 5 * HOUR, 25 * HOUR, 72 * HOUR]) + by.between(0, 50) * MINUTE
    stepped = { at: time.elapsed(), times: stepped.times + 1 }
    witness.note('', `the clock of the schedule now ${new Date(now()).toISOString()}`)
    time.after(by.between(2 * HOUR, 9 * HOUR), () => step(by))
  }
  if (steps) time.after(steps.between(HOUR, 5 * HOUR), () => step(steps))
}
