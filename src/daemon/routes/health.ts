import { hasBearer } from '../../core/access/identity.ts'
import { systemClock, type Timer } from '../../core/clock.ts'
import { PlatformError } from '../../core/errors.ts'
import type { HealthReport } from '../../core/health/probe.ts'
import { httpStatus, toHealthJson } from '../../core/health/probe.ts'
import type { Health } from '../../core/health/runner.ts'
import { perTick } from '../../core/per-tick.ts'
import type { SecretPair } from '../../core/secret.ts'
import { jsonResponse } from '../http/respond.ts'
import type { RouteHandler } from '../http/route.ts'

/**
 * Callers that may run deep checks: those with the token, everybody if no token is set, or nobody (false: the service
 * has none).
 */
type DeepGate =
  | {
      readonly token: SecretPair | undefined
      /** Called for each deep check without the right token. */
      readonly onRefused?: (given: 'wrong' | 'none') => void
    }
  | false

/** A route for a service's health. If a token is set, only requests with it run deep (live) checks. */
export function healthRoute(health: Health, gate: DeepGate, timer: Timer = systemClock): RouteHandler {
  // A probe that works without waiting, as a ping of SQLite does, is over before the next request is read: no single
  // flight would hold it.
  const shallow = perTick(() => health.check({ deep: false }))
  const full = perTick(() => health.check({ deep: true }))
  const open = spaced(() => health.check({ deep: true }), timer)
  return async (asked) => {
    const { request, requestId, url } = asked
    const deep = /^(?:1|true)$/.test(url.searchParams.get('deep') ?? '') && gate
    if (deep && deep.token !== undefined && !hasBearer(request, deep.token)) {
      deep.onRefused?.(request.headers.has('authorization') ? 'wrong' : 'none')
      throw new PlatformError('unauthenticated', 'Deep checks need their token as Authorization: Bearer.')
    }
    if (deep && deep.token !== undefined) asked.passed()
    // Without a token anybody may run deep checks, and each one logs in to other servers: so run them less often.
    const report = await (deep === false ? shallow() : deep.token === undefined ? open() : full())
    const status = httpStatus(report.state)
    if (prefersHealthJson(request.headers.get('accept') ?? ''))
      return jsonResponse(toHealthJson(report), { status, requestId }, 'application/health+json')
    return jsonResponse(report, { status, requestId })
  }
}

const SPACE_MS = 1000

/**
 * Runs at most one check a second, and one at a time. A caller in between waits for the next check, so its answer never
 * comes from a check that began before the call.
 */
function spaced(check: () => Promise<HealthReport>, timer: Timer): () => Promise<HealthReport> {
  let last: Promise<unknown> = Promise.resolve()
  let lastBegan = Number.NEGATIVE_INFINITY
  let next: Promise<HealthReport> | undefined
  return () => {
    next ??= last.then(async () => {
      const wait = lastBegan + SPACE_MS - timer.monotonic()
      if (wait > 0) await timer.sleep(wait)
      // Begin in a later tick, so that the requests of one tick share the run.
      await new Promise((resolve) => setImmediate(resolve))
      lastBegan = timer.monotonic()
      next = undefined
      const report = check()
      last = report.catch(() => {})
      return report
    })
    return next
  }
}

/** Named, and not for less than plain JSON (RFC 9110 §12.5.1): wildcards get the platform's own body. */
function prefersHealthJson(accept: string): boolean {
  const weights = new Map(
    accept.split(',').map((range) => {
      const [type = '', ...parameters] = range.split(';').map((part) => part.trim().toLowerCase())
      const weight = Number(parameters.find((part) => part.startsWith('q='))?.slice(2) ?? 1)
      return [type, weight]
    }),
  )
  const wanted = weights.get('application/health+json') ?? 0
  return wanted > 0 && wanted >= (weights.get('application/json') ?? 0)
}
