import { ROUTES } from '../../core/routes.ts'
import { type MetricName, ROWS } from './catalog.ts'

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
