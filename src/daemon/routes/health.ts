import { hasBearer } from '../../core/access/bearer.ts'
import { PlatformError } from '../../core/errors.ts'
import { httpStatus } from '../../core/health/fold.ts'
import { toHealthJson } from '../../core/health/health-json.ts'
import type { Health } from '../../core/health/runner.ts'
import type { Secret } from '../../core/secret.ts'
import { jsonResponse } from '../http/respond.ts'
import type { Handler } from '../http/route.ts'

/** Who may have deep checks: whoever brings the token, everybody when none is set, or (false) they do not exist. */
type DeepGate = { readonly token: Secret | undefined } | false

/** A service's health; deep checks are gated when a token is set, and without it nothing live is run. */
export function healthRoute(health: Health, gate: DeepGate): Handler {
  return async ({ request, requestId, url }) => {
    const deep = /^(?:1|true)$/.test(url.searchParams.get('deep') ?? '') && gate
    if (deep && deep.token !== undefined && !hasBearer(request, deep.token)) {
      throw new PlatformError('unauthenticated', 'Deep checks need their token as Authorization: Bearer.')
    }
    const report = await health.check({ deep: deep !== false })
    const status = httpStatus(report.state)
    if (prefersHealthJson(request.headers.get('accept') ?? ''))
      return jsonResponse(toHealthJson(report), { status, requestId }, 'application/health+json')
    return jsonResponse(report, { status, requestId })
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
