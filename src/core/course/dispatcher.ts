import { setMaxListeners } from 'node:events'
import type { Clock, Timer } from '../clock.ts'
import { type Delivery, isAnswer, KEY_LIFE_MS } from '../delivery/delivery.ts'
import { LATE } from '../delivery/lease.ts'
import { createMarker } from '../delivery/marker.ts'
import { type About, createRefusals } from '../delivery/refusals.ts'
import { createSemaphore } from '../delivery/semaphore.ts'
import { HOUR_MS } from '../durations.ts'
import { PlatformError } from '../errors.ts'
import type { Log } from '../log.ts'
import type { Pacer } from '../mail/feedback/pacer.ts'
import type { Mail, Mailer, SendOutcome } from '../mail/mailer.ts'
import type { Outcome, WaitUntilRecorded } from '../mail/transport.ts'
import type { Random } from '../random.ts'
import type { Catalog } from './catalog.ts'
import { type Course, type DispatchResult, OUT_OF_TIME, PAUSED, STOPPED } from './course.ts'
import { FIRST_COURSE, type Plan } from './definition.ts'
import { createFeed, type Taken } from './feed.ts'
import type { LessonMail } from './pinned-texts.ts'
import { settle } from './schedule.ts'
import type { Claim, CourseStore, Settlement } from './store.ts'

/** More slots than concurrent sends, so that many outcomes can share one durable commit. */
const SLOTS = 250
/** The most lessons that one limited call sends, and the most results that a run without a limit lists. */
const MOST_RESULTS = 10_000
const PAUSE_ASKED_MS = 5000
/**
 * No dispatch call lasts longer, so only subscribers whose next lesson is due within this time are
 * remembered.
 */
const SOON_MS = 12 * 60 * 60 * 1000

export interface DispatcherOptions {
  readonly store: CourseStore
  readonly persistent: boolean
  readonly mailer: Mailer
  readonly clock: Clock
  readonly timer: Timer
  readonly random: Random
  readonly log: Log
  readonly catalog: Catalog
  /** The pace that all dispatchers of the store share; default: as fast as the transport carries. */
  readonly pace?: Pick<Pacer, 'places' | 'giveBack'>
  /** Asked before the first message and every few seconds. */
  readonly isPaused?: (stream: 'course' | 'notice') => Promise<boolean>
  /** Asked just before a lesson is handed over: what becomes of one that is not to be sent now. */
  readonly standing?: (claim: Claim) => Promise<Delivery | undefined>
  /** Values that a lesson's mail needs besides its template. */
  readonly mailFor: (
    claim: Claim,
    lesson: string | undefined,
  ) => { readonly slots: Mail['slots']; readonly unsubscribeUrl: string }
}

/**
 * The dispatcher (CONTRACT §5): claim (a lease with a fencing number, in a transaction that is closed before any
 * network I/O) → render → send → record. The hourly schedule, the endpoint and the CLI all enter here.
 */
export function createDispatcher(options: DispatcherOptions): Course['dispatch'] {
  const { store, persistent, mailer, clock, timer, random, log, catalog, mailFor } = options
  const { pace, isPaused = async () => false, standing } = options
  return async ({ limit, run, notices, gentle, forMs, signal, onProgress }) => {
    if (!persistent)
      throw new PlatformError('store_not_persistent', 'Dispatch needs a persistent store; set STORE_URL.')
    const left = async () => {
      const { due, waiting, nextTryAt } = await store.backlog(clock.now())
      return {
        remaining: due,
        ...(waiting > 0 && { waiting }),
        ...(nextTryAt !== undefined && { nextTryAt: new Date(nextTryAt).toISOString() }),
      }
    }
    const none = { processed: 0, sent: 0, failed: 0, unknown: 0 }
    const nothing = async (reason: string) => ({ ...none, ...(await left()), limit, reason, results: [] })
    if (!mailer.configured) return nothing(mailer.reason ?? 'mail is not configured')
    const stream = notices ? 'notice' : 'course'
    if (await isPaused(stream)) return nothing(PAUSED)
    const results: DispatchResult['results'][number][] = []
    const tally = { sent: 0, failed: 0, unknown: 0 }
    /** Aborted when the call stops sending, whatever for. */
    const halt = new AbortController()
    const halted = signal ? AbortSignal.any([signal, halt.signal]) : halt.signal
    // Every slot listens while it waits for its place.
    setMaxListeners(0, halted)
    let isOutOfTime = false
    if (forMs !== undefined)
      timer.sleep(forMs, halted).then(
        () => {
          isOutOfTime = true
          halt.abort()
        },
        () => {},
      )
    const feed = createFeed({
      store,
      clock,
      timer,
      random,
      limit,
      run,
      notices,
      gentle,
      patienceMs: mailer.patienceMs,
      ahead: mailer.lines,
      pace,
      signal: halted,
    })
    // If more outcomes waited for a commit, fewer slots would be left than there are lines, and lines would idle.
    const marker = createMarker<Claim, Settlement>(store, timer, SLOTS - mailer.lines)
    /**
     * Records an outcome, and ends the claim only when the record is durable. That can be long after the
     * attempt: a verdict on a refusal may take as long as another message.
     */
    const mark = async ({ claim, lease }: Taken, settlement: Settlement) => {
      await marker.mark(settlement, lease.heldUntil())
      lease.end(claim)
    }
    const inFlight = createSemaphore(mailer.lines)
    // Why this call stops sending: courses are paused, or the connection failed, which would stop every
    // further message too.
    let pause: string | undefined
    const refusals = createRefusals()
    /**
     * Subscriptions that had a message in this call and may be due again before it ends. The store forgets
     * that once another dispatcher claims one of them.
     */
    const had = new Set<string>()
    const verdicts = new Map<Claim, Promise<About>>()
    const undecided: Promise<void>[] = []
    const handedOver = new WeakSet<Claim>()
    /** Claims that a fault kept from being handed over. */
    const untried: Taken[] = []
    /** Why the first message without a recorded outcome was not sent. */
    let unheard: string | undefined
    let fault: { readonly error: unknown } | undefined
    const stopped = () =>
      pause !== undefined || refusals.stop !== undefined || fault !== undefined || halted.aborted

    async function deliver(taken: Taken): Promise<void> {
      const { claim } = taken
      // Released as tried, so that this call does not claim it a third time.
      if (had.has(claim.subscription)) return record(taken, undefined, { kind: 'again' })
      const plan = await catalog.plan(claim, store)
      if (plan === undefined) return record(taken, undefined, gone(claim))
      if (claim.day > plan.lessons.length) return record(taken, undefined, { kind: 'finished' })
      // Get the text before taking a slot, so that a text to be compiled first holds up no other message.
      const text = await catalog.text(plan, claim, store)
      if (text.kind === 'missing') return record(taken, plan, waitsFor(text.reason))
      const delivery = await inFlight(() => handOver(taken, plan, text))
      if (isRefusal(delivery)) undecided.push(refused(taken, plan, delivery))
      else await record(taken, plan, delivery)
    }

    /** The lesson that follows the claim's, if the claim's is sent now. */
    const following = (plan: Plan, claim: Claim, now: number) =>
      catalog.next(plan, { ...claim, lastSentAt: now }, claim.day)

    /** Records what became of a claim; `answer` is what the provider said of it. */
    async function record(
      taken: Taken,
      plan: Plan | undefined,
      delivery: Delivery,
      answer = delivery,
    ): Promise<void> {
      const { claim } = taken
      if (delivery.kind === 'gone') taken.lease.end(claim)
      else {
        const now = clock.now()
        const next = plan && following(plan, claim, now)
        const messageId = plan && mailer.messageId(lessonOf(plan, claim))
        const progress = plan && catalog.progress(plan, claim)
        await mark(
          taken,
          settle(claim, delivery, { now, fraction: random.fraction(), next, progress, messageId }),
        )
      }
      if (isAnswer(answer)) tell(claim, answer)
      else feed.giveBack({ stale: delivery.kind === 'untried' })
    }

    /**
     * Records a refusal once the outcomes of other messages show whether it was about this message or about
     * us. The slot is free meanwhile.
     */
    async function refused(taken: Taken, plan: Plan, outcome: Refusal): Promise<void> {
      const { claim, lease } = taken
      const { reason } = outcome
      const unclear = aboutOf(outcome)
      // Record it before the lease ends, so that the next holder of the claim finds the refusal.
      const about = await Promise.race([verdicts.get(claim) ?? unclear, lease.expired.then(() => unclear)])
      if (about === 'message') return record(taken, plan, { kind: 'permanent', hardBounce: false, reason })
      unheard ??= reason
      await record(taken, plan, { kind: 'again' }, outcome)
    }

    let pauseAskedAt = timer.monotonic()
    const mayBePaused = () => timer.monotonic() - pauseAskedAt >= PAUSE_ASKED_MS
    async function lookAtPause(): Promise<void> {
      pauseAskedAt = timer.monotonic()
      if (await isPaused(stream)) pause = PAUSED
    }

    async function handOver(
      { claim, lease, place = 0 }: Taken,
      plan: Plan,
      text: LessonTextToSend,
    ): Promise<Delivery> {
      if (stopped()) return { kind: 'untried' }
      const waitMs = place - timer.monotonic()
      if (waitMs > 0) await timer.sleep(waitMs, halted).catch(() => {})
      if (mayBePaused()) await lookAtPause()
      // A lesson claimed early, under a clock that was ahead, waits until it is due.
      const early = clock.now() < claim.dueAt
      if (stopped() || early || !lease.mayBegin()) return { kind: 'untried' }
      const unsent = await standing?.(claim)
      if (unsent) return unsent
      // An unsubscribe that was acknowledged wins over a claim that has not handed its message over.
      if (!(await store.stillHolds(claim))) return { kind: 'gone' }
      if (isForgotten(claim, clock.now())) return stillUnknown(claim)
      // If the lease expires before the transport answers, the message may or may not have been delivered.
      const number = refusals.handOver()
      const next = following(plan, claim, clock.now())
      if (next !== undefined && next.dueAt < clock.now() + SOON_MS) had.add(claim.subscription)
      lease.begin(claim)
      handedOver.add(claim)
      const { recorded, answered } = marker.begin(claim)
      const answer = send({ claim, plan, text, signal: lease.signal, recorded })
      const outcome = (await Promise.race([answer, lease.expired])) ?? LATE
      answered()
      // Counted here, in the order of the answers: which refusals are consecutive must not depend on what is
      // recorded first.
      if (outcome.kind === 'sent') refusals.accepted(number)
      else if (outcome.kind === 'not_configured' || outcome.kind === 'not_composed') {
        refusals.failed(outcome.reason)
        unheard ??= outcome.reason
      } else if (isRefusal(outcome))
        verdicts.set(claim, refusals.refused({ reason: outcome.reason, unclear: aboutOf(outcome) }))
      // Set while the slot is still taken, so that the next message in line sees it.
      if (outcome.kind === 'transient' && outcome.scope === 'connection') pause = outcome.reason
      return outcome
    }

    /** The provider no longer knows the key: a retry could be a second delivery, so an operator decides. */
    const isForgotten = ({ problem }: Claim, now: number) =>
      mailer.transport === 'api' && problem?.kind === 'unknown' && now - problem.since >= KEY_LIFE_MS
    const stillUnknown = ({ problem }: Claim): SendOutcome => ({
      kind: 'unknown',
      reason: problem?.reason ?? 'the outcome is unknown',
    })

    function send({
      claim,
      plan,
      text,
      signal,
      recorded,
    }: {
      readonly claim: Claim
      readonly plan: Plan
      readonly text: LessonTextToSend
      readonly signal: AbortSignal
      readonly recorded: WaitUntilRecorded
    }): Promise<SendOutcome> {
      const { slots, unsubscribeUrl } = mailFor(claim, plan.lessons[claim.day - 1])
      const mail: Mail = {
        stream,
        ...lessonOf(plan, claim),
        ...(text.kind === 'stored' ? { compiled: text.mail } : { language: text.language }),
        slots,
        to: { name: undefined, address: claim.address },
        date: new Date(claim.firstAttemptAt),
        unsubscribeUrl,
      }
      return mailer.send(mail, signal, recorded)
    }

    function tell({ subscription, day }: Claim, outcome: SendOutcome) {
      const kind = outcome.kind === 'sent' || outcome.kind === 'unknown' ? outcome.kind : 'failed'
      const reason = outcome.kind === 'sent' ? {} : { reason: outcome.reason }
      tally[kind] += 1
      if (results.length < MOST_RESULTS) results.push({ subscription, day, sent: kind === 'sent', ...reason })
      onProgress?.({ subscription, day, outcome: kind })
      if (kind !== 'sent')
        log.warn('course_day_not_sent', 'a lesson was not sent', {
          subscription,
          day,
          outcome: kind,
          ...reason,
        })
    }

    async function slot(): Promise<void> {
      while (!stopped()) {
        const taken = await feed.next()
        if (taken === undefined) return
        try {
          await deliver(taken)
        } catch (error) {
          if (!handedOver.has(taken.claim)) untried.push(taken)
          throw error
        } finally {
          if (!handedOver.has(taken.claim)) feed.unused(taken)
        }
      }
      halt.abort()
    }

    // Wait for every slot before throwing the first fault, so that nothing goes on in the background.
    await Promise.all(
      // With a pace, a slot has a line of its own, so that no claim waits for one.
      Array.from({ length: Math.min(pace ? mailer.lines : SLOTS, limit) }, () =>
        slot().catch((error: unknown) => {
          fault ??= { error }
          halt.abort()
        }),
      ),
    )
    halt.abort()
    refusals.end()
    for (const decided of await Promise.allSettled(undecided))
      if (decided.status === 'rejected') fault ??= { error: decided.reason }
    untried.push(...(await feed.stop()))
    const released = await Promise.allSettled(
      untried.map((taken) =>
        mark(taken, settle(taken.claim, { kind: 'untried' }, { now: clock.now(), fraction: 0 })),
      ),
    )
    feed.end()
    for (const one of released) if (one.status === 'rejected') fault ??= { error: one.reason }
    if (fault) throw fault.error
    const rest = await left()
    const why =
      pause ??
      refusals.stop ??
      (isOutOfTime && rest.remaining > 0 ? OUT_OF_TIME : undefined) ??
      (signal?.aborted && rest.remaining > 0 ? STOPPED : undefined) ??
      (tally.sent === 0 ? unheard : undefined)
    const reason = why === undefined ? {} : { reason: why }
    const counted = {
      processed: tally.sent + tally.failed + tally.unknown,
      ...tally,
      ...rest,
    }
    log.info('dispatched', 'a dispatch call ended', counted)
    return { ...counted, limit, ...reason, results }
  }
}

/** An answer that may be about us rather than about the message. */
type Refusal = Extract<Outcome, { kind: 'permanent' | 'transient' }>

/** Assumed scope of a refusal if nothing more is learned: the transport's own answer is believed. */
function aboutOf(outcome: Refusal): About {
  return outcome.kind === 'permanent' ? 'message' : 'run'
}

function isRefusal(outcome: Delivery): outcome is Refusal {
  return (
    (outcome.kind === 'transient' && outcome.scope === 'sender') ||
    (outcome.kind === 'permanent' && !outcome.hardBounce)
  )
}

/**
 * The mail of a lesson, with a key that all its attempts share. The key holds the number of the lesson; in the first
 * course, whose keys came before there were others, the name of its template instead.
 */
export function lessonOf(
  { lessons }: Pick<Plan, 'lessons'>,
  { course, subscription, enrolment, day }: Pick<Claim, 'course' | 'subscription' | 'enrolment' | 'day'>,
): Pick<Mail, 'template' | 'label' | 'about'> {
  const template = lessons[day - 1]
  if (template === undefined) throw new RangeError(`there is no lesson for day ${day}`)
  return {
    template,
    ...(course !== FIRST_COURSE && { label: `${course}-${day}` }),
    about: `course.${subscription}.${enrolment}.${day}`,
  }
}

/** The text of a lesson that has one. */
type LessonTextToSend = Exclude<LessonMail, { kind: 'missing' }>

function gone({ course }: Claim): Outcome {
  return waitsFor(`the platform has no course ${course}: put it back, or cancel its enrolments`)
}

/** Puts a lesson off until the definition has what is missing. The message itself is not at fault. */
function waitsFor(reason: string): Outcome {
  return { kind: 'transient', scope: 'connection', reason, retryAfterMs: HOUR_MS }
}
