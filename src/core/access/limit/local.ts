import type { RateLimitDecision, RateLimiter } from './limiter.ts'
import { interval, type Micros, takeOne } from './limiter.ts'
import type { Policy } from './policy.ts'

/** About 10 MB at the most; a client that is pushed out starts with a full quota. */
const MOST_CLIENTS = 50_000
/** Each new client removes this many of the oldest that have expired: no timer, no sweep, no pause. */
const CLEARED_AT_ONCE = 2

export interface LocalLimiter extends RateLimiter {
  take(policy: Policy, client: string): RateLimitDecision
  /** Undoes one `take`. */
  giveBack(policy: Policy, client: string): void
  /** The decision that `take` would give, without counting. */
  look(policy: Policy, client: string): RateLimitDecision
  /** How many clients are remembered. */
  size(): number
}

/** Counts in this process only. */
export function localLimiter({
  monotonic,
  mostClients = MOST_CLIENTS,
}: {
  readonly monotonic: () => number
  readonly mostClients?: number
}): LocalLimiter {
  // In the order of last use: the first is the one to forget.
  const arrivals = new Map<string, Micros>()
  const now = () => Math.round(monotonic() * 1000)
  const clear = (time: Micros) => {
    let left = CLEARED_AT_ONCE
    for (const [key, arrival] of arrivals) {
      if (arrivals.size < mostClients && (left <= 0 || arrival > time)) return
      arrivals.delete(key)
      left -= 1
    }
  }
  const look = (policy: Policy, client: string) =>
    takeOne(arrivals.get(`${policy.name} ${client}`), now(), policy)
  return {
    take(policy, client) {
      const key = `${policy.name} ${client}`
      const time = now()
      const known = arrivals.get(key)
      const { arrival, ...taken } = takeOne(known, time, policy)
      if (taken.allowed) {
        if (known === undefined) clear(time)
        else arrivals.delete(key)
        arrivals.set(key, arrival)
      }
      return { ...taken, policy }
    },
    giveBack(policy, client) {
      const key = `${policy.name} ${client}`
      const known = arrivals.get(key)
      if (known !== undefined) arrivals.set(key, known - interval(policy))
    },
    look(policy, client) {
      const { arrival: _, ...taken } = look(policy, client)
      return { ...taken, policy }
    },
    counting: () => 'local',
    size: () => arrivals.size,
    close: async () => {},
  }
}
