import type { Clock, Timer } from '../clock.ts'
import { PlatformError } from '../errors.ts'
import type { Random } from '../random.ts'
import { createLease, LEASE_MS, type Lease } from './lease.ts'
import type { Claim, CourseStore } from './store.ts'

const BATCH = 400
/** One in this many of each batch is reserved for retries, so that retries and new lessons cannot starve each other. */
const RETRY_SHARE = 20

export interface Taken {
  readonly claim: Claim
  readonly lease: Lease
}

/** Hands claims out one by one, and takes more from the store before the slots run dry. */
export interface Feed {
  /** Undefined when nothing more is due, or the limit is reached. */
  next(): Promise<Taken | undefined>
  /** A claim that came to nothing makes room for another; `stale`: it waited too long for its turn. */
  giveBack(back: { readonly stale: boolean }): void
  /** Takes no more; gives what was taken and not handed out. */
  stop(): Promise<readonly Taken[]>
  /** Ends the leases once all outcomes are recorded, so that no timer keeps the process waiting. */
  end(): void
}

export function createFeed(input: {
  readonly store: Pick<CourseStore, 'claimDue' | 'keep'>
  readonly clock: Clock
  readonly timer: Timer
  readonly random: Random
  readonly limit: number
  readonly run: string | undefined
  readonly notices: boolean | undefined
  readonly patienceMs: number
  /** How many claims to keep ready. */
  readonly ahead: number
}): Feed {
  const { store, clock, timer, random, notices, patienceMs, ahead } = input
  const call = input.run ?? Buffer.from(random.bytes(9)).toString('base64url')
  const ready: Taken[] = []
  /**
   * Leases still in use. Ended ones are dropped, because each holds on to everything that waits for its end:
   * hundreds of messages.
   */
  const leases = new Set<Lease>()
  let left = input.limit
  let size = BATCH
  let dry = false
  let fault: { readonly error: unknown } | undefined
  let taking: Promise<void> | undefined

  async function take(): Promise<void> {
    try {
      const limit = Math.min(size, left)
      size = Math.min(BATCH, size * 2)
      const now = clock.now()
      const since = timer.monotonic()
      const retries = Math.floor(limit / RETRY_SHARE + random.fraction())
      const claims = await store.claimDue({ now, limit, retries, leaseMs: LEASE_MS, call, notices })
      left -= claims.length
      dry = claims.length === 0
      if (dry) return
      const lease = createLease({
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
      for (const claim of claims) ready.push({ claim, lease })
      // Claiming took so long that no attempt may begin. Claiming again would take as long.
      if (!lease.mayBegin())
        throw new PlatformError('store_unavailable', 'The store took too long to claim what is due.')
    } catch (error) {
      // Kept for the slot that asks next, so that earlier claims are still sent and recorded.
      fault = { error }
    }
  }
  const takeMore = () => {
    taking ??= take().finally(() => {
      taking = undefined
    })
    return taking
  }
  const mayTake = () => left > 0 && !dry && fault === undefined

  return {
    async next() {
      for (;;) {
        const taken = ready.shift()
        if (taken) {
          if (ready.length < ahead && mayTake()) void takeMore()
          return taken
        }
        if (taking) await taking
        else if (mayTake()) await takeMore()
        else if (fault) throw fault.error
        else return undefined
      }
    },
    giveBack({ stale }) {
      left += 1
      dry = false
      // The provider is slow: claim no more than it takes before the claims grow old.
      if (stale) size = ahead
    },
    async stop() {
      left = Number.NEGATIVE_INFINITY
      await taking
      return ready.splice(0)
    },
    end() {
      for (const lease of leases) lease.cancel()
    },
  }
}
