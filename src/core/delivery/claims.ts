import { PlatformError } from '../errors.ts'
import type { Host } from '../host.ts'
import { createLease, LEASE_MS, type Lease } from '../lease.ts'
import type { Ready, Source } from './source.ts'

const BATCH = 400
/** One in this many of each batch is reserved for retries, so that retries and new jobs cannot starve each other. */
const RETRY_SHARE = 20

export interface Taken<Claim> {
  readonly claim: Claim
  readonly lease: Lease<Claim>
  /** Its place within the pace. */
  readonly place?: number | undefined
}

/** Claims the jobs of a run ahead of the slots that send them, `room` of them at most. */
export function createClaims<Claim extends object, Prepared extends Ready>(
  { clock, timer, random }: Host,
  source: Source<Claim, Prepared>,
  { halted, ...run }: { halted: AbortSignal; room: number; freeSlots: () => number },
) {
  const { stream, lines, pace, patienceMs } = source
  const ready: Taken<Claim>[] = []
  /** Each holds on to hundreds of messages, so those that ended are dropped. */
  const leases = new Set<Lease<Claim>>()
  let { room } = run
  let batch = BATCH
  let isDry = false
  let isNudged = false
  let hasClaimed = false
  let fault: { readonly error: unknown } | undefined

  function hold(claims: number, since: number): Lease<Claim> {
    const keep = (claims: readonly Claim[]) => source.keep(claims, LEASE_MS)
    const onEnded = () => {
      lease.cancel()
      leases.delete(lease)
    }
    const lease = createLease<Claim>({ timer, since, claims, onEnded, patienceMs, keep })
    leases.add(lease)
    return lease
  }

  async function claim(): Promise<void> {
    let places: readonly number[] | undefined
    isNudged = false
    try {
      if (pace) {
        // A claim is made when its place has come and a slot is free for it, so that none grows old.
        const isDue = !hasClaimed || !source.isDue || (await source.isDue())
        places = isDue ? await pace.places(Math.min(room, run.freeSlots()), halted) : []
        hasClaimed = true
      }
      const most = places?.length ?? Math.min(room, stream.isBulk ? batch : run.freeSlots())
      batch = Math.min(BATCH, batch * 2)
      const now = clock.now()
      const since = timer.monotonic()
      const retries = Math.floor(most / RETRY_SHARE + random.fraction())
      const claims = most === 0 ? [] : await source.claim({ now, limit: most, retries, leaseMs: LEASE_MS })
      room -= claims.length
      // What became due while the store answered may not be in its answer.
      isDry = claims.length === 0 && !isNudged
      if (claims.length === 0) return
      const lease = hold(claims.length, since)
      for (const [at, claim] of claims.entries()) ready.push({ claim, lease, place: places?.[at] })
      places = places?.slice(claims.length)
      // The store answered so late that no attempt may begin under these leases. Claiming again would end the same way.
      if (!lease.mayBegin())
        throw new PlatformError('store_unavailable', 'The store took too long to claim what is due.')
    } catch (error) {
      if (!halted.aborted) fault = { error }
    } finally {
      if (places) pace?.giveBack(places)
    }
  }

  return {
    ready,
    leases,
    hold,
    /** Claims more if what is ready runs low; undefined: it does not, or nothing is left to claim. */
    refill(): Promise<void> | undefined {
      const isLow = stream.isBulk && !pace ? ready.length < lines : ready.length === 0 && run.freeSlots() > 0
      return isLow && room > 0 && !isDry && !fault ? claim() : undefined
    },
    /** A claim was not handed over. */
    giveBack: ({ place }: Taken<Claim>) => place !== undefined && pace?.giveBack([place]),
    /** A claim came to nothing, which makes room for another. */
    cameToNothing(isUntried: boolean) {
      room += 1
      isDry = false
      // The provider is slow: claim no more than it takes before the claims grow old.
      if (isUntried) batch = lines
    },
    /** The store had nothing more when it was asked last. */
    isDry: () => isDry,
    nudge() {
      isDry = false
      isNudged = true
    },
    /** Why claiming failed; claims before it are still sent. */
    fault: () => fault,
  }
}
