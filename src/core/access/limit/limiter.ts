import type { GcraResult } from './gcra.ts'
import type { Policy } from './policy.ts'

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
