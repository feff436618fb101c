import type { Clock } from '../../host.ts'

/** A burst of `quota` requests of one client, which fills again over `windowSeconds`. */
export interface Policy {
  /** As the RateLimit fields name it: letters and hyphens. */
  readonly name: string
  readonly quota: number
  readonly windowSeconds: number
}

/** One client may request a tenth of a day's confirmations, or ten of a small budget. */
const CLIENTS_TO_EXHAUST = 10
const LEAST_SHARE = 10
/** For routes that mail providers call for all subscribers from a few addresses: reports, one-click unsubscriptions. */
const PROVIDER_PER_MINUTE = 6000

/** RATE_LIMIT_PER_MINUTE bounds all but `unsubscribe`, `feedback` and `confirmations`; one client gets a share of EMAIL_CONFIRMATIONS_PER_DAY. */
export function policiesOf(perMinute = 300, confirmationsPerDay = 10_000) {
  const provider = (name: string): Policy => ({ name, quota: PROVIDER_PER_MINUTE, windowSeconds: 60 })
  const policy = (name: string, quota: number) => ({ ...provider(name), quota: Math.min(quota, perMinute) })
  const share = Math.max(LEAST_SHARE, Math.ceil(confirmationsPerDay / CLIENTS_TO_EXHAUST))
  return {
    default: policy('default', perMinute),
    subscribe: policy('subscribe', 30),
    confirmations: { name: 'confirmations', quota: share, windowSeconds: 24 * 3600 },
    unsubscribe: provider('unsubscribe'),
    feedback: provider('feedback'),
    /** Wrong secrets and tokens, always counted in this process. */
    authFailure: policy('auth-failure', 20),
    /** The same, for all clients together behind a proxy that TRUST_PROXY does not name. */
    authFailureOfProxy: policy('auth-failure-proxy', 200),
  } as const satisfies Record<string, Policy>
}

export type Policies = ReturnType<typeof policiesOf>
export type PolicyName = keyof Policies

/** Whole microseconds, so that the script in the shared store computes the very same numbers. */
export type Micros = number

/** A decision, and the policy it was made under (half the requested one while a shared store is down). */
export interface RateLimitDecision {
  readonly policy: Policy
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

/** GCRA (ITU-T I.371): a quota is spent at once and comes back evenly, so that no edge of a window doubles it. */
export function takeOne(arrival: Micros | undefined, now: Micros, policy: Policy) {
  const each = interval(policy)
  const burst = each * policy.quota
  const from = arrival === undefined || arrival < now ? now : arrival
  const next = from + each
  const wait = next - burst - now
  if (wait > 0) return { policy, allowed: false, remaining: 0, reset: from - now, retry: wait, arrival: from }
  const reset = next - now
  const remaining = Math.floor((burst - (next - now)) / each)
  return { policy, allowed: true, remaining, reset, retry: 0, arrival: next }
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
  return {
    RateLimit: `"${policy.name}";r=${remaining};t=${secondsOf(reset)}`,
    'RateLimit-Policy': `"${policy.name}";q=${policy.quota};w=${policy.windowSeconds}`,
    ...(!allowed && { 'Retry-After': String(secondsOf(retry)) }),
  }
}

export const secondsOf = (micros: Micros) => Math.ceil(micros / 1_000_000)

/** About 10 MB at the most; a client that is pushed out starts with a full quota. */
const MOST_CLIENTS = 50_000
/** Each new client removes this many of the oldest that have expired: no timer, no sweep, no pause. */
const CLEARED_AT_ONCE = 2

export type LocalLimiter = ReturnType<typeof localLimiter>

export function localLimiter({ monotonic }: Pick<Clock, 'monotonic'>, mostClients = MOST_CLIENTS) {
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
  const keyOf = (policy: Policy, client: string) => `${policy.name} ${client}`
  return {
    take(policy: Policy, client: string): RateLimitDecision {
      const key = keyOf(policy, client)
      const time = now()
      const known = arrivals.get(key)
      const { arrival, ...decision } = takeOne(known, time, policy)
      if (decision.allowed) {
        if (known === undefined) clear(time)
        else arrivals.delete(key)
        arrivals.set(key, arrival)
      }
      return decision
    },
    giveBack(policy: Policy, client: string): void {
      const key = keyOf(policy, client)
      const known = arrivals.get(key)
      if (known !== undefined) arrivals.set(key, known - interval(policy))
    },
    /** The decision that `take` would give, without counting. */
    look(policy: Policy, client: string): RateLimitDecision {
      const { arrival: _, ...decision } = takeOne(arrivals.get(keyOf(policy, client)), now(), policy)
      return decision
    },
    counting: () => 'local' as const,
    size: () => arrivals.size,
    close: async () => {},
  }
}

/** Keeps wrong secrets within a quota, including those still being checked (docs/reference/limits.md). */
export function createGuesses(local: LocalLimiter, policy: Policy) {
  const underway = new Map<string, { count: number; waiting: (() => void)[] }>()

  /** A request with a secret, until it is known whether the secret is right. */
  function begin(client: string) {
    const mine = underway.get(client) ?? { count: 0, waiting: [] }
    underway.set(client, mine)
    mine.count += 1
    let settled = false
    return {
      allowed: true as const,
      /** Call it once the answer is known. Only the first call counts. */
      settle(wrong: boolean) {
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
    /** Checks only as many at once as may still be wrong; the others wait, or a burst of guesses would all pass. */
    async admit(client: string): Promise<ReturnType<typeof begin> | RateLimitDecision> {
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
