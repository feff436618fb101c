import type { Policy } from './policy.ts'

/** Whole microseconds, so that the script in the shared store computes the very same numbers. */
export type Micros = number

export interface GcraResult {
  readonly allowed: boolean
  /** Requests that may follow at once. */
  readonly remaining: number
  /** Until the whole quota is there again. */
  readonly reset: Micros
  /** Until the next request is allowed; 0 when this one was. */
  readonly retry: Micros
}

export function interval({ quota, windowSeconds }: Policy): Micros {
  return Math.ceil((windowSeconds * 1_000_000) / quota)
}

/**
 * The generic cell rate algorithm (ITU-T I.371): one number a client, the theoretical arrival time. A client may
 * spend its quota at once and gets it back evenly, so that no edge of a window lets twice the quota through.
 */
export function takeOne(
  arrival: Micros | undefined,
  now: Micros,
  policy: Policy,
): GcraResult & { readonly arrival: Micros } {
  const each = interval(policy)
  const burst = each * policy.quota
  const from = arrival === undefined || arrival < now ? now : arrival
  const next = from + each
  const wait = next - burst - now
  return wait > 0
    ? { allowed: false, remaining: 0, reset: from - now, retry: wait, arrival: from }
    : {
        allowed: true,
        remaining: Math.floor((burst - (next - now)) / each),
        reset: next - now,
        retry: 0,
        arrival: next,
      }
}

/**
 * `takeOne` in Lua, for the shared store: atomic there, on the store's own clock, so that machines whose clocks
 * differ agree. KEYS: client. ARGV: interval, interval × quota. Gives allowed, remaining, reset, retry.
 */
export const SCRIPT = `local t = redis.call('TIME')
local now = t[1] * 1000000 + t[2]
local each = tonumber(ARGV[1])
local burst = tonumber(ARGV[2])
local from = tonumber(redis.call('GET', KEYS[1]) or '0')
if from < now then from = now end
local after = from + each
local wait = after - burst - now
if wait > 0 then return {0, 0, from - now, wait} end
redis.call('SET', KEYS[1], string.format('%.0f', after), 'PX', math.ceil((after - now) / 1000))
return {1, math.floor((burst - (after - now)) / each), after - now, 0}`

/** A decision, and the policy it was made under (half the requested one while a shared store is down). */
export interface RateLimitDecision extends GcraResult {
  readonly policy: Policy
}

/** Where counts are kept now: in this process, in the shared store, or in this process because that one is down. */
export type Counting = 'local' | 'shared' | 'fallback'

/** Counts requests of clients; one interface over memory and the shared store. */
export interface RateLimiter {
  take(policy: Policy, client: string): RateLimitDecision | Promise<RateLimitDecision>
  counting(): Counting
  close(): Promise<void>
}

/** RateLimit and RateLimit-Policy (draft-ietf-httpapi-ratelimit-headers-10) and, when refused, Retry-After (RFC 9110). */
export function rateLimitFields(input: RateLimitDecision): Record<string, string> {
  const { policy, allowed, remaining, reset, retry } = input
  const fields: Record<string, string> = {
    RateLimit: `"${policy.name}";r=${remaining};t=${seconds(reset)}`,
    'RateLimit-Policy': `"${policy.name}";q=${policy.quota};w=${policy.windowSeconds}`,
  }
  if (!allowed) fields['Retry-After'] = String(seconds(retry))
  return fields
}

function seconds(micros: number): number {
  return Math.ceil(micros / 1_000_000)
}

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
  size(): number
}

/** Counts in this process only. */
export function localLimiter(input: {
  readonly monotonic: () => number
  readonly mostClients?: number
}): LocalLimiter {
  const { monotonic, mostClients = MOST_CLIENTS } = input
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

/** A request with a secret, until it is known whether the secret is right. */
export interface Attempt {
  readonly allowed: true
  /** Call it once the answer is known. Only the first call counts. */
  settle(wrong: boolean): void
}

/** Keeps wrong secrets within a quota, including those still being checked (docs/limits.md). */
export interface Guesses {
  /** The decision at this moment, without waiting. */
  look(client: string): RateLimitDecision
  /**
   * Lets only as many requests be checked at once as may still be wrong. The others wait until one of these
   * is known to be right or wrong. Otherwise a burst of guesses would all be checked before the first one
   * counts.
   */
  admit(client: string): Promise<Attempt | RateLimitDecision>
  size(): number
}

export function createGuesses(local: LocalLimiter, policy: Policy): Guesses {
  const underway = new Map<string, { count: number; waiting: (() => void)[] }>()

  function begin(client: string): Attempt {
    const mine = underway.get(client) ?? { count: 0, waiting: [] }
    underway.set(client, mine)
    mine.count += 1
    let settled = false
    return {
      allowed: true,
      settle(wrong) {
        if (settled) return
        settled = true
        if (wrong) local.take(policy, client)
        mine.count -= 1
        if (mine.count === 0) underway.delete(client)
        for (const wake of mine.waiting.splice(0)) wake()
      },
    }
  }

  const look = (client: string) => local.look(policy, client)
  return {
    look,
    size: () => underway.size,
    async admit(client) {
      for (;;) {
        const verdict = look(client)
        if (!verdict.allowed) return verdict
        const mine = underway.get(client)
        // One more than `remaining`, which does not include this attempt.
        if (mine === undefined || mine.count <= verdict.remaining) return begin(client)
        await new Promise<void>((resolve) => mine.waiting.push(resolve))
      }
    },
  }
}
