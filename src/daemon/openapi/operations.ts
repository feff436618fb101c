import type { Operations } from './operation.ts'
import { ANALYTICS } from './operations/analytics.ts'
import { COURSE } from './operations/course.ts'
import { EMAIL } from './operations/email.ts'
import { HEALTH } from './operations/health.ts'
import { INSIGHTS } from './operations/insights.ts'
import { METRICS } from './operations/metrics.ts'
import { OPENAPI } from './operations/openapi.ts'
import { PAYMENTS } from './operations/payments.ts'
import { STATUS } from './operations/status.ts'

/**
 * What the document says of each route, in a file for each of those in `routes`; the schemas are those that the routes
 * parse with.
 */
export const OPERATIONS: Operations = {
  ...STATUS,
  ...METRICS,
  ...COURSE,
  ...EMAIL,
  ...PAYMENTS,
  ...INSIGHTS,
  ...ANALYTICS,
  ...HEALTH,
  ...OPENAPI,
}
