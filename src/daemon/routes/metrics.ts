import { textResponse } from '../http/respond.ts'
import type { Handler } from '../http/route.ts'
import type { Metrics } from '../metrics/metrics.ts'

/** Always 200: a monitor that reads nothing because something fails cannot say what. */
export function metricsRoute(metrics: Pick<Metrics, 'text'>): Handler {
  return async ({ requestId }) => {
    const { type, body } = await metrics.text()
    return textResponse(body, { requestId, type })
  }
}
