import type { Clock } from '../clock.ts'
import { PlatformError } from '../errors.ts'
import type { Log } from '../log.ts'
import { TEMPLATES, type TemplateName } from '../mail/catalog.ts'
import type { Mail, Mailer } from '../mail/mailer.ts'
import type { Random } from '../random.ts'
import type { Course, DispatchResult } from './course.ts'
import { createMarker } from './marker.ts'
import { release, settle } from './schedule.ts'
import type { Claim, CourseStore } from './store.ts'

/** A crashed process's lessons are taken over after this; longer than a send may take, shorter than anyone would notice. */
const LEASE_MS = 90_000
/** No attempt is begun when so little of its lease is left that it could outlive it. */
const LEAST_LEASE_MS = 60_000
const BATCH = 200
const CONCURRENCY = 50

export interface DispatcherOptions {
  readonly store: CourseStore
  readonly persistent: boolean
  readonly mailer: Mailer
  readonly clock: Clock
  readonly random: Random
  readonly log: Log
  /** What a lesson's mail needs besides its template. */
  readonly mailFor: (claim: Claim) => { readonly slots: Mail['slots']; readonly unsubscribeUrl: string }
}

/**
 * The dispatcher (CONTRACT §5): claim (a lease with a fencing number, in a transaction that is closed before any
 * network I/O) → render → send → record. The hourly schedule, the endpoint and the CLI all enter here.
 */
export function createDispatcher({
  store,
  persistent,
  mailer,
  clock,
  random,
  log,
  mailFor,
}: DispatcherOptions): Course['dispatch'] {
  return async ({ limit, signal, onProgress }) => {
    if (!persistent)
      throw new PlatformError('store_not_persistent', 'Dispatch needs a persistent store; set STORE_URL.')
    if (!mailer.configured) {
      return {
        ...NOTHING,
        limit,
        remaining: await store.countDue(clock.now()),
        reason: mailer.reason ?? 'mail is not configured',
      }
    }
    const results: DispatchResult['results'][number][] = []
    const tally = { sent: 0, failed: 0, unknown: 0 }
    const taken: string[] = []
    const mark = createMarker(store)
    // A fault of the connection is nobody's message: the rest of the call would only meet it again.
    let pause: string | undefined

    async function deliver(claim: Claim, claimedAt: number): Promise<void> {
      const now = clock.now()
      if (pause !== undefined || signal?.aborted === true || now - claimedAt > LEASE_MS - LEAST_LEASE_MS) {
        await mark(release(claim, now))
        return
      }
      // An unsubscribe that was acknowledged wins over a claim that has not handed its message over.
      if (!(await store.stillHolds(claim))) return
      const { slots, unsubscribeUrl } = mailFor(claim)
      const outcome = await mailer.send({
        template: templateOf(claim.day),
        slots,
        to: { name: undefined, address: claim.address },
        about: `course.${claim.subscription}.${claim.enrolment}.${claim.day}`,
        date: new Date(claim.firstAttemptAt),
        unsubscribeUrl,
      })
      if (outcome.kind === 'not_configured') return
      if (outcome.kind === 'transient' && outcome.scope === 'connection') pause = outcome.reason
      await mark(settle(claim, outcome, clock.now(), random.fraction()))
      const kind = outcome.kind === 'sent' || outcome.kind === 'unknown' ? outcome.kind : 'failed'
      tally[kind] += 1
      results.push({
        subscription: claim.subscription,
        day: claim.day,
        sent: kind === 'sent',
        ...(outcome.kind === 'sent' ? {} : { reason: outcome.reason }),
      })
      onProgress?.({ subscription: claim.subscription, day: claim.day, outcome: kind })
      if (kind !== 'sent')
        log.warn('course_day_not_sent', 'a lesson was not sent', {
          subscription: claim.subscription,
          day: claim.day,
          outcome: kind,
          reason: outcome.kind === 'sent' ? undefined : outcome.reason,
        })
    }

    while (results.length < limit && pause === undefined && signal?.aborted !== true) {
      const claimedAt = clock.now()
      const claims = await store.claimDue({
        now: claimedAt,
        limit: Math.min(BATCH, limit - results.length),
        leaseMs: LEASE_MS,
        except: taken,
      })
      if (claims.length === 0) break
      taken.push(...claims.map((claim) => claim.subscription))
      await inParallel(claims, CONCURRENCY, (claim) => deliver(claim, claimedAt))
    }
    const reason = pause === undefined ? {} : { reason: pause }
    const result = {
      processed: results.length,
      ...tally,
      remaining: await store.countDue(clock.now()),
      limit,
      ...reason,
      results,
    }
    log.info('dispatched', 'a dispatch call ended', {
      processed: result.processed,
      sent: result.sent,
      failed: result.failed,
      unknown: result.unknown,
      remaining: result.remaining,
    })
    return result
  }
}

const NOTHING = { processed: 0, sent: 0, failed: 0, unknown: 0, results: [] } as const

function templateOf(day: number): TemplateName {
  const name = TEMPLATES.find((template) => template === `course-day-${day}`)
  if (name === undefined) throw new RangeError(`there is no lesson for day ${day}`)
  return name
}

async function inParallel<T>(
  items: readonly T[],
  width: number,
  work: (item: T) => Promise<void>,
): Promise<void> {
  const queue = items.values()
  const slots = await Promise.allSettled(
    Array.from({ length: Math.min(width, items.length) }, async () => {
      for (const item of queue) await work(item)
    }),
  )
  // Every slot has ended before the first fault is told: nothing goes on in the background.
  const fault = slots.find((slot) => slot.status === 'rejected')
  if (fault) throw fault.reason
}
