import { hasBearer } from '../../core/access/identity.ts'
import { spaced, trailing } from '../../core/calls.ts'
import { textResponse } from '../http/respond.ts'
import { defineRoute, refusal, text } from '../http/route.ts'
import { type MetricName, ROWS } from '../metrics/catalog.ts'

/** The metrics from which nobody's subscription can be inferred (CONTRACT §9.7). */
export function publicPart(text: string): string {
  return text
    .split('\n')
    .filter((line) => {
      const series = /^(?:# (?:HELP|TYPE) )?(\w+)/.exec(line)?.[1] ?? ''
      const name = series in ROWS ? series : series.replace(/_(?:bucket|sum|count)$/, '')
      // A name that is not one of the catalog's has no row.
      if (ROWS[name as MetricName]?.personal) return false
      // The counts of these routes could reveal who subscribed, confirmed or got a mail, on a platform with few users.
      return !/[{,]route="\/api\/email["/]/.test(line)
    })
    .join('\n')
}

/** With a token configured, the address proves nothing: a proxy on this machine may add no header. */
export const route = () =>
  defineRoute({
    tag: 'Operations',
    summary: 'Metrics for Prometheus',
    description:
      'A caller with the health token gets all; so does the machine itself while no token is configured. Everybody else gets those that reveal nothing about one person.',
    answers: [text('text/plain', 'The text format, 0.0.4.')],
    errors: ['unauthenticated'],
    handle: (site) => {
      const { metrics, settings, timer } = site
      const all = trailing(metrics.text)
      // Reads much of the store, and no token and no limit holds strangers back.
      const open = spaced(all, timer)
      const token = settings.health.deepToken
      return async (c) => {
        const shown = hasBearer(c.request, token)
        if (shown) c.passed()
        else if (token !== undefined && c.request.headers.has('authorization'))
          throw refusal(site, c, 'health', 'All metrics need the health token as Authorization: Bearer.')
        const isAll = shown || (token === undefined && c.isLocal)
        const { type, body } = await (isAll ? all() : open())
        return textResponse(isAll ? body : publicPart(body), type)
      }
    },
  })
