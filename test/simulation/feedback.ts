import { type FeedbackEvent, type FeedbackKind, SOFT_BOUNCES } from '../../src/core/mail/feedback/event.ts'
import { BY_MAIL } from '../../src/core/mail/feedback/sending.ts'
import type { Message } from '../../src/core/mail/mailer.ts'
import type { Store } from '../../src/core/store/store.ts'
import { simulateBreaker } from './breaker.ts'
import type { Core } from './core.ts'
import { type Seeded, seeded } from './seeded.ts'
import type { VirtualTime } from './virtual-time.ts'
import { enrolmentIn, type Witness } from './witness.ts'

const MINUTE = 60_000
const HOUR = 60 * MINUTE
const DAY = 24 * HOUR
/** An unsubscribe that is older than the confirmation by no more than this ends the course, because clocks differ. */
const UNCLEAR = 5 * MINUTE
/** Webhooks carry a few events, or a backlog after an outage. */
const MOST_IN_ONE = 100
const SOURCE = 'postmark'

/** The fate of mail to an address. Most of it arrives, without feedback. */
type Fate =
  | 'quiet'
  | 'delivered'
  | 'full'
  | 'flaky'
  | 'hard-bounce'
  | 'complaint'
  | 'unsubscribed'
  /** Its owner mails reports of their own making, several about each lesson. */
  | 'forged'

const FATES: readonly [Fate, ...Fate[]] = [
  'quiet',
  'quiet',
  'quiet',
  'quiet',
  'delivered',
  'full',
  'flaky',
  'hard-bounce',
  'complaint',
  'unsubscribed',
]
/** As rare as it takes for the breaker's limits to be met on some days and not on others. */
const FEWER_REPORTS: readonly [Fate, ...Fate[]] = [
  'quiet',
  ...Array.from({ length: 23 }, () => 'quiet' as const),
  'complaint',
  'complaint',
  'hard-bounce',
  'forged',
  'forged',
  'forged',
]

/** Feedback about an address, each event once. */
interface Known {
  readonly softs: number[]
  /** There were enough of them, when one of its reports came. */
  enough: boolean
  delivered: number
  /** A hard bounce or a complaint. */
  final: boolean
  suppressed: boolean
  erased: boolean
}

/**
 * A provider that reports on accepted lessons: hours or days later, in any order, more than once, about enrolments that
 * were started over since, and about people who were erased. Webhooks go through the real path into the real store, and
 * are delivered again when the store fails them.
 */
export function simulateFeedback(input: {
  readonly core: Pick<Core, 'applyFeedback' | 'suppressionHash'>
  readonly store: Pick<Store, 'course' | 'feedback' | 'sending'>
  readonly time: VirtualTime
  readonly witness: Witness
  readonly seed: number
  readonly addressKey: string
  /** Undefined: the provider reports nothing. */
  readonly reports: boolean
  /** Are courses paused when too much is reported? */
  readonly breaks: boolean
  readonly isCalm: () => boolean
}): {
  readonly witness: Witness
  readonly erased: (address: string) => void
  readonly isPaused: () => Promise<boolean>
} {
  const { core, store, time, witness, seed, addressKey, reports, breaks, isCalm } = input
  // A stream of its own: what is reported changes nothing of what else is drawn.
  const random = seeded(seed ^ 0xfeedbac)
  const fates = new Map<string, Fate>()
  const addresses = new Map<string, string>()
  const confirmedAt = new Map<string, number>()
  const known = new Map<string, Known>()
  /** By its source: what the provider signs, and what comes by mail. */
  const waiting = { [SOURCE]: Array.of<FeedbackEvent>(), [BY_MAIL]: Array.of<FeedbackEvent>() }
  const breaker = breaks
    ? simulateBreaker({ store, time, witness, random: seeded(seed ^ 0xb4ea), isCalm })
    : undefined
  let events = 0

  const knownOf = (address: string): Known => {
    const found = known.get(address) ?? {
      softs: [],
      enough: false,
      delivered: Number.NEGATIVE_INFINITY,
      final: false,
      suppressed: false,
      erased: false,
    }
    known.set(address, found)
    return found
  }
  const isSuppressed = (enrolment: string) => {
    const address = addresses.get(enrolment.split('.')[0] ?? '')
    return address !== undefined && knownOf(address).suppressed
  }

  function report(kind: FeedbackKind, message: Message, source: keyof typeof waiting = SOURCE): void {
    const { address } = message.to
    events += 1
    const event = {
      id: `event-${events}`,
      kind,
      address,
      messageId: message.messageId,
      at: time.clock.now(),
      reason: `reported as ${kind}`,
    }
    // Soon, after the next lessons, or when the course has been started over.
    const late = random.pick([MINUTE, 2 * HOUR, 6 * DAY])
    for (let times = random.oneIn(3) ? 3 : 1; times > 0; times -= 1)
      time.after(random.between(1000, late), () => waiting[source].push(event))
  }

  /** The provider's next webhook, or what came by mail since. */
  async function deliver(source: keyof typeof waiting): Promise<void> {
    const batch = shuffled(waiting[source].splice(0, MOST_IN_ONE), random)
    if (batch.length === 0) return
    // The answer is lost or the store is: the provider delivers the same events again.
    if (random.oneIn(8)) waiting[source].push(...batch)
    if (random.oneIn(16)) return
    /** Enrolments that a report may end, and whether one of those in this webhook must. */
    const unsubscribes = new Map<string, boolean>()
    for (const { id, kind, address, at } of batch) {
      if (kind !== 'unsubscribed') continue
      for (const enrolment of await confirmedEnrolments(address)) {
        const ends =
          !noted.has(id) && at >= Math.min(confirmedAt.get(enrolment) ?? at, time.clock.now()) - UNCLEAR
        unsubscribes.set(enrolment, ends || unsubscribes.get(enrolment) === true)
      }
    }
    const { pause } = await core.applyFeedback({
      feedback: { events: batch, ignored: 0 },
      source,
      store: store.feedback,
      sending: store.sending,
      erasureHashes: (identity) => [core.suppressionHash(addressKey, identity)],
      now: time.clock.now(),
    })
    for (const event of batch) note(event, source)
    if (batch.some(({ kind }) => kind === 'hard-bounce' || kind === 'complaint')) breaker?.answered(pause)
    for (const address of new Set(batch.map((event) => event.address))) await check(address)
    for (const [enrolment, ends] of unsubscribes) await checkUnsubscribed(enrolment, ends)
    // The webhook is answered; from here on nothing may go out.
    await time.clock.sleep(1)
    for (const address of new Set(batch.map((event) => event.address))) await acknowledge(address)
  }

  const noted = new Set<string>()
  function note({ id, kind, address, at }: FeedbackEvent, source: keyof typeof waiting): void {
    const mailbox = knownOf(address)
    if (noted.has(id) || mailbox.erased) return
    noted.add(id)
    if (kind === 'soft-bounce') mailbox.softs.push(at)
    if (kind === 'delivered') mailbox.delivered = Math.max(mailbox.delivered, at)
    if (kind === 'hard-bounce' || kind === 'complaint') {
      if (!mailbox.final) breaker?.heard(kind, source === BY_MAIL)
      mailbox.final = true
    }
    mailbox.enough ||= isEnough(mailbox.softs.filter((soft) => soft > mailbox.delivered))
  }

  async function confirmedEnrolments(address: string): Promise<readonly string[]> {
    const all = await store.course.findPerson(address)
    return all.flatMap(({ id, enrolment, state }) => (state === 'confirmed' ? `${id}.${enrolment}` : []))
  }

  /** Checks that the store's state for an address follows from its feedback, however that was delivered. */
  async function check(address: string): Promise<void> {
    const { softs, enough, delivered, final, erased } = knownOf(address)
    const { suppression } = (await store.feedback.find(address)) ?? {}
    if (erased) {
      if ((await store.feedback.find(address)) || (await store.course.find(address)))
        witness.violation('feedback brought back a person who was erased', address)
      return
    }
    if (final && suppression === undefined)
      witness.violation('a hard bounce or a complaint suppressed nobody', address)
    if (suppression !== undefined && !final && !enough)
      witness.violation('an address was suppressed for too few soft bounces', address)
    if (suppression === undefined && delivered === Number.NEGATIVE_INFINITY && isEnough(softs))
      witness.violation('soft bounces over days suppressed nobody', address)
  }

  /** No time passes between a webhook and this look: only the webhook can have ended the enrolment. */
  async function checkUnsubscribed(enrolment: string, ends: boolean): Promise<void> {
    const found = await store.course.findById(enrolment.split('.')[0] ?? '')
    if (found === undefined || `${found.id}.${found.enrolment}` !== enrolment) return
    const ended = found.state !== 'confirmed'
    if (ends && !ended) witness.violation('an unsubscribe at the provider did nothing', enrolment)
    if (!ends && ended)
      witness.violation('a report that was late or repeated ended an enrolment that goes on', enrolment)
    if (ended) witness.unsubscribed(enrolment)
  }

  async function acknowledge(address: string): Promise<void> {
    const mailbox = knownOf(address)
    if ((await store.feedback.find(address))?.suppression === undefined) return
    mailbox.suppressed = true
    for (const { id, enrolment, state } of await store.course.findPerson(address)) {
      if (state === 'confirmed')
        witness.violation('a suppressed address has a course that goes on', `${id}.${enrolment}`)
      witness.unsubscribed(`${id}.${enrolment}`)
    }
  }

  function fateOf(address: string): Fate {
    const fate = fates.get(address) ?? random.pick(breaks ? FEWER_REPORTS : FATES)
    fates.set(address, fate)
    return fate
  }
  function learn(message: Message): void {
    const fate = fateOf(message.to.address)
    if (fate === 'full') report('soft-bounce', message)
    else if (fate === 'flaky') report(random.oneIn(3) ? 'delivered' : 'soft-bounce', message)
    else if (fate === 'delivered') report('delivered', message)
    else if (fate === 'forged')
      for (let times = random.between(1, 4); times > 0; times -= 1) report('complaint', message, BY_MAIL)
    else if (fate !== 'quiet' && random.oneIn(3)) report(fate, message)
  }

  if (reports) {
    const post = () => {
      deliver(SOURCE)
        .then(() => deliver(BY_MAIL))
        .catch((error: unknown) => witness.violation(`a webhook met a fault: ${String(error)}`, ''))
        .finally(() => time.after(random.between(MINUTE, HOUR), post))
    }
    time.after(MINUTE, post)
  }
  return {
    erased(address) {
      knownOf(address).erased = true
    },
    isPaused: async () => (await breaker?.isPaused()) ?? false,
    witness: {
      ...witness,
      delivered(message) {
        witness.delivered(message)
        if (enrolmentIn(message) === undefined) return
        breaker?.sent()
        if (reports) learn(message)
      },
      handedOver(process, message) {
        witness.handedOver(process, message)
        const enrolment = enrolmentIn(message)
        if (enrolment === undefined) return
        addresses.set(enrolment.split('.')[0] ?? '', message.to.address)
        breaker?.handedOver(enrolment)
        if (knownOf(message.to.address).suppressed)
          witness.violation('a lesson to a suppressed address', enrolment)
      },
      confirmed(enrolment, one) {
        witness.confirmed(enrolment, one)
        confirmedAt.set(enrolment, one.at)
        addresses.set(enrolment.split('.')[0] ?? '', one.address)
        // It ended as it began.
        if (isSuppressed(enrolment)) witness.unsubscribed(enrolment)
      },
      undone(enrolment) {
        if (!isSuppressed(enrolment)) witness.undone(enrolment)
      },
    },
  }
}

/** Soft bounces that suppress an address. */
function isEnough(all: readonly number[]): boolean {
  return all.length >= SOFT_BOUNCES.most && Math.max(...all) - Math.min(...all) >= SOFT_BOUNCES.overMs
}

function shuffled<T>(items: readonly T[], random: Seeded): readonly T[] {
  return items
    .map((item) => ({ item, order: random.fraction() }))
    .sort((a, b) => a.order - b.order)
    .map(({ item }) => item)
}
