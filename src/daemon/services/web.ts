import type { Settings } from '../../core/env/settings.ts'
import type { ResolvedPlatform } from '../../core/platform.ts'
import { routesOf, type WebRoute } from '../../core/routes.ts'
import { WEB } from '../../core/service.ts'
import { jsonResponse } from '../http/respond.ts'
import type { RouteHandler, RouteTable } from '../http/route.ts'
import type { Parts } from '../parts.ts'
import { healthRoute } from '../routes/health.ts'
import { metricsRoute } from '../routes/metrics.ts'

/** Built once, at the first request, because most processes are never asked for it. */
function openapiRoute({
  platform,
  settings: { addresses, site },
}: {
  readonly platform: ResolvedPlatform
  readonly settings: Settings
}): RouteHandler {
  let made: Promise<unknown> | undefined
  const portOf = (name: string) => platform.services.find((service) => service.name === name)?.port
  const addressOf = (name: string) =>
    name === WEB ? site.siteUrl : (addresses.get(name) ?? `http://127.0.0.1:${portOf(name)}`)
  return async ({ requestId }) => {
    made ??= import('../openapi/document.ts').then(({ openapiDocument }) =>
      openapiDocument(platform, addressOf),
    )
    return jsonResponse(await made, { requestId })
  }
}

/** A handler whose file is loaded with its first request: the schemas of all bodies cost a start more than the rest of it. */
export function lazyHandler(load: () => Promise<RouteHandler>): RouteHandler {
  let loading: Promise<RouteHandler> | undefined
  return async (asked) => {
    loading ??= load().catch((error: unknown) => {
      // The build may be being replaced right now, so let the next request try again.
      loading = undefined
      throw error
    })
    return (await loading)(asked)
  }
}

const courseRoutes = () => import('../routes/course.ts')
const alertRoutes = () => import('../routes/alerts.ts')
const paymentRoutes = () => import('../routes/payments.ts')
const statusRoutes = () => import('../routes/status.ts')

const SECRETS = {
  dispatch: 'EMAIL_DISPATCH_SECRET',
  health: 'HEALTH_DEEP_TOKEN',
  witness: 'WITNESS_SECRET',
} as const

/** A wrong secret is somebody guessing, or a caller that missed a rotation: both must be seen. */
export function onRefused({ metrics, log }: Parts, name: keyof typeof SECRETS) {
  return (given: 'wrong' | 'none'): void => {
    metrics.secretRefused(name, given)
    if (given === 'wrong' || name === 'dispatch')
      log.warn(
        'secret_refused',
        `a request was refused: its ${SECRETS[name]} is ${given === 'wrong' ? 'wrong' : 'missing'}`,
        { secret: SECRETS[name], given },
      )
  }
}

/** The web service's routes, without those that the platform has nothing for. */
export function webTable(parts: Parts, configuration: RouteHandler): RouteTable {
  const all = everyRoute(parts, configuration)
  return Object.fromEntries(routesOf(parts.platform).map((name) => [name, all[name]]))
}

function everyRoute(parts: Parts, configuration: RouteHandler): Readonly<Record<WebRoute, RouteHandler>> {
  const { settings, course, identify, transactionalMail, health, clock, log } = parts
  // The form has no answer to a host's own challenge.
  const takesSubscribers =
    parts.mailConfigured && parts.challenge === undefined && routesOf(parts.platform).includes('subscribe')
  const watches = parts.status.recorded !== 'none'
  const formsFor = {
    takesSubscribers: takesSubscribers && parts.platform.courses.length > 0,
    mailsIncidents: takesSubscribers && watches,
  }
  const refused = (name: keyof typeof SECRETS) => onRefused(parts, name)
  return {
    status: lazyHandler(async () => (await statusRoutes()).statusRoute({ ...parts, ...formsFor })),
    statusJson: lazyHandler(async () => (await statusRoutes()).statusJsonRoute({ ...parts, ...formsFor })),
    statusFeed: lazyHandler(async () => (await statusRoutes()).statusFeedRoute(parts)),
    badge: lazyHandler(async () => (await statusRoutes()).badgeRoute(parts)),
    metrics: metricsRoute(parts.metrics, settings.health.deepToken),
    lesson: lazyHandler(async () =>
      (await courseRoutes()).lessonRoute(parts.platform, takesSubscribers, course),
    ),
    subscribe: lazyHandler(async () => {
      const { subscribable, subscribeRoute } = await courseRoutes()
      return subscribeRoute(course, subscribable(parts.platform.courses, watches), parts.challenge)
    }),
    confirm: lazyHandler(async () =>
      (await courseRoutes()).confirmRoute(course, parts.confirmation, parts.platform.courses),
    ),
    unsubscribe: lazyHandler(async () =>
      (await courseRoutes()).unsubscribeRoute(
        course,
        parts.platform.unsubscription ?? 'link',
        (await courseRoutes()).choicesOf(parts.platform),
      ),
    ),
    email: lazyHandler(async () =>
      (await import('../routes/email.ts')).emailRoute({
        definitions: parts.platform.mails.definitions,
        identify,
        mail: transactionalMail,
      }),
    ),
    feedback: lazyHandler(async () => {
      const { createFetchText } = await import('../../core/mail/feedback/fetch-text.ts')
      return (await import('../routes/feedback.ts')).feedbackRoute({
        configured: settings.feedback,
        list: parts.suppressionList,
        fetchText: createFetchText(),
        count: parts.metrics.feedback,
        clock,
        log,
      })
    }),
    checkout: lazyHandler(async () =>
      (await paymentRoutes()).checkoutRoute({ identify, checkout: parts.checkout }),
    ),
    paymentsWebhook: lazyHandler(async () =>
      (await paymentRoutes()).webhookRoute({
        secret: settings.payments?.webhookSecret,
        store: parts.paymentEvents,
        onEvent: parts.onPaymentEvent,
        clock,
        log,
      }),
    ),
    dispatch: lazyHandler(async () =>
      (await courseRoutes()).dispatchRoute(course, { ...settings.dispatch, onRefused: refused('dispatch') }),
    ),
    heartbeat: lazyHandler(async () =>
      (await alertRoutes()).heartbeatRoute({
        definitions: parts.platform.heartbeats,
        heartbeats: parts.heartbeats,
        secret: settings.dispatch.secret,
        onRefused: refused('dispatch'),
        clock,
      }),
    ),
    silence: lazyHandler(async () =>
      (await alertRoutes()).silenceRoute({
        incidents: parts.incidents,
        secret: settings.dispatch.secret,
        onRefused: refused('dispatch'),
        clock,
      }),
    ),
    insights: lazyHandler(async () => (await import('../routes/insights.ts')).insightsRoute(parts.platform)),
    analytics: lazyHandler(async () => (await import('../routes/analytics.ts')).analyticsRoute(parts.ingest)),
    securityTxt: lazyHandler(async () =>
      (await import('../routes/security-txt.ts')).securityTxtRoute({
        contact: parts.platform.security,
        language: parts.platform.language,
        siteUrl: settings.site.siteUrl,
        now: () => clock.now(),
      }),
    ),
    configuration,
    witness: lazyHandler(async () =>
      (await import('../routes/witness.ts')).witnessRoute({
        ...parts,
        ...formsFor,
        refused: refused('witness'),
      }),
    ),
    openapi: openapiRoute({ platform: parts.platform, settings }),
    webHealth: healthRoute(health, { token: settings.health.deepToken, onRefused: refused('health') }),
  }
}
