import type { Clock, Timer } from '../clock.ts'
import { createLease, LEASE_MS, type Lease } from '../delivery/lease.ts'
import { PlatformError } from '../errors.ts'
import type { Pacer } from '../mail/feedback/pacer.ts'
import type { Random } from '../random.ts'
import type { Claim, CourseStore } from './store.ts'

const BATCH = 400
/** One in this many of each batch is reserved for retries, so that retries and new lessons cannot starve each other. */
const RETRY_SHARE = 20

export interface Taken {
  readonly claim: Claim
  readonly lease: Lease<Claim>
  /** Its place within the pace. */
  readonly place: number | undefined
}

/** Hands claims out one by one, and takes more from the store before the slots run dry. */
export interface Feed {
  /** Undefined when nothing more is due, or the limit is reached. */
  next(): Promise<Taken | undefined>
  /** A claim that came to nothing makes room for another; `stale`: it waited too long for its turn. */
  giveBack(back: { readonly stale: boolean }): void
  /** A claim whose message was not handed over leaves its place within the pace to another. */
  unused(taken: Taken): void
  /** Takes no more; gives what was taken and not handed out. */
  stop(): Promise<readonly Taken[]>
  /** Ends the leases once all outcomes are recorded, so that no timer keeps the process waiting. */
  end(): void
}

export function createFeed(input: {
  readonly store: Pick<CourseStore, 'claimDue' | 'keep' | 'listDue'>
  readonly clock: Clock
  readonly timer: Timer
  readonly random: Random
  readonly limit: number
  readonly run: string | undefined
  readonly notices: boolean | undefined
  readonly gentle: boolean | undefined
  readonly patienceMs: number
  /** How many claims to keep ready. */
  readonly ahead: number
  /** With a pace, a lesson is claimed when its place has come and a slot is free for it, so that no claim grows old. */
  readonly pace: Pick<Pacer, 'places' | 'giveBack'> | undefined
  /** Ends the wait for a place. */
  readonly signal: AbortSignal
}): Feed {
  const { store, clock, timer, random, notices, gentle, patienceMs, ahead, pace, signal } = input
  const call = input.run ?? Buffer.from(random.bytes(9)).toString('base64url')
  const ready: Taken[] = []
  /**
   * Leases still in use. Ended ones are dropped, because each holds on to everything that waits for its end:
   * hundreds of messages.
   */
  const leases = new Set<Lease<Claim>>()
  let left = input.limit
  let size = BATCH
  let dry = false
  /** Slots that wait for a claim. */
  let asking = 0
  let hasClaimed = false
  let fault: { readonly error: unknown } | undefined
  let taking: Promise<void> | undefined

  /** The places of the next claims; none if nothing is left to wait for. */
  async function placesOf(paced: NonNullable<typeof pace>): Promise<readonly number[]> {
    if (hasClaimed && (await store.listDue(clock.now(), 1)).length === 0) return []
    hasClaimed = true
    return paced.places(Math.min(left, asking), signal).catch((error: unknown) => {
      if (signal.aborted) return []
      throw error
    })
  }

  async function take(): Promise<void> {
    let places: readonly number[] | undefined
    try {
      places = pace && (await placesOf(pace))
      dry = places?.length === 0
      if (dry) return
      const limit = places?.length ?? Math.min(size, left)
      size = Math.min(BATCH, size * 2)
      const now = clock.now()
      const since = timer.monotonic()
      const retries = Math.floor(limit / RETRY_SHARE + random.fraction())
      const claims = await store.claimDue({ now, limit, retries, leaseMs: LEASE_MS, call, notices, gentle })
      left -= claims.length
      dry = claims.length === 0
      if (dry) return
      const lease = createLease<Claim>({
        timer,
        since,
        claims: claims.length,
        onEnded: () => {
          lease.cancel()
          leases.delete(lease)
        },
        patienceMs,
        keep: (out) => store.keep({ claims: out, call, now: clock.now(), leaseMs: LEASE_MS }),
      })
      leases.add(lease)
      for (const [at, claim] of claims.entries()) ready.push({ claim, lease, place: places?.[at] })
      places = places?.slice(claims.length)
      // Claiming took so long that no attempt may begin. Claiming again would take as long.
      if (!lease.mayBegin())
        throw new PlatformError('store_unavailable', 'The store took too long to claim what is due.')
    } catch (error) {
      // Kept for the slot that asks next, so that earlier claims are still sent and recorded.
      fault = { error }
    } finally {
      if (places) pace?.giveBack(places)
    }
  }
  const takeMore = () => {
    taking ??= take().finally(() => {
      taking = undefined
    })
    return taking
  }
  const unused = ({ place }: Taken) => {
    if (place !== undefined) pace?.giveBack([place])
  }
  const mayTake = () => left > 0 && !dry && fault === undefined

  return {
    async next() {
      asking += 1
      try {
        for (;;) {
          const taken = ready.shift()
          if (taken) {
            if (pace === undefined && ready.length < ahead && mayTake()) void takeMore()
            return taken
          }
          if (taking) await taking
          else if (mayTake()) await takeMore()
          else if (fault) throw fault.error
          else return undefined
        }
      } finally {
        asking -= 1
      }
    },
    giveBack({ stale }) {
      left += 1
      dry = false
      // The provider is slow: claim no more than it takes before the claims grow old.
      if (stale) size = ahead
    },
    unused,
    async stop() {
      left = Number.NEGATIVE_INFINITY
      await taking
      const rest = ready.splice(0)
      for (const one of rest) unused(one)
      return rest
    },
    end() {
      for (const lease of leases) lease.cancel()
    },
  }
}
