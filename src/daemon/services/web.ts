import type { RouteTable } from '../http/route.ts'
import type { Parts } from '../parts.ts'
import { analyticsRoute } from '../routes/analytics.ts'
import {
  confirmRoute,
  dispatchRoute,
  lessonRoute,
  subscribeRoute,
  unsubscribeRoute,
} from '../routes/course.ts'
import { emailRoute } from '../routes/email.ts'
import { healthRoute } from '../routes/health.ts'
import { insightsRoute } from '../routes/insights.ts'
import { metricsRoute } from '../routes/metrics.ts'
import { openapiRoute } from '../routes/openapi.ts'
import { checkoutRoute, webhookRoute } from '../routes/payments.ts'
import { badgeRoute, statusJsonRoute, statusRoute } from '../routes/status.ts'

export function webTable(parts: Parts): RouteTable {
  const { settings, course, identify, transactionalMail, health, clock, log } = parts
  return {
    status: statusRoute(parts),
    statusJson: statusJsonRoute(parts),
    badge: badgeRoute(parts),
    metrics: metricsRoute(parts.metrics),
    lesson: lessonRoute,
    subscribe: subscribeRoute(course),
    confirm: confirmRoute(course),
    unsubscribe: unsubscribeRoute(course),
    email: emailRoute({ identify, mail: transactionalMail }),
    checkout: checkoutRoute({ identify, checkout: parts.checkout }),
    paymentsWebhook: webhookRoute({
      secret: settings.payments?.webhookSecret,
      store: parts.paymentEvents,
      onEvent: parts.onPaymentEvent,
      clock,
      log,
    }),
    dispatch: dispatchRoute(course, settings.dispatch),
    insights: insightsRoute(),
    analytics: analyticsRoute(parts.ingest),
    openapi: openapiRoute({
      web: settings.site.siteUrl,
      api: settings.site.apiUrl,
      agent: settings.site.agentUrl,
    }),
    webHealth: healthRoute(health.web, { token: settings.health.deepToken }),
  }
}
