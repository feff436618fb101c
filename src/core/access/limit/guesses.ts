import type { RateLimitDecision } from './limiter.ts'
import type { LocalLimiter } from './local.ts'
import type { Policy } from './policy.ts'

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
  /** How many clients have attempts under way. */
  size(): number
}

export function createGuesses({
  local,
  policy,
}: {
  readonly local: LocalLimiter
  readonly policy: Policy
}): Guesses {
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
