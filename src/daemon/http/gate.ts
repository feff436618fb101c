import type { LocalLimiter } from '../../core/access/limit/limiter.ts'
import {
  type Attempt,
  createGuesses,
  type RateLimitDecision,
  type RateLimiter,
  rateLimitFields,
} from '../../core/access/limit/limiter.ts'
import type { policiesOf } from '../../core/access/limit/policy.ts'
import { PlatformError } from '../../core/errors.ts'
import type { RouteName } from '../../core/routes.ts'
import { errorResponse } from './problem.ts'
import type { RouteHandler, RouteRequest } from './route.ts'

/** Lets a request through to its handler, within its route's policy. */
export type Gate = (route: RouteName, asked: RouteRequest, handler: RouteHandler) => Promise<Response>

/**
 * Rate limits around a handler. Wrong secrets are counted in this process whatever the shared store does, and a client
 * that gave too many is refused before its next one is looked at.
 */
export function createGate(input: {
  readonly limiter: RateLimiter
  readonly local: LocalLimiter
  readonly policies: ReturnType<typeof policiesOf>
}): Gate {
  const { limiter, local, policies } = input
  const { policyOf, shareOf, authFailure, authFailureOfProxy } = policies
  const guesses = createGuesses({ local, policy: authFailure })
  const guessesOfProxy = createGuesses({ local, policy: authFailureOfProxy })
  /** The counters for wrong secrets: one per client, and behind an untrusted proxy also one for the proxy, with a higher limit. */
  const countersOf = ({ client, behind }: RouteRequest) =>
    behind === undefined
      ? [{ guesses, key: client }]
      : [
          { guesses: guessesOfProxy, key: client },
          { guesses, key: `${client} for ${behind}` },
        ]
  return async (route, asked, handler) => {
    const policy = policyOf(route)
    // Only deep health checks a secret, so plain health cannot be used to guess one.
    const triesSecret =
      asked.request.headers.has('authorization') &&
      (policy !== undefined || route === 'metrics' || asked.url.searchParams.has('deep'))
    const counters = triesSecret ? countersOf(asked) : []
    for (const one of counters) {
      const failures = one.guesses.look(one.key)
      if (!failures.allowed) return refused(asked, failures)
    }
    const verdict = policy && (await limiter.take(policy, asked.client))
    if (verdict && !verdict.allowed) return refused(asked, verdict)
    const share = shareOf(route)
    const taken = share && (await limiter.take(share, asked.client))
    if (taken && !taken.allowed) return refused(asked, taken)
    const attempts: Attempt[] = []
    const settle = (wrong: boolean) => {
      for (const attempt of attempts) attempt.settle(wrong)
    }
    let response: Response
    try {
      for (const one of counters) {
        const admitted = await one.guesses.admit(one.key)
        if (!('settle' in admitted)) return refused(asked, admitted)
        attempts.push(admitted)
      }
      // Settle as soon as the secret proves right, so other attempts need not wait for the work that it starts.
      asked.passed = () => settle(false)
      response = await answer(handler, asked)
      settle(response.status === 401)
    } finally {
      settle(false)
    }
    if (verdict)
      for (const [name, value] of Object.entries(rateLimitFields(verdict))) response.headers.set(name, value)
    return response
  }
}

/** Runs the handler and turns its errors into answers here, so that they carry the rate limit fields and a 401 is counted. */
async function answer(handler: RouteHandler, asked: RouteRequest): Promise<Response> {
  try {
    return await handler(asked)
  } catch (error) {
    if (error instanceof PlatformError) return errorResponse(error, asked)
    // A host may throw anything, and the router answers errors only.
    throw error instanceof Error ? error : new Error('A handler threw no error.', { cause: error })
  }
}

function refused(asked: RouteRequest, verdict: RateLimitDecision): Response {
  return errorResponse(
    new PlatformError('rate_limited', 'Too many requests; try again later.'),
    asked,
    rateLimitFields(verdict),
  )
}
