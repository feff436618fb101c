import {
  createGuesses,
  type LocalLimiter,
  type Policies,
  type RateLimitDecision,
  type RateLimiter,
  rateLimitFields,
} from '../../core/access/limit/limiter.ts'
import { PlatformError } from '../../core/errors.ts'
import type { RouteContext, RouteFacts } from './context.ts'
import { errorResponse } from './problem.ts'
import type { Handler } from './route.ts'

/** Lets a request through to its handler, within its route's policies. */
export type Gate = (route: RouteFacts, c: RouteContext, handler: Handler) => Promise<Response>

/** Rate limits around a handler. Wrong secrets are counted in this process whatever the shared store does. */
export function createGate(limiter: RateLimiter, local: LocalLimiter, policies: Policies): Gate {
  const guesses = createGuesses(local, policies.authFailure)
  const guessesOfProxy = createGuesses(local, policies.authFailureOfProxy)
  /** The counters for wrong secrets: one per client, and behind an untrusted proxy also one for the proxy, with a higher limit. */
  const countersOf = ({ client, behind }: RouteContext) =>
    behind === undefined
      ? [{ guesses, key: client }]
      : [
          { guesses: guessesOfProxy, key: client },
          { guesses, key: `${client} for ${behind}` },
        ]
  return async ({ name, limits }, c, handler) => {
    // Only deep health checks a secret, so plain health cannot be used to guess one.
    const triesSecret =
      c.request.headers.has('authorization') && (name !== 'health' || c.query('deep') !== undefined)
    const counters = triesSecret ? countersOf(c) : []
    for (const one of counters) {
      const failures = one.guesses.look(one.key)
      if (!failures.allowed) return refused(c, failures)
    }
    let told: RateLimitDecision | undefined
    for (const limit of limits) {
      const verdict = await limiter.take(policies[limit], c.client)
      if (!verdict.allowed) return refused(c, verdict)
      told ??= verdict
    }
    const attempts: { settle(wrong: boolean): void }[] = []
    const settle = (wrong: boolean) => {
      for (const attempt of attempts) attempt.settle(wrong)
    }
    let response: Response
    try {
      for (const one of counters) {
        const admitted = await one.guesses.admit(one.key)
        if (!('settle' in admitted)) return refused(c, admitted)
        attempts.push(admitted)
      }
      // Settle as soon as the secret proves right, so other attempts need not wait for the work that it starts.
      c.passed = () => settle(false)
      response = await answer(handler, c)
      settle(response.status === 401)
    } finally {
      settle(false)
    }
    for (const [field, value] of Object.entries(told ? rateLimitFields(told) : {}))
      response.headers.set(field, value)
    return response
  }
}

/** Runs the handler and turns its errors into answers here, so that they carry the rate limit fields and a 401 is counted. */
async function answer(handler: Handler, c: RouteContext): Promise<Response> {
  try {
    return await handler(c)
  } catch (error) {
    if (error instanceof PlatformError) return errorResponse(error, c)
    // A host may throw anything, and the router answers errors only.
    throw error instanceof Error ? error : new Error('A handler threw no error.', { cause: error })
  }
}

function refused(c: RouteContext, verdict: RateLimitDecision): Response {
  const error = new PlatformError('rate_limited', 'Too many requests; try again later.')
  return errorResponse(error, c, rateLimitFields(verdict))
}
