import { createHash } from 'node:crypto'
import type { Course } from '../../src/core/course/open.ts'
import type { CourseStore } from '../../src/core/course/store.ts'
import { DAY_MS } from '../../src/core/durations.ts'
import { silentLog } from '../../src/core/host.ts'
import type { Message } from '../../src/core/mail/mailer.ts'
import { olderBuild } from '../support/older-builds.ts'
import { simulateAlerts } from './alerts.ts'
import { createCalendar } from './calendar.ts'
import type { Core } from './core.ts'
import { drawCurriculum, LANGUAGES, UNKNOWN_ZONE, ZONES } from './courses.ts'
import { simulateDrain, simulateStandstill } from './drain.ts'
import { simulateFeedback } from './feedback.ts'
import { openHand } from './hand.ts'
import { simulateHours } from './hours.ts'
import { simulateMessages } from './messages.ts'
import { type Fault, MOST_SKEW_MS, NEVER, type Process, simulatedProvider } from './provider.ts'
import { simulateRestore } from './restore.ts'
import { type Seeded, seeded } from './seeded.ts'
import { virtualTime } from './virtual-time.ts'
import { simulateWakes } from './wakes.ts'
import { createWitness, type Violation } from './witness.ts'

export interface Scenario {
  readonly seed: number
  readonly provider: 'api' | 'smtp'
  readonly subscribers: number
  /** Days of virtual time with faults; afterwards, calm days follow until everything due is sent. */
  readonly days: number
  readonly dispatchers: number
  readonly faults: readonly Fault[]
  /** So many times rarer are its faults: where a process rarely lives for 400 messages, no call is ever seen to go far. */
  readonly rarity: number
  /** How many courses are drawn, and edited while people are in them; 0: the default platform's one. */
  readonly courses: number
  /** ISO 8601: when it begins. */
  readonly season: string
}

export interface Run {
  readonly violations: readonly Violation[]
  readonly trace: readonly { readonly at: number; readonly about: string; readonly what: string }[]
  /** Digest of the whole trace: two runs of one scenario have the same. */
  readonly digest: string
  readonly subscriberDays: number
  readonly delivered: number
  readonly kills: number
}

const MINUTE = 60_000
const HOUR = 60 * MINUTE
/** The longest that a client waits for an answer of PostgreSQL. */
const SILENCE_MS = 17_000

/** One run: the real course and dispatcher over a real store, on virtual time, with the faults that the seed draws. */
export async function simulate(core: Core, scenario: Scenario): Promise<Run> {
  const random = seeded(scenario.seed)
  const start = Date.parse(scenario.season)
  const time = virtualTime(start)
  const faults = new Set(scenario.faults)
  const curriculum = await drawCurriculum(scenario.seed, scenario.courses, scenario.days)
  const { releases } = curriculum
  const calendar = createCalendar(start - 2 * DAY_MS, start + 120 * DAY_MS)
  /** The deployed release. */
  let release = 0
  const hand = faults.has('poison') || faults.has('older-build') ? await openHand() : undefined
  const store = await core.openStore(hand && { kind: 'sqlite', file: hand.file }, {
    leaseClock: time.elapsed,
  })
  const addressKey = core.secret('kept in the store')
  const feedback = simulateFeedback({
    core,
    store,
    time,
    witness: createWitness({ kind: scenario.provider, time, calendar, curriculum }),
    seed: scenario.seed,
    addressKey: addressKey.reveal(),
    reports: faults.has('feedback'),
    breaks: faults.has('breaker'),
    isCalm: () => calm,
  })
  const { witness } = feedback
  let calm = false
  let kills = 0
  const kill = (process: Process) => {
    if (!process.alive) return
    process.alive = false
    kills += 1
    witness.killed(process)
  }
  /** Someone uses the link of an enrolment, and half of them change their minds. */
  async function leave(enrolment: string): Promise<boolean> {
    const [id = '', number] = enrolment.split('.')
    // Any link that ever came works, also one of an enrolment that was started over since.
    const earlier = `${id}.${random.between(1, Number(number))}`
    const link = witness.linkOf(earlier) ?? witness.linkOf(enrolment)
    if (link === undefined) return false
    if (faults.has('erase') && !calm && random.oneIn(6)) return erase(id)
    const before = await store.course.findById(id)
    await course.unsubscribe(link)
    const found = await store.course.findById(id)
    if (found === undefined || found.enrolment !== before?.enrolment) return false
    const current = `${id}.${found.enrolment}`
    if (found.state === 'confirmed') witness.violation('a link that we sent did nothing', current)
    if (found.state !== 'unsubscribed') return false
    witness.unsubscribed(current)
    // At once, in the middle of an attempt, or when it is long over.
    await time.clock.sleep(random.pick([0, random.between(1, MINUTE), random.between(0, 2 * HOUR)]))
    // A subscriber erased meanwhile, by the link of another course, cannot opt in again.
    if (random.oneIn(2) || gone.has(id)) return true
    witness.undone(current)
    await course.undoUnsubscribe(link)
    return false
  }
  const gone = new Set<string>()
  async function erase(id: string): Promise<boolean> {
    const found = await store.course.findById(id)
    if (found === undefined) return false
    const all = await store.course.findPerson(found.address)
    for (const one of all) gone.add(one.id)
    await course.erase(found.address)
    feedback.erased(found.address)
    for (const one of all) witness.unsubscribed(`${one.id}.${one.enrolment}`)
    return true
  }
  const leaveSoon = (enrolment: string) =>
    void leave(enrolment).catch((error: unknown) => witness.violation(String(error), enrolment))
  let isRefusing = () => false
  const provider = simulatedProvider({
    kind: scenario.provider,
    refusesUs: () => isRefusing(),
    time,
    random,
    faults,
    rarity: scenario.rarity,
    witness,
    kill,
    leave: leaveSoon,
  })
  const tokens = new Map<string, string>()
  /** The course that somebody asked for last: a confirmation does not say which it is for. */
  const asked = new Map<string, string>()

  const web: Process = { name: 'web', alive: true, call: 0, release: 0 }
  /** For some hours our own texts cannot be put together, or the provider refuses us. */
  const period = (fault: Fault) => {
    const from = random.between(HOUR, scenario.days * DAY_MS)
    const to = from + random.between(HOUR, 20 * HOUR)
    return () => !calm && faults.has(fault) && time.elapsed() > from && time.elapsed() < to
  }
  const isBroken = period('broken-texts')
  isRefusing = period('refuses-us')
  /** Secrets of an environment that is rotated: a process keeps the one that it started with. */
  const secrets = ['the first secret', 'the second secret', 'the third secret'].map(core.secret)

  function courseOf(process: Process, over: CourseStore): Course {
    const transport = provider.transportOf(process)
    /** A process keeps the release that it started with. */
    const running = release
    const texts = curriculum.texts(running)
    const rotated = faults.has('rotate-secret') && scenario.provider === 'smtp' ? random.between(0, 2) : 0
    const linkKey = secrets[rotated] ?? core.secret('')
    const skew = faults.has('clock-skew') && process !== web ? random.between(-MOST_SKEW_MS, MOST_SKEW_MS) : 0
    return core.openCourse({
      catalog: core.createCatalog(releases[running]?.courses ?? [], {
        zones: core.zones,
        ...(texts && { texts: () => texts }),
      }),
      store: over,
      persistent: true,
      limit: 100,
      mailer: core.openMailer({
        mail: undefined,
        from: { name: undefined, address: 'course@example.com' },
        compiled: async () => {
          if (process !== web && isBroken()) throw new Error('a template is missing')
          return curriculum.compiled(running)
        },
        transport: {
          ...transport,
          send: async (message: Message, deadline?: AbortSignal) => {
            const token = /token=([\w-]+)/.exec(message.text)?.[1]
            if (token === undefined) return transport.send(message, deadline)
            tokens.set(`${message.to.address} ${asked.get(message.to.address)}`, token)
            return { kind: 'sent', id: message.key }
          },
        },
      }),
      clock: { ...time.clock, now: () => time.clock.now() + skew },
      timer: time.clock,
      random,
      log: silentLog,
      siteUrl: 'https://www.example.com',
      linkKey,
      oldLinkKeys: secrets.filter((one) => one !== linkKey),
      addressKey,
      isPaused: feedback.isPaused,
    })
  }

  if (faults.has('restore')) await simulateRestore({ core, seed: scenario.seed, start, witness })
  let course = courseOf(web, store.course)
  // Loads what is loaded once, so that the first run of a process is like any other.
  await course.subscribe({ spelling: 'first@example.com', identity: 'first@example.com' })
  await new Promise((resolve) => setTimeout(resolve, 50))
  const people = Array.from({ length: scenario.subscribers }, (_, n) =>
    person({
      address: `p${n}@example.com`,
      site: () => ({ course, release }),
      store: store.course,
      random,
      time,
      witness,
      tokens,
      asked,
      faults,
      leave,
    }),
  )
  for (const live of people) {
    const offered = (releases[0]?.courses ?? []).map(({ id }) => id)
    // Many are in two or three courses at once.
    const from = random.between(0, offered.length - 1)
    const many = random.between(1, Math.min(3, offered.length))
    for (const id of [...offered, ...offered].slice(from, from + many))
      time.after(random.between(0, (scenario.days * DAY_MS) / 4), () => live(id))
  }

  // Days without any dispatcher leave a backlog that is then worked off one day a call.
  const from = random.between(2, scenario.days) * DAY_MS
  const outage = { from, to: from + (random.oneIn(2) ? random.between(1, 3) * DAY_MS : 0) }

  const running = new Map<number, Process>()
  function startDispatcher(n: number, generation: number): void {
    const process: Process = { name: `dispatcher ${n}.${generation}`, alive: true, call: 0, release }
    running.set(n, process)
    const faulty = faultyStore({
      core,
      store: store.course,
      process,
      random,
      time,
      faults,
      rarity: scenario.rarity,
      witness,
      kill,
      isCalm: () => calm,
      leave: leaveSoon,
    })
    const mine = courseOf(process, faulty)
    const loop = async () => {
      while (process.alive) {
        const back = time.elapsed() > outage.from && time.elapsed() < outage.to
        if (back) await time.clock.sleep(outage.to - time.elapsed() + random.between(0, HOUR))
        process.call += 1
        // After an outage, drain the backlog.
        const limit = back ? 1000 : random.pick([1, 5, 40, 100, 1000])
        const result = await mine.dispatch({ limit }).catch((error: unknown) => {
          if (error instanceof core.PlatformError) return undefined
          throw error
        })
        if (result) {
          if (result.processed > limit) witness.violation('a call went beyond its limit', process.name)
          if (result.processed !== result.sent + result.failed + result.unknown)
            witness.violation('a call does not add up', process.name)
        }
        // Half of the calls come from the hourly schedule, and so at the same time on every machine.
        const pause = random.oneIn(2)
          ? HOUR - (time.elapsed() % HOUR) + random.between(0, MINUTE / 2)
          : random.between(MINUTE, 2 * HOUR)
        await time.clock.sleep(calm ? 20 * MINUTE : pause)
      }
    }
    loop().catch((error: unknown) =>
      witness.violation(`the dispatcher threw: ${String(error)}`, process.name),
    )
    const watch = () => {
      if (process.alive) time.after(5 * MINUTE, watch)
      else time.after(random.between(1000, 5 * MINUTE), () => startDispatcher(n, generation + 1))
    }
    watch()
  }
  for (let n = 1; n <= scenario.dispatchers; n += 1) startDispatcher(n, 0)

  // A deployment: the site at once, the dispatchers one after the other, each ended in the middle of its work.
  for (const [index, { at }] of releases.entries())
    if (index > 0)
      time.after(at, () => {
        release = index
        course = courseOf(web, store.course)
        witness.note('', `release ${index}`)
        for (const process of running.values()) time.after(random.between(0, HOUR), () => kill(process))
      })

  if (faults.has('clock-step')) {
    const step = () => {
      if (calm) return
      const before = time.clock.now()
      time.stepWallClock(random.pick([-HOUR, -MINUTE, MINUTE, HOUR]))
      witness.stepped(before)
      time.after(random.between(6 * HOUR, 60 * HOUR), step)
    }
    time.after(random.between(HOUR, 30 * HOUR), step)
  }

  // As the hourly schedule does.
  const prune = () => {
    course.prunePlans().catch((error: unknown) => witness.violation(String(error), ''))
    time.after(12 * HOUR, prune)
  }
  time.after(12 * HOUR, prune)

  if (faults.has('hours'))
    simulateHours({
      core,
      store,
      time,
      start,
      random,
      steps: faults.has('clock-step') ? seeded(scenario.seed ^ 0xc10c) : undefined,
      witness,
      forMs: 2 * DAY_MS,
    })
  if (hand && faults.has('older-build')) {
    const old = olderBuild({ kind: 'sqlite', file: hand.file }, '0.1.0')
    let calls = 0
    const beside = () => {
      if (calm) return void old.close()
      calls += 1
      old
        .dispatch(`older call ${calls}`, time.clock.now())
        .then((sent) => {
          for (const { id, enrolment, course: of, day } of sent)
            witness.sentByOlder(`${id}.${enrolment}`, day, of)
        })
        .catch((error: unknown) => witness.violation(`the older build: ${String(error)}`, ''))
      time.after(random.between(MINUTE, 20 * MINUTE), beside)
    }
    time.after(random.between(HOUR, 2 * DAY_MS), beside)
  }
  const messages = faults.has('messages')
    ? await simulateMessages({
        core,
        time,
        start,
        seed: scenario.seed,
        witness,
        forMs: 5 * DAY_MS,
      })
    : undefined
  const apart = { core, time, start, seed: scenario.seed, witness }
  const closeAll = [
    ...(faults.has('pace') ? [await simulateDrain(apart)] : []),
    ...(faults.has('standstill') ? [await simulateStandstill(apart)] : []),
    ...(faults.has('wakes') ? [await simulateWakes(apart)] : []),
    ...(faults.has('alerts') ? [await simulateAlerts(apart)] : []),
  ]
  // No older build reads a damaged row as this one does.
  if (hand && faults.has('poison') && !faults.has('older-build')) {
    const poison = () => {
      if (calm) return
      hand.damage(random)
      time.after(random.between(2 * HOUR, 24 * HOUR), poison)
    }
    time.after(random.between(HOUR, 2 * DAY_MS), poison)
  }

  const failed = () => witness.violations.length > 0
  await time.passUntil(scenario.days * DAY_MS, failed)
  calm = true
  provider.calm()
  for (let day = 1; day <= 9 && !failed(); day += 1) {
    hand?.repair()
    await decide(course, store.course, witness)
    await time.passUntil((scenario.days + day) * DAY_MS, failed)
  }
  if (!failed()) {
    witness.finish()
    await messages?.finish()
  }
  for (const close of closeAll) await close()
  await store.close()
  await hand?.close()
  const { delivered, subscriberDays } = witness.counts()
  const digest = createHash('sha256')
  for (const { at, about, what } of witness.trace) digest.update(`${at} ${about} ${what}\n`)
  return {
    violations: witness.violations,
    trace: witness.trace,
    digest: digest.digest('hex').slice(0, 16),
    subscriberDays,
    delivered,
    kills,
  }
}

/** The operator looks at the deliveries that wait, asks the provider what became of them, and decides. */
async function decide(
  course: Course,
  store: CourseStore,
  witness: ReturnType<typeof createWitness>,
): Promise<void> {
  for (const { id, enrolment, sentDays, nextAttemptAt, state } of await store.listProblems(1000)) {
    if (state !== 'confirmed' || nextAttemptAt !== undefined) continue
    const arrived = witness.arrived(`${id}.${enrolment}.${sentDays.length + 1}`)
    witness.retried(`${id}.${enrolment}`)
    await course.resolve(id, arrived ? 'sent' : 'retry')
  }
}

/** A store as a process meets it: it fails before, it fails after, it is slow, and the process dies around it. */
function faultyStore(input: {
  readonly core: Core
  readonly store: CourseStore
  readonly process: Process
  readonly random: Seeded
  readonly time: ReturnType<typeof virtualTime>
  readonly faults: ReadonlySet<Fault>
  readonly rarity: number
  readonly witness: ReturnType<typeof createWitness>
  readonly kill: (process: Process) => void
  readonly isCalm: () => boolean
  readonly leave: (enrolment: string) => void
}): CourseStore {
  const { core, store, process, random, time, faults, rarity, witness, kill, isCalm, leave } = input
  const meets = (fault: Fault, oneIn: number) =>
    !isCalm() && faults.has(fault) && random.oneIn(oneIn * rarity)
  /** A foreign writer holds the store: it says so, and nothing is lost. */
  let lockedUntil = 0
  async function call<T>(work: () => Promise<T>, refused: () => void = () => {}, writes = false): Promise<T> {
    if (!process.alive) return NEVER
    if (writes && meets('lock', 100)) lockedUntil = time.elapsed() + random.between(100, 5000)
    if (writes && time.elapsed() < lockedUntil)
      throw new core.PlatformError('store_unavailable', 'The store is locked.')
    if (meets('crash', 1500)) {
      kill(process)
      return NEVER
    }
    if (meets('slow', 200)) await time.clock.sleep(random.between(1, 3000))
    if (meets('silent', 400)) {
      // It did the work, or did not, and never says so: the client's time limit ends the call.
      if (random.oneIn(2)) await work()
      else refused()
      await time.clock.sleep(SILENCE_MS)
      throw new core.PlatformError('store_unavailable', 'The store did not answer in time.')
    }
    if (!process.alive) return NEVER
    if (meets('store-error', 300)) {
      refused()
      throw new core.PlatformError('store_unavailable', 'The store cannot be written.')
    }
    const result = await work()
    if (meets('crash', 1500)) {
      kill(process)
      return NEVER
    }
    if (meets('store-error', 1500))
      throw new core.PlatformError('store_unavailable', 'The answer of the store was lost.')
    return result
  }
  return {
    ...store,
    claimDue: (asked) =>
      call(async () => {
        const claims = await store.claimDue(asked)
        const one = claims[random.between(0, Math.max(0, claims.length - 1))]
        if (one && meets('unsubscribe', 10)) leave(`${one.id}.${one.enrolment}`)
        return claims
      }),
    stillHolds: (claim) => call(() => store.stillHolds(claim)),
    backlog: (now) => call(() => store.backlog(now)),
    settle: (settlements) =>
      call(
        async () => {
          if (meets('freeze', 100)) {
            for (const one of settlements) witness.frozen(one)
            await time.clock.sleep(random.between(MINUTE, 30 * MINUTE))
          }
          await store.settle(settlements)
          for (const one of settlements) witness.settled(one, await store.findById(one.claim.id))
        },
        () => {
          for (const one of settlements) witness.settled(one, undefined)
        },
        true,
      ),
    keep: (asked) => call(() => store.keep(asked)),
  }
}

/** A subscriber: begins a course (or not), may leave, come back by the link, or start over; in several courses at once. */
function person(input: {
  readonly address: string
  /** The current course and release. */
  readonly site: () => { readonly course: Course; readonly release: number }
  readonly store: CourseStore
  readonly random: Seeded
  readonly time: ReturnType<typeof virtualTime>
  readonly witness: ReturnType<typeof createWitness>
  readonly tokens: ReadonlyMap<string, string>
  readonly asked: Map<string, string>
  readonly faults: ReadonlySet<Fault>
  /** True when the subscriber is gone for good. */
  readonly leave: (enrolment: string) => Promise<boolean>
}): (id: string) => void {
  const { address, site, store, random, time, witness, tokens, asked, faults, leave } = input
  const sleep = (low: number, high: number) => time.clock.sleep(random.between(low, high))
  const known = random.oneIn(2) ? undefined : random.pick(ZONES)
  // By the address, so that the rest of a seed stays as it is.
  const timeZone = known && Number(/\d+/.exec(address)?.[0]) % 8 === 0 ? UNKNOWN_ZONE : known
  const language = random.oneIn(2) ? undefined : random.pick(LANGUAGES)
  const who = { spelling: address, identity: address, timeZone, language }

  async function enrolment(id: string): Promise<{ name: string; enrolment: number } | undefined> {
    const found = await store.find(address, id)
    return found && { name: `${found.id}.${found.enrolment}`, enrolment: found.enrolment }
  }
  async function begin(id: string): Promise<boolean> {
    const before = await enrolment(id)
    // A shop enrols its customers by itself, and asks twice when it has not heard the answer.
    if (random.oneIn(4)) {
      const request = { ...who, course: id, key: `${address} ${id} ${before?.enrolment}` }
      const answer = await site().course.enrol(request)
      if (answer.enrolled)
        witness.confirmed(`${answer.id}.${answer.enrolment}`, enrolledIn(id, site().release))
      await sleep(0, HOUR)
      const again = await site().course.enrol(request)
      if (again.enrolled && !answer.enrolled)
        witness.confirmed(`${again.id}.${again.enrolment}`, enrolledIn(id, site().release))
      if (again.enrolled && answer.enrolled && again.enrolment !== answer.enrolment)
        witness.violation('one request enrolled twice', `${again.id}.${again.enrolment}`)
      if (again.enrolled) return true
    }
    asked.set(address, id)
    await site().course.subscribe({ ...who, course: id })
    // The confirmation mail goes out after the answer.
    await sleep(MINUTE, 4 * HOUR)
    if (random.oneIn(20)) await sleep(6 * 24 * HOUR, 8 * 24 * HOUR)
    const { course, release } = site()
    const old = await enrolment(id)
    await course.confirm(tokens.get(`${address} ${id}`) ?? '').catch((error: { code?: string }) => {
      // The site may be of a release without the course.
      if (error.code !== 'conflict') throw error
    })
    const after = await enrolment(id)
    // A link that was used before says "confirmed" again, and changes nothing.
    if (after === undefined || after.enrolment === old?.enrolment) return false
    witness.confirmed(after.name, enrolledIn(id, release))
    return true
  }
  const enrolledIn = (id: string, release: number) => ({
    address,
    at: time.clock.now(),
    course: id,
    release,
    timeZone,
    language,
  })
  async function live(id: string): Promise<void> {
    if (!(await begin(id)) || !faults.has('unsubscribe')) return
    for (let times = 0; times < 3 && random.oneIn(4); times += 1) {
      await sleep(MINUTE, 7 * 24 * HOUR)
      const now = await enrolment(id)
      if (now === undefined) return
      if (random.oneIn(4) && (await site().course.cancel({ identity: address, course: id }))) {
        witness.unsubscribed(now.name)
        if (!(await begin(id))) return
      } else if ((await leave(now.name)) && !(await begin(id))) return
    }
    if (!faults.has('feedback')) return
    // Subscribers who were unsubscribed by their mail provider may come back, and be reported again for earlier mails.
    for (let times = 0; times < 2; times += 1) {
      await sleep(12 * HOUR, 3 * 24 * HOUR)
      if ((await store.find(address, id))?.state === 'unsubscribed') await begin(id)
    }
  }
  return (id) => {
    live(id).catch((error: unknown) =>
      witness.violation(`a subscriber met a fault: ${String(error)}`, address),
    )
  }
}
