import { silentLog } from '../../src/core/host.ts'
import type { Core } from './core.ts'
import { dueStore, type Part } from './drain.ts'
import { seeded } from './seeded.ts'

const SECOND = 1000
const MINUTE = 60 * SECOND
const HOUR = 60 * MINUTE
const EVERY = 15 * MINUTE
const DAEMONS = 2
/** A provider that failed is left alone for a few minutes, and a lesson waits for its retry. */
const SETTLED = 20 * MINUTE

/**
 * Daemons that share a store wake every minute, for a course with a lesson every 15 minutes. For a day they are stopped,
 * or the mail server is. Before and after, each lesson leaves within a minute; and what the outage made overdue comes
 * one lesson an hour.
 */
export async function simulateWakes(
  part: Part & { readonly core: Part['core'] & Pick<Core, 'createHours' | 'createWakes'> },
): Promise<() => Promise<void>> {
  const { core, time, seed, witness } = part
  const draw = seeded(seed ^ 0x3a4e)
  const { store, open, shop, clock } = await dueStore(part, 0, EVERY)
  const from = draw.between(3, 8) * HOUR + draw.between(0, HOUR)
  const until = from + 24 * HOUR + draw.between(0, HOUR)
  const end = until + 12 * HOUR
  const stopsDaemons = draw.oneIn(2)
  const isOut = (at: number) => at > from && at < until
  const people = new Map<string, { readonly at: number; readonly sentAt: number[] }>()

  function took(address: string): void {
    const { at, sentAt } = people.get(address) ?? { at: 0, sentAt: [] }
    const [now, before] = [time.elapsed(), sentAt.at(-1)]
    const due = at + sentAt.length * EVERY
    const late = now - due
    sentAt.push(now)
    if (before !== undefined && due <= before) {
      if (now - before < HOUR - MINUTE)
        witness.violation('two overdue lessons to one person within an hour', address)
    } else if (late > MINUTE + 10 * SECOND && (due < from - MINUTE || due > until + SETTLED))
      witness.violation('a lesson later than the minute in which it was due', `${address} ${late} ms`)
  }
  const person = (n: number) => {
    const address = `p${n}@example.com`
    people.set(address, { at: time.elapsed(), sentAt: [] })
    shop
      .enrol({ spelling: address, identity: address })
      .catch((error: unknown) => witness.violation(`enrolling met a fault: ${String(error)}`, address))
  }
  for (let n = 0; n < draw.between(10, 30); n += 1)
    time.after(draw.between(0, draw.oneIn(4) ? end - 8 * HOUR : from), () => person(n))

  function daemon(): void {
    const course = open(async ({ to, key }) => {
      if (isOut(time.elapsed())) return { kind: 'transient', scope: 'connection', reason: 'no answer' }
      await time.clock.sleep(draw.between(1, 500))
      took(to.address)
      return { kind: 'sent', id: key }
    })
    const isDue = () => store.course.isDue(clock.now())
    const wakes = core.createWakes({ dispatch: course.dispatch, isDue, clock })
    const hours = core.createHours({
      clock,
      log: silentLog,
      store,
      run: (signal) => wakes.hour(signal).then(() => 'done'),
      minute: wakes.minute,
      onFault: (error) => witness.violation(`an hour failed: ${String(error)}`, ''),
    })
    const tick = () => {
      if (time.elapsed() > end) return
      if (!stopsDaemons || !isOut(time.elapsed())) void hours.tick()
      time.after(MINUTE, tick)
    }
    tick()
  }
  for (let n = 0; n < DAEMONS; n += 1) time.after(draw.between(0, MINUTE), daemon)
  time.after(end, () => {
    for (const [address, { sentAt }] of people)
      if (sentAt.length < 7) witness.violation('a course that was not caught up', address)
  })
  return () => store.close()
}
