import type { CourseDefinition } from '../../src/core/course/definition.ts'
import { silentLog } from '../../src/core/host.ts'
import type { Message, Outcome } from '../../src/core/mail/mailer.ts'
import type { Core } from './core.ts'
import { drawCurriculum } from './courses.ts'
import { NEVER } from './provider.ts'
import { seeded } from './seeded.ts'
import type { VirtualTime } from './virtual-time.ts'
import type { Witness } from './witness.ts'

const SECOND = 1000
const MINUTE = 60 * SECOND
const HOUR = 60 * MINUTE
/** A lesson in the hands of a process that dies is taken over after this. */
const LEASE = 90 * SECOND
const MOST_PEOPLE = 120

export interface Part {
  readonly core: Pick<
    Core,
    'openStore' | 'openCourse' | 'openMailer' | 'createCatalog' | 'createPacer' | 'secret' | 'zones'
  >
  readonly time: VirtualTime
  /** Start of the wall clock, which is never stepped here. */
  readonly start: number
  readonly seed: number
  readonly witness: Pick<Witness, 'violation' | 'note'>
}

/** A store of its own with people whose first lesson is due, and courses over it. */
export async function dueStore({ core, time, start, seed }: Part, people: number, everyMs = 24 * HOUR) {
  const random = seeded(seed ^ 0xd0e)
  const clock = { ...time.clock, now: () => start + time.elapsed() }
  const { releases, compiled, texts } = await drawCurriculum(seed, 0, 1)
  const courses = (releases[0]?.courses ?? []).map(
    (course): CourseDefinition => ({
      ...course,
      cadence: { kind: 'every', ms: everyMs },
    }),
  )
  const kept = texts(0)
  const store = await core.openStore(undefined, { leaseClock: time.elapsed })
  const open = (
    send: (message: Message) => Promise<Outcome>,
    over = store.course,
    pace?: ReturnType<Core['createPacer']>,
  ) =>
    core.openCourse({
      catalog: core.createCatalog(courses, {
        zones: core.zones,
        ...(kept && { texts: () => kept }),
      }),
      store: over,
      persistent: true,
      limit: 100,
      mailer: core.openMailer({
        mail: undefined,
        from: { name: undefined, address: 'course@example.com' },
        compiled: async () => compiled(0),
        transport: { kind: 'api', send, verify: async () => {}, close: async () => {} },
      }),
      clock,
      timer: time.clock,
      random,
      log: silentLog,
      siteUrl: 'https://www.example.com',
      linkKey: core.secret('a key for links'),
      ...(pace && { pace }),
    })
  const shop = open(() => NEVER)
  for (let n = 0; n < people; n += 1)
    await shop.enrol({ spelling: `p${n}@example.com`, identity: `p${n}@example.com` })
  return { store, open, shop, clock }
}

/**
 * Up to sixteen dispatchers share a pace from 0.2 to 500 a second. Subscribers leave before their turn, and a process is
 * killed: yet what is left is sent by the time that the pace allows, plus a minute, and never faster.
 */
export async function simulateDrain(part: Part): Promise<() => Promise<void>> {
  const { core, time, seed, witness } = part
  const draw = seeded(seed ^ 0x9ace)
  const perSecond = 0.2 * 2500 ** draw.fraction()
  const people = Math.min(MOST_PEOPLE, Math.ceil(perSecond * draw.between(30, 150)))
  const dispatchers = draw.between(1, 16)
  const leaves = draw.oneIn(2) ? draw.pick([2, 1.3] as const) : 0
  const { store, open, clock } = await dueStore(part, people)
  const began = time.elapsed()
  const [gone, sent] = [new Set<string>(), new Set<string>()]
  let handed = 0
  let killed = false

  async function process(n: number): Promise<void> {
    let alive = true
    if (n === 2 && draw.oneIn(2))
      time.after(draw.between(1, 20) * SECOND, () => {
        alive = false
        killed = true
        witness.note('', 'a dispatcher of the drain was killed')
      })
    const live = <T>(work: () => Promise<T>) => (alive ? work() : NEVER)
    const course = open(
      async ({ to }) => {
        if (!alive) return NEVER
        handed += 1
        if (handed > ((time.elapsed() - began) / SECOND) * perSecond + 2)
          witness.violation('lessons went out faster than the pace', `${perSecond} a second`)
        sent.add(to.address)
        await time.clock.sleep(draw.between(1, 80))
        return alive ? { kind: 'sent', id: 'x' } : NEVER
      },
      {
        ...store.course,
        claimDue: (asked) =>
          live(async () => {
            const claims = await store.course.claimDue(asked)
            for (const { id, address } of claims)
              if (draw.oneIn(leaves)) {
                gone.add(address)
                await store.course.unsubscribe({ id, now: clock.now() })
              }
            return claims
          }),
        stillHolds: (claim) => live(() => store.course.stillHolds(claim)),
        settle: (settlements) => live(() => store.course.settle(settlements)),
      },
      core.createPacer({ perSecond, store: async () => store.sending, timer: time.clock }),
    )
    while (alive && sent.size + gone.size < people) {
      await course.dispatch({ limit: draw.pick([5, 100, Number.POSITIVE_INFINITY]), forMs: 10 * MINUTE })
      await time.clock.sleep(SECOND)
    }
  }
  for (let n = 1; n <= dispatchers; n += 1)
    process(n).catch((error: unknown) => witness.violation(`a drain threw: ${String(error)}`, ''))
  const look = () => {
    const left = people - new Set([...sent, ...gone]).size
    const needed = (sent.size / perSecond) * SECOND + MINUTE + (killed ? LEASE : 0)
    if (left > 0 && time.elapsed() - began > needed + (left / perSecond) * SECOND)
      witness.violation('lessons were not sent by the time that their pace allows', `${left} of ${people}`)
    else if (left > 0) time.after(SECOND, look)
  }
  look()
  return () => store.close()
}

/**
 * A mail server defers everything for days, or one mailbox does for ever. The first is an alert within two hours, which
 * ends when a lesson was sent and not before; the second is none.
 */
export async function simulateStandstill(
  part: Part & {
    readonly core: Part['core'] & Pick<Core, 'conditionsReport' | 'lateBefore' | 'followRound'>
  },
): Promise<() => Promise<void>> {
  const { core, time, seed, witness } = part
  const draw = seeded(seed ^ 0x57a1)
  const { store, open, clock } = await dueStore(part, draw.between(3, 6))
  const from = draw.between(20, 40) * HOUR
  const until = from + draw.between(10, 90) * HOUR
  const isDown = () => time.elapsed() > from && time.elapsed() < until
  let sentAt: number | undefined
  let opened: { readonly sentAt: number | undefined } | undefined
  let streaks: ReturnType<Core['followRound']>['streaks'] = new Map()
  const course = open(async ({ to, key }) => {
    if (isDown() || to.address === 'p0@example.com')
      return { kind: 'transient', scope: 'message', reason: '451 try again later' }
    sentAt = time.elapsed()
    return { kind: 'sent', id: key }
  })
  async function round(): Promise<void> {
    // After a day of refusals lessons are parked: an operator puts them back in line.
    if (time.elapsed() > until) await course.resolveAll('retry')
    await course.dispatch({ limit: Number.POSITIVE_INFINITY })
    const now = clock.now()
    const lessonsLate = await store.course.late({ now, before: core.lateBefore(now) })
    const report = core.conditionsReport(
      { certificates: [], builds: new Map(), halfConfigured: [], mailRefused: undefined, lessonsLate },
      now,
    )
    const followed = core.followRound({ streaks, reports: [report], open: opened ? ['lessons_late'] : [] })
    streaks = followed.streaks
    if (followed.opens.length > 0) opened = { sentAt }
    if (followed.closes.length > 0) {
      if (opened?.sentAt === sentAt) witness.violation('lessons go out again, it was said, and none did', '')
      opened = undefined
    }
    if (opened && time.elapsed() > until + 10 * HOUR)
      witness.violation('the alert that lessons are late did not end', '')
    if (opened && time.elapsed() < from) witness.violation('one mailbox made all lessons late', '')
    // Everybody but the one has a lesson each day: a day without any is a standstill.
    if (!opened && sentAt !== undefined && time.elapsed() - sentAt > 27 * HOUR && isDown())
      witness.violation('nobody heard that no lesson is sent', '')
  }
  const loop = async () => {
    for (; time.elapsed() < until + 2 * 24 * HOUR; await time.clock.sleep(10 * MINUTE)) await round()
  }
  loop().catch((error: unknown) => witness.violation(`a standstill threw: ${String(error)}`, ''))
  return () => store.close()
}
