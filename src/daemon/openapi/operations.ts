import type { ResolvedPlatform } from '../../core/platform.ts'
import type { RouteOperations } from './operation.ts'
import { alertOperations } from './operations/alerts.ts'
import { analyticsOperations } from './operations/analytics.ts'
import { courseOperations } from './operations/course.ts'
import { emailOperations } from './operations/email.ts'
import { HEALTH } from './operations/health.ts'
import { INSIGHTS } from './operations/insights.ts'
import { METRICS } from './operations/metrics.ts'
import { OPENAPI } from './operations/openapi.ts'
import { PAYMENTS } from './operations/payments.ts'
import { SECURITY_TXT } from './operations/security-txt.ts'
import { STATUS } from './operations/status.ts'

/**
 * The document's operations, from a file for each of those in `routes`; the schemas are those that the routes parse
 * with.
 */
export function operationsOf({
  mails,
  courses,
  events,
  heartbeats,
}: Pick<ResolvedPlatform, 'mails' | 'courses' | 'events' | 'heartbeats'>): RouteOperations {
  return {
    ...STATUS,
    ...METRICS,
    ...courseOperations(courses),
    ...emailOperations(mails.definitions),
    ...PAYMENTS,
    ...alertOperations(heartbeats),
    ...INSIGHTS,
    ...analyticsOperations(events),
    ...HEALTH,
    ...OPENAPI,
    ...SECURITY_TXT,
  }
}
