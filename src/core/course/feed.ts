import type { Clock, Timer } from '../clock.ts'
import type { Random } from '../random.ts'
import { createDeadline, type Deadline } from './deadline.ts'
import type { Claim, CourseStore } from './store.ts'

const BATCH = 400
/** Of each batch, one in so many is kept for lessons that failed before: they neither starve nor are starved. */
const RETRY_SHARE = 20

export interface Taken {
  readonly claim: Claim
  readonly claimedAt: number
  /** An attempt that has not ended by then is given up. */
  readonly deadline: Deadline
}

/** Hands claims out one by one, and takes more from the store before the slots run dry. */
export interface Feed {
  /** Undefined when nothing more is due, or the limit is reached. */
  next(): Promise<Taken | undefined>
  /** A claim that came to nothing makes room for another; `stale`: it waited too long for its turn. */
  giveBack(back: { readonly stale: boolean }): void
  /** Takes no more; gives what was taken and not handed out. */
  stop(): Promise<readonly Taken[]>
}

export function createFeed(input: {
  readonly store: Pick<CourseStore, 'claimDue'>
  readonly clock: Clock
  readonly timer: Timer
  readonly random: Random
  readonly limit: number
  readonly run: string | undefined
  readonly leaseMs: number
  /** Of the lease, what an attempt may take; the rest is for its mark. */
  readonly attemptMs: number
  /** So many claims are kept ready. */
  readonly ahead: number
}): Feed {
  const { store, clock, timer, random, leaseMs, attemptMs, ahead } = input
  const call = input.run ?? Buffer.from(random.bytes(9)).toString('base64url')
  const ready: Taken[] = []
  const deadlines: Deadline[] = []
  let left = input.limit
  let size = BATCH
  let dry = false
  let fault: { readonly error: unknown } | undefined
  let taking: Promise<void> | undefined

  async function take(): Promise<void> {
    try {
      const limit = Math.min(size, left)
      size = Math.min(BATCH, size * 2)
      const claimedAt = clock.now()
      const retries = Math.floor(limit / RETRY_SHARE + random.fraction())
      const claims = await store.claimDue({ now: claimedAt, limit, retries, leaseMs, call })
      left -= claims.length
      dry = claims.length === 0
      if (dry) return
      const deadline = createDeadline(timer, attemptMs)
      deadlines.push(deadline)
      for (const claim of claims) ready.push({ claim, claimedAt, deadline })
    } catch (error) {
      // Kept for the slot that asks next: what was claimed before is still sent and recorded.
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
      for (const deadline of deadlines) deadline.cancel()
      return ready.splice(0)
    },
  }
}
