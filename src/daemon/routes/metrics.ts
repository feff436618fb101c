import { hasBearer } from '../../core/access/bearer.ts'
import { PlatformError } from '../../core/errors.ts'
import type { SecretPair } from '../../core/secret.ts'
import { textResponse } from '../http/respond.ts'
import type { RouteHandler } from '../http/route.ts'
import type { Metrics } from '../metrics/metrics.ts'
import { publicPart } from '../metrics/public.ts'

/**
 * 200 whatever fails: a monitor that reads nothing because something fails cannot say what. All metrics for the health
 * token, or without one configured for this machine itself; for everybody else those that tell nothing about one person.
 * With a token, the address proves nothing: a proxy on this machine may add no header.
 */
export function metricsRoute(metrics: Pick<Metrics, 'text'>, token: SecretPair | undefined): RouteHandler {
  return async (asked) => {
    const shown = hasBearer(asked.request, token)
    if (shown) asked.passed()
    else if (token !== undefined && asked.request.headers.has('authorization'))
      throw new PlatformError(
        'unauthenticated',
        'All metrics need the health token as Authorization: Bearer.',
      )
    const { type, body } = await metrics.text()
    return textResponse(shown || (token === undefined && asked.isLocal) ? body : publicPart(body), {
      requestId: asked.requestId,
      type,
    })
  }
}
