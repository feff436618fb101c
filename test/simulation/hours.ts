import type { HourStore } from '../../src/core/course/hours.ts'
import { silentLog } from '../../src/core/log.ts'
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
 * are killed, and the store fails them; yet each hour's work is done, by one at a time, and not again once that is recorded.
 */
export function simulateHours(input: {
  readonly core: Pick<Core, 'createHours' | 'PlatformError'>
  readonly store: HourStore
  readonly time: VirtualTime
  /** Start of the wall clock, which is never stepped here: steps are tested with the claim. */
  readonly start: number
  readonly random: Seeded
  readonly witness: Pick<Witness, 'violation' | 'note'>
  readonly forMs: number
}): void {
  const { core, store, time, start, random, witness, forMs } = input
  const now = () => start + time.elapsed()
  const hourAt = (at: number) => new Date(at).toISOString().slice(0, 13)
  const meets = (oneIn: number) => now() % HOUR < FAULTS_UNTIL && random.oneIn(oneIn)
  const running = new Set<string>()
  const finished = new Set<string>()
  const done = new Set<string>()

  function process(n: number): void {
    let alive = true
    /** The hour that it runs. */
    let at: string | undefined
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
            if (isDone) done.add(hour)
          }),
      },
      async run() {
        const hour = hourAt(now())
        if (done.has(hour)) witness.violation('an hour that was handled was run again', hour)
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
  const look = () => {
    const hour = hourAt(now())
    if (!done.has(hour)) witness.violation('an hour of the schedule was never handled', hour)
    if (time.elapsed() + HOUR <= forMs) time.after(HOUR, look)
  }
  time.after(HOUR - (start % HOUR) - MINUTE, look)
}
