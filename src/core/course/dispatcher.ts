import type { Clock, Timer } from '../clock.ts'
import { PlatformError } from '../errors.ts'
import type { Log } from '../log.ts'
import { TEMPLATES, type TemplateName } from '../mail/catalog.ts'
import type { Mail, Mailer, SendOutcome } from '../mail/mailer.ts'
import type { Random } from '../random.ts'
import type { Course, DispatchResult } from './course.ts'
import { createFeed, type Taken } from './feed.ts'
import { createMarker } from './marker.ts'
import { KEY_LIFE_MS, release, settle } from './schedule.ts'
import type { Claim, CourseStore } from './store.ts'

/** A crashed process's lessons are taken over after this; shorter than anyone would notice. */
const LEASE_MS = 90_000
/** An attempt that has not ended by then is given up, its outcome unknown. */
const SEND_MS = 55_000
/** No attempt is begun that could outlive its lease: the rest is for the mark. */
const LATEST_START_MS = LEASE_MS - SEND_MS - 10_000
const CONCURRENCY = 50

export interface DispatcherOptions {
  readonly store: CourseStore
  readonly persistent: boolean
  readonly mailer: Mailer
  readonly clock: Clock
  readonly timer: Timer
  readonly random: Random
  readonly log: Log
  /** What a lesson's mail needs besides its template. */
  readonly mailFor: (claim: Claim) => { readonly slots: Mail['slots']; readonly unsubscribeUrl: string }
}

/**
 * The dispatcher (CONTRACT §5): claim (a lease with a fencing number, in a transaction that is closed before any
 * network I/O) → render → send → record. The hourly schedule, the endpoint and the CLI all enter here.
 */
export function createDispatcher(options: DispatcherOptions): Course['dispatch'] {
  const { store, persistent, mailer, clock, timer, random, log, mailFor } = options
  return async ({ limit, signal, onProgress }) => {
    if (!persistent)
      throw new PlatformError('store_not_persistent', 'Dispatch needs a persistent store; set STORE_URL.')
    const remaining = async () => (await store.backlog(clock.now())).due
    if (!mailer.configured) {
      const reason = mailer.reason ?? 'mail is not configured'
      return { ...NOTHING, limit, remaining: await remaining(), reason }
    }
    const results: DispatchResult['results'][number][] = []
    const tally = { sent: 0, failed: 0, unknown: 0 }
    const feed = createFeed({ store, clock, random, limit, leaseMs: LEASE_MS, ahead: CONCURRENCY })
    const mark = createMarker(store, timer)
    // A fault of the connection is nobody's message: the rest of the call would only meet it again.
    let pause: string | undefined
    let fault: { readonly error: unknown } | undefined
    const stopped = () => pause !== undefined || fault !== undefined || signal?.aborted === true

    async function deliver({ claim, claimedAt }: Taken): Promise<void> {
      const now = clock.now()
      if (stopped() || now < claimedAt || now > claimedAt + LATEST_START_MS) {
        await mark(release(claim, now))
        return
      }
      // An unsubscribe that was acknowledged wins over a claim that has not handed its message over.
      if (!(await store.stillHolds(claim))) return feed.giveBack()
      const outcome = isForgotten(claim, now) ? stillUnknown(claim) : await attempt(claim)
      if (outcome.kind === 'not_configured') return
      if (outcome.kind === 'transient' && outcome.scope === 'connection') pause = outcome.reason
      await mark(settle(claim, outcome, clock.now(), random.fraction()))
      tell(claim, outcome)
    }

    /** The provider no longer knows the key: a retry could be a second delivery, so an operator decides. */
    const isForgotten = ({ problem }: Claim, now: number) =>
      mailer.transport === 'api' && problem?.kind === 'unknown' && now - problem.since >= KEY_LIFE_MS
    const stillUnknown = ({ problem }: Claim): SendOutcome => ({
      kind: 'unknown',
      reason: problem?.reason ?? 'the outcome is unknown',
    })

    function attempt(claim: Claim): Promise<SendOutcome> {
      const { slots, unsubscribeUrl } = mailFor(claim)
      const mail = {
        template: templateOf(claim.day),
        slots,
        to: { name: undefined, address: claim.address },
        about: `course.${claim.subscription}.${claim.enrolment}.${claim.day}`,
        date: new Date(claim.firstAttemptAt),
        unsubscribeUrl,
      }
      return inTime(timer, (deadline) => mailer.send(mail, deadline))
    }

    function tell({ subscription, day }: Claim, outcome: Exclude<SendOutcome, { kind: 'not_configured' }>) {
      const kind = outcome.kind === 'sent' || outcome.kind === 'unknown' ? outcome.kind : 'failed'
      const reason = outcome.kind === 'sent' ? {} : { reason: outcome.reason }
      tally[kind] += 1
      results.push({ subscription, day, sent: kind === 'sent', ...reason })
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
        await deliver(taken)
      }
    }

    // Every slot has ended before the first fault is told: nothing goes on in the background.
    await Promise.all(
      Array.from({ length: Math.min(CONCURRENCY, limit) }, () =>
        slot().catch((error: unknown) => {
          fault ??= { error }
        }),
      ),
    )
    const untried = await feed.stop()
    if (fault) throw fault.error
    await Promise.all(untried.map(({ claim }) => mark(release(claim, clock.now()))))
    const reason = pause === undefined ? {} : { reason: pause }
    const counted = { processed: results.length, ...tally, remaining: await remaining() }
    log.info('dispatched', 'a dispatch call ended', counted)
    return { ...counted, limit, ...reason, results }
  }
}

const NOTHING = { processed: 0, sent: 0, failed: 0, unknown: 0, results: [] } as const

/** Ends an attempt before its lease does: what a transport has not answered by then may or may not have been delivered. */
async function inTime(
  timer: Timer,
  send: (deadline: AbortSignal) => Promise<SendOutcome>,
): Promise<SendOutcome> {
  const answered = new AbortController()
  const expired = new AbortController()
  const late = timer.sleep(SEND_MS, answered.signal).then(
    (): SendOutcome => {
      expired.abort(new Error('the time for one message is over'))
      return { kind: 'unknown', reason: 'the provider did not answer in time' }
    },
    () => NEVER,
  )
  try {
    return await Promise.race([send(expired.signal), late])
  } finally {
    answered.abort(ANSWERED)
  }
}

/** Given, because the default reason is an exception with a stack, made anew for every message. */
const ANSWERED = 'answered'

const NEVER = new Promise<never>(() => {})

function templateOf(day: number): TemplateName {
  const name = TEMPLATES.find((template) => template === `course-day-${day}`)
  if (name === undefined) throw new RangeError(`there is no lesson for day ${day}`)
  return name
}
