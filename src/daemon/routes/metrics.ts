import { hasBearer } from '../../core/access/identity.ts'
import { PlatformError } from '../../core/errors.ts'
import { ROUTES } from '../../core/routes.ts'
import type { SecretPair } from '../../core/secret.ts'
import { textResponse } from '../http/respond.ts'
import type { RouteHandler } from '../http/route.ts'
import { type MetricName, ROWS } from '../metrics/catalog.ts'
import type { Metrics } from '../metrics/metrics.ts'

/** Routes whose counts could reveal who subscribed, confirmed or got a mail, on a platform with few users. */
const PERSONAL_ROUTES: ReadonlySet<string> = new Set(
  (['subscribe', 'confirm', 'unsubscribe', 'email', 'dispatch'] as const).map((name) => ROUTES[name].path),
)

/** The metrics from which nobody's subscription can be inferred (CONTRACT §9.7). */
export function publicPart(text: string): string {
  return text
    .split('\n')
    .filter((line) => {
      const name = /^(?:# (?:HELP|TYPE) )?(\w+)/.exec(line)?.[1] ?? ''
      if (isPersonal(name)) return false
      const route = /[{,]route="([^"]*)"/.exec(line)?.[1]
      return route === undefined || !PERSONAL_ROUTES.has(route)
    })
    .join('\n')
}

function isPersonal(series: string): boolean {
  const name = series in ROWS ? series : series.replace(/_(?:bucket|sum|count)$/, '')
  // `in` has just said that the name is one of the catalog's; any other has no row.
  return ROWS[name as MetricName]?.personal === true
}

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
