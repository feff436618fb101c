import type { CourseStore } from '../../src/core/course/store.ts'
import { silentLog } from '../../src/core/host.ts'
import type { Changes } from '../../src/core/incidents/incident.ts'
import type { Message, Outcome } from '../../src/core/mail/mailer.ts'
import { learning } from '../../src/presets/learning/platform.ts'
import { incidentWith } from '../support/incidents.ts'
import { compiledMails } from '../support/learning.ts'
import type { Core } from './core.ts'
import { NEVER } from './provider.ts'
import { seeded } from './seeded.ts'
import type { VirtualTime } from './virtual-time.ts'
import type { Witness } from './witness.ts'

const MINUTE = 60_000
const HOUR = 60 * MINUTE
const DAY = 24 * HOUR
const PEOPLE = 30
const READERS = 8
const PROCESSES = 2
/** Faults end this long before the end, so that what waits for its next attempt can still leave. */
const CALM_MS = 7 * HOUR
const [school] = learning.courses

/** A mail as a visitor sees it in the inbox. */
interface Mail {
  readonly key: string
  /** Of its link, or its key. */
  readonly token: string
  deliveries: number
  /** An attempt was lost, or its answer was: the next may repeat it. */
  unsettled: boolean
  notBefore: number
}

const readings = () => new Map<string, { readonly readers: Set<string> }>()

/**
 * Confirmations and notices from two processes over one store, which are killed and meet a provider that fails, hangs and
 * is down for hours; for a while, both are paused. Whoever was told that a mail is coming gets one, with a link that works.
 * Every subscriber hears of every announcement but those that were withdrawn before, and of the end of every incident,
 * after its beginning, once unless an attempt was lost.
 */
export async function simulateMessages(input: {
  readonly core: Core
  readonly time: VirtualTime
  readonly start: number
  readonly seed: number
  readonly witness: Pick<Witness, 'violation' | 'note'>
  readonly forMs: number
}): Promise<{ readonly finish: () => Promise<void> }> {
  const { core, time, start, seed, witness, forMs } = input
  const random = seeded(seed ^ 0x3a11)
  // Before anything happens: virtual time does not wait for files.
  const compiled = await compiledMails()
  const store = await core.openStore(undefined, { leaseClock: time.elapsed })
  const clock = { ...time.clock, now: () => start + time.elapsed() }
  const calm = () => time.elapsed() > forMs - CALM_MS
  const outage = { from: random.between(HOUR, forMs / 2), ms: random.between(HOUR, 30 * HOUR) }
  const isDown = () => !calm() && time.elapsed() > outage.from && time.elapsed() < outage.from + outage.ms
  const pause = { from: random.between(HOUR, forMs / 2), ms: random.between(HOUR, 10 * HOUR) }
  const isPaused = () => time.elapsed() >= pause.from && time.elapsed() < pause.from + pause.ms
  const courses = [
    { ...school, id: 'pottery' },
    { ...school, id: 'chess' },
  ] as typeof learning.courses
  /** By address and course: when somebody was last told that a mail is coming. */
  const accepted = new Map<string, number>()
  const mails = new Map<string, Mail>()
  const newest = new Map<string, Mail>()
  const withdrawn = new Map<string, number>()
  /** Who read what of an announcement, or of an incident. */
  const read = { announced: readings(), opened: readings(), closed: readings() }
  const noticeOf = ({ subject, to }: Message) => {
    const [, kind, about = ''] = /^(announced|opened|closed) (\w+)$/.exec(subject) ?? []
    return { kind: kind as keyof typeof read | undefined, about, reader: to.address }
  }

  function mailOf(message: Message): Mail {
    const [, token = message.key, course = courses[0]?.id] =
      /token=([\w-]+)(?:&course=(\w+))?/.exec(message.text) ?? []
    const mail = mails.get(token) ?? {
      key: message.key,
      token,
      deliveries: 0,
      unsettled: false,
      notBefore: 0,
    }
    if (mail.key !== message.key) witness.violation('two keys for one mail', token)
    mails.set(token, mail)
    newest.set(`${message.to.address} ${course}`, mail)
    return mail
  }

  function begun(message: Message): Mail {
    const mail = mailOf(message)
    if (time.elapsed() < mail.notBefore)
      witness.violation('a mail was tried again within five minutes of a refusal', mail.token)
    if (isPaused()) witness.violation('a mail was sent during a pause', mail.token)
    const { kind, about } = noticeOf(message)
    if (kind === 'announced' && time.elapsed() > (withdrawn.get(about) ?? time.elapsed()))
      witness.violation('an announcement was mailed after it was withdrawn', about)
    return mail
  }

  function delivered(message: Message, mail: Mail, sender = { alive: true }): Outcome {
    mail.deliveries += 1
    if (mail.deliveries > 1 && !mail.unsettled)
      witness.violation('a mail went out again though no attempt of it was lost', mail.token)
    const { kind, about, reader } = noticeOf(message)
    // What a killed process left with a slow server may arrive after the end, which another one has mailed since.
    if (kind === 'opened' && sender.alive && read.closed.get(about)?.readers.has(reader))
      witness.violation('the beginning of an incident was mailed after its end', about)
    if (kind !== undefined) read[kind].get(about)?.readers.add(reader)
    return { kind: 'sent', id: message.key }
  }

  /** A daemon: its course, and what it does once a minute. */
  function startProcess(n: number, generation: number) {
    const process = { alive: true }
    const held = new Set<Mail>()
    const kill = () => {
      process.alive = false
      for (const mail of held) Object.assign(mail, { unsettled: true, notBefore: 0 })
      time.after(random.between(MINUTE, 10 * MINUTE), () => running.set(n, startProcess(n, generation + 1)))
      witness.note('', `messenger ${n}.${generation} killed`)
    }
    const meets = (oneIn: number) => !calm() && random.oneIn(oneIn)
    async function around<T>(work: () => Promise<T>): Promise<T> {
      if (!process.alive) return NEVER
      const result = await work()
      if (process.alive && meets(60)) kill()
      return process.alive ? result : NEVER
    }
    const faulty: CourseStore = {
      ...store.course,
      requestConfirmation: (asked) => around(() => store.course.requestConfirmation(asked)),
      checkToken: (asked) => around(() => store.course.checkToken(asked)),
      claimMessages: (asked) => around(() => store.course.claimMessages(asked)),
      keepMessages: (asked) => around(() => store.course.keepMessages(asked)),
      settleMessages: (settlements) => around(() => store.course.settleMessages(settlements)),
      settle: (settlements) => around(() => store.course.settle(settlements)),
    }
    async function send(message: Message): Promise<Outcome> {
      if (!process.alive) return NEVER
      const mail = begun(message)
      held.add(mail)
      const refused = (scope: 'connection' | 'message', ms = 0): Outcome => {
        mail.notBefore = time.elapsed() + 5 * MINUTE
        return { kind: 'transient', scope, reason: 'refused', retryAfterMs: ms }
      }
      await time.clock.sleep(calm() ? 50 : random.pick([50, 200, 3000, 3000, 4 * MINUTE]))
      if (!process.alive) {
        if (random.oneIn(2)) delivered(message, mail, process)
        return NEVER
      }
      if (isDown()) return refused('connection')
      if (meets(5)) return refused('message', random.pick([0, 0, 20 * MINUTE]))
      if (meets(10)) {
        if (random.oneIn(2)) delivered(message, mail)
        mail.unsettled = true
        return { kind: 'unknown', reason: 'the connection broke' }
      }
      const outcome = delivered(message, mail)
      if (meets(12)) kill()
      return process.alive ? outcome : NEVER
    }
    const course = core.openCourse({
      catalog: core.createCatalog(courses),
      store: faulty,
      persistent: true,
      limit: 100,
      mailer: core.openMailer({
        mail: undefined,
        from: { name: undefined, address: 'course@example.com' },
        compiled: async () => compiled,
        transport: {
          kind: 'smtp',
          patienceMs: 14 * MINUTE,
          send,
          verify: async () => {},
          close: async () => {},
        },
      }),
      clock,
      timer: time.clock,
      random,
      log: silentLog,
      held: async (stream) =>
        (stream === 'confirmation' || stream === 'notice') && isPaused()
          ? { stream, at: start, reason: 'paused' }
          : undefined,
      siteUrl: 'https://www.example.com',
      linkKey: core.secret('a key that both processes have'),
      notices: {
        isSilent: async () => false,
        slots: ({ kind, subject }) => ({
          title: `${kind} ${subject}`,
          text: 'text',
          when: 'when',
          statusUrl: 'https://www.example.com/',
        }),
      },
    })
    const fails = (error: unknown) => witness.violation(`a messenger threw: ${String(error)}`, String(n))
    const loop = async () => {
      while (process.alive && time.elapsed() < forMs) {
        await time.clock.sleep(5 * MINUTE)
        if (process.alive) course.deliverMessages().catch(fails)
      }
    }
    loop().catch(fails)
    return { process, course }
  }
  const running = new Map<number, ReturnType<typeof startProcess>>()
  for (let n = 0; n < PROCESSES; n += 1) running.set(n, startProcess(n, 0))

  /** A visitor asks a process that serves, and believes its answer. */
  async function ask(address: string, id: string): Promise<void> {
    const serving = [...running.values()].find(({ process }) => process.alive)
    const key = `${address} ${id}`
    const at = time.elapsed()
    const answer = await serving?.course.subscribe({ spelling: address, identity: address, course: id })
    if (answer?.sent) accepted.set(key, at)
    witness.note(key, 'told that a mail is coming')
  }
  const visit = (ms: number, address: string, id = 'pottery') =>
    time.after(ms, () => {
      ask(address, id).catch((error: unknown) => witness.violation(String(error), address))
    })
  for (let n = 0; n < PEOPLE; n += 1) {
    const at = random.between(0, forMs - 2 * DAY)
    const address = `m${n}@example.com`
    visit(at, address)
    if (random.oneIn(2)) visit(at + random.between(1, HOUR - 1), address, 'chess')
    if (random.oneIn(4)) visit(at + 25 * HOUR, address)
  }
  for (let n = 0; n < READERS; n += 1)
    await running
      .get(0)
      ?.course.enrol({ spelling: `r${n}@example.com`, identity: `r${n}@example.com`, course: 'status' })
  for (let n = 0; n < 6; n += 1) {
    const id = `a${n}`
    const at = random.between(HOUR, forMs - DAY)
    time.after(at, () => {
      read.announced.set(id, { readers: new Set() })
      const [from, until] = [clock.now(), undefined]
      void store.incidents.announce({ id, text: 'Maintenance', from, until, by: 'ops' }, from)
    })
    if (random.oneIn(2))
      time.after(at + random.between(1, 3 * HOUR), () => {
        void store.incidents.withdraw({ id, now: clock.now() }).then(() => withdrawn.set(id, time.elapsed()))
      })
    // An outage, found and told by whichever process checks next.
    const cause = `c${n}`
    const change = (changes: Changes) =>
      void store.incidents.follow({
        ...{ now: clock.now(), channels: [], visitorsHear: () => true },
        decide: () => changes,
      })
    const begins = random.between(HOUR, forMs - DAY)
    time.after(begins, () => {
      read.opened.set(`i${n}`, { readers: new Set() })
      change({ opens: [incidentWith({ id: `i${n}`, cause, openedAt: clock.now() })] })
    })
    time.after(begins + random.between(MINUTE, 3 * HOUR), () => {
      read.closed.set(`i${n}`, { readers: new Set() })
      change({ closes: [{ cause, at: clock.now(), unseenSince: clock.now() }] })
    })
  }
  return {
    async finish() {
      for (const [key, at] of accepted) {
        const mail = newest.get(key)
        if (mail === undefined || mail.deliveries === 0)
          witness.violation('a confirmation that was promised never came', key)
        else if (time.elapsed() - at < 6 * DAY) {
          const tokenHash = core.hashToken(mail.token)
          if ((await store.course.checkToken({ tokenHash, now: clock.now() })) !== 'use')
            witness.violation('the newest link does not work', key)
        }
      }
      for (const [id, { readers }] of read.announced)
        if (!withdrawn.has(id) && readers.size < READERS)
          witness.violation('an announcement did not reach every subscriber', id)
      for (const [id, { readers }] of read.closed)
        if (readers.size < READERS)
          witness.violation('the end of an incident did not reach every subscriber', id)
      await store.close()
    },
  }
}
