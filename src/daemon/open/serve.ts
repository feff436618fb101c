import type { createProxyWatch } from '../../core/access/client.ts'
import { clientKey, untrustedClient } from '../../core/access/client.ts'
import { localLimiter } from '../../core/access/limit/limiter.ts'
import type { openLimiter } from '../../core/access/limit/open.ts'
import { policiesOf } from '../../core/access/limit/policy.ts'
import type { Health } from '../../core/health/runner.ts'
import { once } from '../../core/once.ts'
import { ROUTES } from '../../core/routes.ts'
import { type Service, type ServiceDefinition, WEB } from '../../core/service.ts'
import type { ServedService } from '../embedding.ts'
import { createApp } from '../http/app.ts'
import { createGate } from '../http/gate.ts'
import { createPoll } from '../http/poll.ts'
import { originPolicy } from '../http/respond.ts'
import { bodyMemory } from '../http/route.ts'
import { frameOf } from '../pages/layout.ts'
import type { Parts } from '../parts.ts'
import { healthRoute } from '../routes/health.ts'
import { metricsRoute } from '../routes/metrics.ts'
import { lazyHandler, onRefused, webTable } from '../services/web.ts'

/** The handlers of the services that this process serves, by name. They share one limiter and one memory for bodies. */
export function serveAll({
  parts,
  limiter,
  proxies,
  healthOf,
}: {
  readonly parts: Parts
  readonly limiter: ReturnType<typeof openLimiter>
  readonly proxies: ReturnType<typeof createProxyWatch>
  /** Health of a service other than web, for the listener that serves it. */
  readonly healthOf: (service: Service) => Health
}): ReadonlyMap<Service, ServedService> {
  const { platform, settings, clock, log, metrics } = parts
  const { trustProxy, siteUrl, corsOrigins } = settings.site
  const policies = policiesOf(settings.limits.perMinute, settings.budgets.confirmationsPerDay)
  const local = localLimiter(clock)
  const bodies = bodyMemory(settings.budgets.bodyBytesInFlight)
  const keyOf = clientKey(trustProxy)
  const clientOf: typeof keyOf = (peer) => {
    proxies.note(peer)
    return keyOf(peer)
  }
  const reads = (service: Service, name: string) => platform.contract.find(name)?.services.includes(service)
  const hasToken = platform.contract.group('health') !== undefined
  const configurations = once(async () =>
    (await import('../routes/configuration.ts')).configurationRoutes({
      ...parts,
      onRefused: onRefused(parts, 'health'),
    }),
  )
  const serve = ({ name, health: path }: ServiceDefinition): ServedService => {
    const health = name === WEB ? parts.health : healthOf(name)
    const configuration = lazyHandler(async () => (await configurations())(name))
    const table =
      name === WEB
        ? webTable(parts, configuration)
        : {
            serviceHealth: healthRoute(health, false),
            metrics: metricsRoute(metrics, settings.health.deepToken),
            ...(hasToken && { configuration }),
          }
    const fetch = createApp({
      service: name,
      table,
      healthPath: path,
      // One that does not read SHAREDSTORE_REST_* counts for itself.
      gate: createGate({
        limiter: reads(name, 'SHAREDSTORE_REST_URL') ? limiter : local,
        local,
        policies,
      }),
      clientOf,
      behindOf: untrustedClient(trustProxy),
      bodies,
      frame: frameOf(platform, name === WEB ? '' : siteUrl),
      allowsOrigin: originPolicy(corsOrigins),
      // A form on another site subscribes; the other routes of web are for its own pages.
      crossOriginPath: name === WEB ? ROUTES.subscribe.path : undefined,
      log,
      monotonic: clock.monotonic,
      onAnswer: metrics.answered,
    })
    const poll = createPoll({
      service: name,
      path: name === WEB ? ROUTES.webHealth.path : path,
      health,
      monotonic: clock.monotonic,
      log,
      onAnswer: metrics.answered,
    })
    return { handler: { fetch }, health, poll }
  }
  return new Map(
    platform.services.flatMap((service) =>
      service.port === undefined ? [] : [[service.name, serve(service)] as const],
    ),
  )
}
