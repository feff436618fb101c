import { type RateLimiter, rateLimitFields, type Verdict } from '../../core/access/limit/limiter.ts'
import type { LocalLimiter } from '../../core/access/limit/local.ts'
import type { policiesOf } from '../../core/access/limit/policy.ts'
import { PlatformError } from '../../core/errors.ts'
import type { RouteName } from '../../core/routes.ts'
import { errorResponse } from './problem.ts'
import type { Handler, RouteRequest } from './route.ts'

/** Lets a request through to its handler, within its route's policy. */
export type Gate = (route: RouteName, asked: RouteRequest, handler: Handler) => Promise<Response>

/**
 * Rate limits around a handler. Wrong secrets are counted in this process whatever the shared store does, and a client
 * that gave too many is refused before its next one is looked at.
 */
export function createGate({
  limiter,
  local,
  policies,
}: {
  readonly limiter: RateLimiter
  readonly local: LocalLimiter
  readonly policies: ReturnType<typeof policiesOf>
}): Gate {
  const { policyOf, authFailure } = policies
  return async (route, asked, handler) => {
    const policy = policyOf(route)
    // Plain health is no way to try a secret; deep health is.
    const triesSecret =
      asked.request.headers.has('authorization') &&
      (policy !== undefined || asked.url.searchParams.has('deep'))
    if (triesSecret) {
      const failures = local.look(authFailure, asked.client)
      if (!failures.allowed) return refused(asked, failures)
    }
    const verdict = policy && (await limiter.take(policy, asked.client))
    if (verdict && !verdict.allowed) return refused(asked, verdict)
    const response = await answer(handler, asked)
    if (triesSecret && response.status === 401) local.take(authFailure, asked.client)
    if (verdict)
      for (const [name, value] of Object.entries(rateLimitFields(verdict))) response.headers.set(name, value)
    return response
  }
}

/** As the app would answer, but here: errors too carry the fields, and a 401 is counted. */
async function answer(handler: Handler, asked: RouteRequest): Promise<Response> {
  try {
    return await handler(asked)
  } catch (error) {
    if (error instanceof PlatformError) return errorResponse(error, asked)
    throw error
  }
}

function refused(asked: RouteRequest, verdict: Verdict): Response {
  return errorResponse(
    new PlatformError('rate_limited', 'Too many requests; try again later.'),
    asked,
    rateLimitFields(verdict),
  )
}
