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
export function rateLimitFields({
  policy,
  allowed,
  remaining,
  reset,
  retry,
}: RateLimitDecision): Record<string, string> {
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
