import { RateLimiterMemory, type RateLimiterRes } from 'rate-limiter-flexible'

export interface RateLimitVerdict {
  readonly allowed: boolean
  /** RateLimit, RateLimit-Policy (draft-ietf-httpapi-ratelimit-headers-10) and, when refused, Retry-After. */
  readonly headers: Readonly<Record<string, string>>
}

/** Counts one request of a client and says whether it may pass. */
export type RateLimit = (client: string) => Promise<RateLimitVerdict>

export const DEFAULT_PER_MINUTE = 300
const WINDOW_SECONDS = 60

/** In this process only: a window of a minute for each client, forgotten when it ends. */
export function localRateLimit(perMinute: number): RateLimit {
  const limiter = new RateLimiterMemory({ points: perMinute, duration: WINDOW_SECONDS })
  return async (client) => {
    try {
      return { allowed: true, headers: headersOf(await limiter.consume(client), perMinute) }
    } catch (refused) {
      // The library rejects with its result when the limit is reached, and with an Error for faults of its own.
      if (refused instanceof Error) throw refused
      const result = refused as RateLimiterRes
      return {
        allowed: false,
        headers: {
          ...headersOf(result, perMinute),
          'Retry-After': String(Math.ceil(result.msBeforeNext / 1000)),
        },
      }
    }
  }
}

function headersOf(result: RateLimiterRes, perMinute: number): Record<string, string> {
  return {
    RateLimit: `"default";r=${Math.max(0, result.remainingPoints)};t=${Math.ceil(result.msBeforeNext / 1000)}`,
    'RateLimit-Policy': `"default";q=${perMinute};w=${WINDOW_SECONDS}`,
  }
}
