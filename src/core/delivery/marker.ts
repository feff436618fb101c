import { PlatformError } from '../errors.ts'
import type { Timer } from '../host.ts'

/** How long a finished send waits to share a commit: longer where commits take longer, twice that where no line waits. */
const SHORTEST_MS = 3
const LONGEST_MS = 12
const COMMITS_LONG = 6
/** How long to wait before writing again to a store that could not be written. */
const AGAIN_MS = 250

interface Mark<Settlement> {
  readonly settlement: Settlement
  readonly until: number
  readonly resolve: () => void
  readonly reject: (error: unknown) => void
}

/**
 * Records outcomes in groups: those that finish within a few milliseconds share one durable commit. Committed at once
 * are `full` outcomes, and a group that nothing can join, because every message in flight waits for an earlier outcome
 * to be durable. While the store cannot be written (a lock, a failover), it is tried again until `until` (monotonic).
 */
export function createMarker<Job, Settlement extends { readonly claim: Job }>(
  source: { readonly settle: (settlements: readonly Settlement[]) => Promise<void> },
  timer: Timer,
  full = Number.POSITIVE_INFINITY,
) {
  let group: Mark<Settlement>[] = []
  /** The group that a timer is set for. */
  let waiting: Mark<Settlement>[] | undefined
  let window = SHORTEST_MS
  let out = 0
  let held = 0
  let hasHeld = false
  let isFailing = false
  const inFlight = new Map<Job, PromiseWithResolvers<void>>()

  const commitSoon = () => {
    if (waiting === group) return
    const mine = group
    waiting = mine
    // The group may have been committed already.
    const waitMs = isFailing ? AGAIN_MS : hasHeld ? window : 2 * window
    void timer.sleep(waitMs).then(() => (mine === group ? commit() : undefined))
  }
  const commitIfReady = () => {
    const allAreHeld = held > 0 && held >= out && group.length > 0
    if ((allAreHeld || group.length >= full) && !isFailing) void commit()
  }
  async function commit(): Promise<void> {
    const marked = group
    group = []
    const began = timer.monotonic()
    try {
      await source.settle(marked.map(({ settlement }) => settlement))
      window = Math.min(LONGEST_MS, Math.max(SHORTEST_MS, COMMITS_LONG * (timer.monotonic() - began)))
      isFailing = false
      for (const { resolve } of marked) resolve()
    } catch (error) {
      isFailing = true
      const passing = error instanceof PlatformError && error.code === 'store_unavailable' && !error.final
      const latest = timer.monotonic() + AGAIN_MS
      for (const mark of marked) {
        if (passing && latest < mark.until) group.push(mark)
        else mark.reject(error)
      }
      if (group.length > 0) commitSoon()
    }
  }
  return {
    /** Resolves when the outcome is durable, so a slot that awaits it takes no other work before. */
    mark(settlement: Settlement, until: number): Promise<void> {
      const message = inFlight.get(settlement.claim)
      inFlight.delete(settlement.claim)
      const { promise, resolve, reject } = message ?? Promise.withResolvers<void>()
      group.push({ settlement, until, resolve, reject })
      commitSoon()
      commitIfReady()
      return promise
    },
    begin(claim: Job) {
      const durable = Promise.withResolvers<void>()
      inFlight.set(claim, durable)
      out += 1
      return {
        /** For the transport, which may hold its next message until this one is durable. */
        async recorded(): Promise<void> {
          hasHeld = true
          held += 1
          commitIfReady()
          await durable.promise.finally(() => {
            held -= 1
          })
        },
        /** Call it when what became of the message is known. */
        answered: () => {
          out -= 1
        },
      }
    },
  }
}
