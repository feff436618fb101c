import { hasBearer } from '../../core/access/bearer.ts'
import { PlatformError } from '../../core/errors.ts'
import { httpStatus } from '../../core/health/fold.ts'
import { toHealthJson } from '../../core/health/health-json.ts'
import type { Health } from '../../core/health/runner.ts'
import type { Secret } from '../../core/secret.ts'
import { htmlResponse, jsonResponse } from '../http/respond.ts'
import type { Handler } from '../http/route.ts'
import { statusPage } from '../pages/status.ts'

/** A service's health; deep checks are gated when a token is set, and without it nothing live is run. */
export function healthRoute(health: Health, options: { readonly deepToken: Secret | undefined }): Handler {
  return async ({ request, requestId, url }) => {
    const deep = /^(?:1|true)$/.test(url.searchParams.get('deep') ?? '')
    if (deep && options.deepToken !== undefined && !hasBearer(request, options.deepToken)) {
      throw new PlatformError('unauthenticated', 'Deep checks need their token as Authorization: Bearer.')
    }
    const report = await health.check({ deep })
    const status = httpStatus(report.state)
    if (/\bapplication\/health\+json\b/.test(request.headers.get('accept') ?? ''))
      return jsonResponse(toHealthJson(report), { status, requestId }, 'application/health+json')
    return jsonResponse(report, { status, requestId })
  }
}

export function statusRoute(health: Health, meaning: (probe: string) => string | undefined): Handler {
  return async ({ requestId }) =>
    htmlResponse({ requestId, ...statusPage(await health.check({ deep: false }), meaning) })
}
