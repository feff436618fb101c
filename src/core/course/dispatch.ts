import { recent } from '../calls.ts'
import { createEngine } from '../delivery/engine.ts'
import { COURSE, type Delivery, isAnswer, isForgotten } from '../delivery/retries.ts'
import type { RunOptions } from '../delivery/run.ts'
import type { Asked, Attempted, Ready, Source } from '../delivery/source.ts'
import { HOUR_MS } from '../durations.ts'
import { PlatformError } from '../errors.ts'
import type { Pacer } from '../mail/feedback/pacer.ts'
import { type Mail, NOT_CONFIGURED, type SendOutcome } from '../mail/mailer.ts'
import { sendAgain, triedBefore } from '../mail/send-once.ts'
import { FIRST_COURSE, type Plan } from './definition.ts'
import type { DispatchRequest } from './dispatch-request.ts'
import { aboutOf, type CourseHost, lessonsKey } from './host.ts'
import { lessonSignature, lessonUrl, unsubscribeBy } from './links.ts'
import { NOT_HERE } from './pinned-texts.ts'
import type { Claim, Settlement } from './subscription.ts'
import { settlementOf } from './transitions/claim.ts'

export const OUTCOMES = ['sent', 'failed', 'unknown'] as const
export type DispatchOutcome = (typeof OUTCOMES)[number]

export interface DispatchCall extends DispatchRequest, Omit<RunOptions, 'limit'> {
  /** Calls of one run send at most one message per subscription together; default: a run of its own. */
  readonly run?: string | undefined
  /** A lesson that was due already when the one before was sent waits for an hour, so that no outage ends in a burst. */
  readonly gentle?: boolean
  readonly onProgress?: (outcome: DispatchOutcome) => void
}

export interface DispatchResult {
  readonly processed: number
  readonly sent: number
  readonly failed: number
  readonly unknown: number
  /** Lessons due that this call left. */
  readonly remaining: number
  /** Lessons that are due and wait for their next attempt, because one failed; absent when none does. */
  readonly waiting?: number
  /** ISO 8601: the first of those attempts. */
  readonly nextTryAt?: string
  /** Infinity for a run without one. */
  readonly limit: number
  readonly reason?: string
  readonly results: readonly {
    readonly subscription: string
    readonly day: number
    readonly sent: boolean
    readonly reason?: string
  }[]
}

/** Sends at most one message per subscription. Rejects with `store_not_persistent` on the in-memory store. */
export type Dispatch = (call: DispatchCall) => Promise<DispatchResult>

export const OUT_OF_TIME = 'the time for one call is over'
export const STOPPED = 'it was stopped before all that is due was sent'
/** CONTRACT §12: the reason of a call that sends nothing because its stream is paused. */
export const PAUSED = 'paused'

/** The most that a run lists, or a look at what it would send. */
export const MOST_LISTED = 10_000
const PAUSE_ASKED_MS = 5000

export interface DispatcherOptions {
  readonly persistent: boolean
  /** Of calls that name none. */
  readonly limit: number
  readonly pace?: Pick<Pacer, 'places' | 'giveBack'> | undefined
  /** Asked before the first lesson and every few seconds: are courses paused? */
  readonly isPaused?: (() => Promise<boolean>) | undefined
}

/** Sends the lessons that are due (CONTRACT §5). The schedule, the endpoint and the CLI all enter here. */
export function createDispatcher(host: CourseHost, options: DispatcherOptions): Dispatch {
  const { clock, timer, log, store, mailer } = host
  const { persistent, pace, isPaused = async () => false } = options
  const last = { takenAt: Number.NEGATIVE_INFINITY }
  return async (call) => {
    if (!persistent)
      throw new PlatformError('store_not_persistent', 'Dispatch needs a persistent store; set STORE_URL.')
    const { limit = options.limit, signal } = call
    const sentAt = (await store.lastSentAt()) ?? 0
    // A time in the future was noted under a clock that was ahead.
    if (sentAt > last.takenAt && sentAt <= clock.now()) last.takenAt = sentAt
    const held = recent(PAUSE_ASKED_MS, timer.monotonic, async () =>
      (await isPaused()) ? PAUSED : undefined,
    )
    const { source, results, tally } = createLessons(host, call, { pace, held, last })
    const ran = mailer.configured ? await createEngine(host, source).run({ ...call, limit }) : undefined
    const { due: remaining, waiting, nextTryAt } = await store.backlog(clock.now(), call)
    const isCut = remaining > 0
    const reason = ran
      ? (ran.stopped ??
        (ran.isOutOfTime && isCut ? OUT_OF_TIME : undefined) ??
        (signal?.aborted && isCut ? STOPPED : undefined) ??
        (tally.sent === 0 ? ran.unheard : undefined))
      : NOT_CONFIGURED
    const counted = {
      processed: tally.sent + tally.failed + tally.unknown,
      ...tally,
      remaining,
      ...(waiting > 0 && { waiting }),
      ...(nextTryAt !== undefined && { nextTryAt: new Date(nextTryAt).toISOString() }),
    }
    if (ran) log.info('dispatched', 'a dispatch call ended', counted)
    return { ...counted, limit, ...(reason !== undefined && { reason }), results }
  }
}

interface Lesson extends Ready {
  readonly plan: Plan
}

/** What calls have in common, with the time at which the provider last took a lesson, of whichever process. */
type Shared = Pick<Source<Claim>, 'pace' | 'held'> & { readonly last: { takenAt: number } }

/** The lessons that are due, for one dispatch call, and what it counts of them. */
function createLessons(host: CourseHost, request: DispatchCall, { last, ...paced }: Shared) {
  const { clock, random, log, store, mailer, catalog } = host
  const call = request.run ?? Buffer.from(random.bytes(9)).toString('base64url')
  const results: DispatchResult['results'][number][] = []
  const tally = { sent: 0, failed: 0, unknown: 0 }
  /** Subscriptions that had a message in this call. The store forgets that at another's claim. */
  const had = new Set<string>()
  let noted: Promise<void> | undefined

  /** Claims, and notes once which lessons the courses have: whoever repeats one after a kill repeats that one. */
  async function claim(asked: Asked): Promise<readonly Claim[]> {
    const claims = await store.claimDue({ ...request, ...asked, call })
    if (catalog.latestLessons === undefined || claims.length === 0) return claims
    noted ??= store.keepTexts({ [lessonsKey(call)]: catalog.latestLessons }, asked.now)
    await noted
    return claims
  }

  async function prepare(claim: Claim): Promise<Lesson | Delivery> {
    // Released as tried, so that this call does not claim it a third time.
    if (had.has(claim.id)) return { kind: 'again' }
    const isRetry = claim.claimedAt !== claim.firstAttemptAt
    const tried = isRetry ? await triedBefore(store, aboutOf(claim)) : undefined
    const known = isRetry && !tried ? await store.keptText(lessonsKey(aboutOf(claim))) : undefined
    const plan = await catalog.plan(claim, store, tried?.template ?? catalog.inHand(claim, known))
    if (plan === undefined)
      return waitsFor(`${NOT_HERE}course ${claim.course}: put it back, or cancel its enrolments`)
    if (claim.day > plan.lessons.length) return { kind: 'finished' }
    const text = tried
      ? ({ kind: 'stored', mail: tried.compiled } as const)
      : await catalog.text(plan, claim, store)
    if (text.kind === 'missing') return waitsFor(text.reason)
    return {
      plan,
      async handOver(...how) {
        had.add(claim.id)
        const mail: Mail = {
          ...linksOf(host, claim, plan.lessons[claim.day - 1]),
          ...lessonOf(plan, claim),
          stream: 'course',
          ...(text.kind === 'stored' ? { compiled: text.mail } : { language: text.language }),
          to: { name: undefined, address: claim.address },
          date: new Date(claim.firstAttemptAt),
        }
        return sendAgain(host, mail, { key: mail.about, tried }, (one) => mailer.send(one, ...how))
      },
    }
  }

  async function lastLook(claim: Claim): Promise<Delivery | undefined> {
    // A lesson claimed early, under a clock that was ahead, waits until it is due.
    if (clock.now() < claim.dueAt) return { kind: 'untried' }
    // An unsubscribe that was acknowledged wins over a claim that has not handed its message over.
    if (!(await store.stillHolds(claim))) return { kind: 'gone' }
    // The provider no longer knows the key: a retry could be a second delivery, so an operator decides.
    return isForgotten(jobOf(claim), mailer, clock.now())
      ? { kind: 'unknown', reason: claim.problem?.reason ?? '' }
      : undefined
  }

  function settled({ claim, delivery, record, now, prepared }: Attempted<Claim, Lesson>): Settlement {
    const plan = prepared?.plan
    return settlementOf(claim, delivery, record, {
      now,
      next: plan && catalog.next(plan, claim, claim.day, now),
      progress: plan && catalog.progress(plan, claim),
      messageId: plan && mailer.messageId(lessonOf(plan, claim)),
    })
  }

  function count({ claim, record }: Attempted<Claim, Lesson>, outcome: SendOutcome): void {
    const { id: subscription, day } = claim
    const kind = outcome.kind === 'sent' || outcome.kind === 'unknown' ? outcome.kind : 'failed'
    const reason = outcome.kind === 'sent' ? {} : { reason: outcome.reason }
    tally[kind] += 1
    if (results.length < MOST_LISTED) results.push({ subscription, day, sent: kind === 'sent', ...reason })
    request.onProgress?.(kind)
    const facts = { subscription, day, outcome: kind, ...reason }
    const isGivenUp = record.result === 'over' && record.problem?.kind !== 'bounced'
    const next = isGivenUp ? `; it waits for: platformctl course resolve ${subscription} retry|sent` : ''
    if (kind !== 'sent') log.warn('course_day_not_sent', `a lesson was not sent${next}`, facts)
  }

  /** Since its last attempt: what failed then is about its own message, and not an outage. */
  const areOthersTaken = ({ problem }: Claim) => problem !== undefined && problem.since < last.takenAt

  const source: Source<Claim, Lesson> = {
    stream: COURSE,
    lines: mailer.lines,
    patienceMs: mailer.patienceMs,
    ...paced,
    isDue: async () => (await store.listDue(clock.now(), 1, request)).length > 0,
    claim,
    keep: (claims, leaseMs) => store.keep({ claims, call, now: clock.now(), leaseMs }),
    jobOf: (claim) => ({ ...jobOf(claim), areOthersTaken: areOthersTaken(claim) }),
    prepare,
    lastLook,
    settle: (attempted) => store.settle(attempted.map(settled)),
    isRefusedAlone: (claim, reason) => claim.problem?.reason === reason && areOthersTaken(claim),
    tell(attempted, answer) {
      if (answer.kind === 'sent') last.takenAt = attempted.now
      if (isAnswer(answer)) count(attempted, answer)
    },
  }
  return { source, results, tally }
}

const jobOf = ({ dueAt, failures, problem }: Claim) => ({
  dueAt,
  failures,
  unknownSince: problem?.kind === 'unknown' ? problem.since : undefined,
  wasTried: problem !== undefined,
})

/** The links of a lesson's mail. Its page is named by its place in the course as it is now. */
function linksOf(
  { siteUrl, catalog, keys }: CourseHost,
  { id, enrolment, course: name, day, language }: Claim,
  lesson = '',
) {
  const unsubscribing = unsubscribeBy(siteUrl, keys, { id, enrolment, language })
  const course = catalog.find(name)
  if (course?.pages === false) return unsubscribing
  const page = lessonUrl(siteUrl, (course?.lessons.indexOf(lesson) ?? -1) + 1 || day, {
    course: name === catalog.courses[0]?.id ? undefined : name,
    t: course?.pages === 'link' ? lessonSignature(keys[0].reveal(), name, lesson) : undefined,
    language,
  })
  return { ...unsubscribing, slots: { lessonUrl: page, ...unsubscribing.slots } }
}

/**
 * The mail of a lesson, with a key that all its attempts share: with the number of the lesson, or in the first course,
 * whose keys are older, with the name of its template.
 */
export function lessonOf({ lessons }: Plan, claim: Pick<Claim, 'course' | 'id' | 'enrolment' | 'day'>) {
  const { course, day } = claim
  const template = lessons[day - 1]
  if (template === undefined) throw new RangeError(`there is no lesson for day ${day}`)
  return { template, ...(course !== FIRST_COURSE && { label: `${course}-${day}` }), about: aboutOf(claim) }
}

/** Puts a lesson off until the definition has what is missing. The message itself is not at fault. */
const waitsFor = (reason: string): Delivery => ({
  kind: 'transient',
  scope: 'connection',
  reason,
  retryAfterMs: HOUR_MS,
})
