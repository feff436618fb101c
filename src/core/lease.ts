import { setMaxListeners } from 'node:events'
import { succeeds } from './calls.ts'
import type { Timer } from './host.ts'

/** How long claims are held; a crashed process's lessons are taken over after this. */
export const LEASE_MS = 90_000
/** How much of the lease an attempt may take; the rest is for recording its outcome. */
const ATTEMPT_MS = 80_000
/** An attempt begins within this time after its claim was requested, or not at all. */
const BEGIN_MS = 25_000
/** A lease is renewed when it has this much left for attempts. */
const RENEW_MS = 30_000
const RENEW_AGAIN_MS = 5_000
export const LATE = { kind: 'unknown', reason: 'the provider did not answer in time' } as const

export type Lease<T> = ReturnType<typeof createLease<T>>

/**
 * A lease on claims that were taken together, with one timer for all. It is measured by the monotonic clock from the
 * moment the claims were requested: neither a late answer nor a step of the wall clock lets an attempt outlive it.
 */
export function createLease<T>(input: {
  readonly timer: Timer
  /** When the claims were requested, on the monotonic clock. */
  readonly since: number
  readonly claims: number
  /** Called when all of them have ended. */
  readonly onEnded: () => void
  readonly patienceMs: number
  readonly keep: (claims: readonly T[]) => Promise<void>
}) {
  const { timer, since, patienceMs, keep } = input
  const expired = new AbortController()
  const cancelled = new AbortController()
  // Every message of a batch listens, and hundreds of listeners are no leak here.
  setMaxListeners(0, expired.signal)
  const out = new Set<T>()
  const last = since + BEGIN_MS + patienceMs
  let until = since + ATTEMPT_MS
  let unended = input.claims

  async function hold(): Promise<void> {
    for (;;) {
      const now = timer.monotonic()
      const end = Math.min(until, last)
      if (now >= end) return
      const renewAt = until - RENEW_MS
      if (last <= until || now < renewAt) {
        await timer.sleep((last <= until ? end : renewAt) - now, cancelled.signal)
        continue
      }
      if (out.size > 0 && (await succeeds(keep([...out])))) until = now + ATTEMPT_MS
      else await timer.sleep(Math.min(RENEW_AGAIN_MS, end - now), cancelled.signal)
    }
  }
  const passed = Promise.withResolvers<void>()
  hold().then(
    () => {
      expired.abort(new Error('the time for this message is over'))
      passed.resolve()
    },
    // Cancelled: the promise stays pending.
    () => {},
  )
  return {
    /** Aborted when the claims can be held no longer. Attempts without an answer are then given up. */
    signal: expired.signal as AbortSignal, // Its inferred type has no name for declarations.
    expired: passed.promise,
    mayBegin: () => timer.monotonic() <= since + BEGIN_MS,
    /** Call it when a message is handed over: its claim is then renewed, for as long as the transport may take. */
    begin: (claim: T) => void out.add(claim),
    /** Call it when the outcome of a claim is durable, or the claim is no longer ours. */
    end(claim: T) {
      out.delete(claim)
      unended -= 1
      if (unended === 0) input.onEnded()
    },
    /** The store holds the claims until this moment of the monotonic clock. */
    heldUntil: () => until - ATTEMPT_MS + LEASE_MS,
    /** Stops renewing, so that no timer keeps the process waiting. */
    cancel: () => cancelled.abort('all are answered'),
  }
}
