import type { Clock } from '../../clock.ts'
import type { Settings } from '../../env/settings.ts'
import type { Log } from '../../log.ts'
import type { RateLimiter } from './limiter.ts'
import { type LocalLimiter, localLimiter } from './local.ts'
import type { Policy } from './policy.ts'
import { type SharedCounter, sharedCounter } from './shared.ts'

/** A visitor does not notice a wait up to this. After it, this process counts. */
const TIMEOUT_MS = 250
const RETRY_MS = 2000

export interface LimiterOptions {
  readonly sharedStore: Settings['sharedStore']
  readonly clock: Clock
  readonly log: Log
}

/** The limiter that the settings name: shared with the other machines, or of this process. */
export function openLimiter({ sharedStore, clock, log }: LimiterOptions): RateLimiter {
  const local = localLimiter(clock)
  if (sharedStore === undefined) return local
  return withFallback({
    shared: sharedCounter({ ...sharedStore, timeoutMs: TIMEOUT_MS }),
    ahead: localLimiter(clock),
    local,
    clock,
    log,
  })
}

/**
 * Counts in the shared store while it answers. When it is slow or down, this process logs one warning and
 * counts at half the quota (it does not know what the others let through) until the store answers again.
 */
export function withFallback({
  shared,
  ahead,
  local,
  clock,
  log,
}: {
  readonly shared: SharedCounter
  /** Counts what is on its way to the shared store, so that a burst cannot outrun a slow one. */
  readonly ahead: LocalLimiter
  readonly local: LocalLimiter
  readonly clock: Clock
  readonly log: Log
}): RateLimiter {
  const closing = new AbortController()
  let down = false

  /** Waits for the store in the background, so that no visitor waits for one that is down. */
  async function comeBack(): Promise<void> {
    for (;;) {
      await clock.sleep(RETRY_MS, closing.signal)
      const answers = await shared.ping().then(
        () => true,
        () => false,
      )
      if (answers) break
    }
    down = false
    log.info('limiter_shared', 'the shared store answers again: rate limits count there')
  }

  function fallBack(): void {
    if (down) return
    down = true
    log.warn(
      'limiter_fallback',
      'the shared store does not answer: rate limits count in this process, at half the quota, until it does',
    )
    // Rejects only when the limiter is closed.
    comeBack().catch(() => {})
  }

  return {
    async take(policy, client) {
      if (!down) {
        const own = ahead.take(policy, client)
        if (!own.allowed) return own
        try {
          const verdict = await shared.take(policy, client)
          if (!verdict.allowed) ahead.giveBack(policy, client)
          return verdict
        } catch {
          fallBack()
        }
      }
      return local.take(half(policy), client)
    },
    counting: () => (down ? 'fallback' : 'shared'),
    async close() {
      closing.abort(new Error('the limiter is closed'))
      await shared.close()
    },
  }
}

function half(policy: Policy): Policy {
  return { ...policy, quota: Math.max(1, Math.floor(policy.quota / 2)) }
}
