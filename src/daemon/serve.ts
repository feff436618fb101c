import { clientKey, type Peer, untrustedClient } from '../core/access/client.ts'
import { localLimiter } from '../core/access/limit/limiter.ts'
import { policiesOf } from '../core/access/limit/policy.ts'
import type { Health } from '../core/health/runner.ts'
import type { Service } from '../core/service.ts'
import type { App } from './app.ts'
import type { Handler } from './embedding.ts'
import { createApp } from './http/app.ts'
import { bodyMemory } from './http/body.ts'
import { createGate } from './http/gate.ts'
import { createPoll, type Poll } from './http/poll.ts'
import { originPolicy } from './http/respond.ts'
import { routesOf } from './routes.ts'

export interface ServedService {
  readonly handler: Handler
  readonly health: Health
  /** The fast path for polls of its health. */
  readonly poll: Poll
}

/** The handlers of the services that this process serves, by name. They share one limiter and one memory for bodies. */
export function serveAll(app: App): ReadonlyMap<Service, ServedService> {
  const { platform, settings, clock, limiter, proxies } = app
  const { trustProxy, corsOrigins } = settings.site
  const local = localLimiter(clock)
  const policies = policiesOf(settings.limits.perMinute, settings.budgets.confirmationsPerDay)
  const keyOf = clientKey(trustProxy)
  const counted = {
    clientOf(peer: Peer) {
      proxies.note(peer)
      return keyOf(peer)
    },
    behindOf: untrustedClient(trustProxy),
    bodies: bodyMemory(settings.budgets.bodyBytesInFlight),
  }
  return new Map(
    platform.services
      .filter(({ port }) => port !== undefined)
      .map((service): [Service, ServedService] => {
        const { name } = service
        const health = app.healthOf(name)
        const site = { ...app, service, health, routes: routesOf(platform, service) }
        // A service that does not read SHAREDSTORE_REST_* counts for itself.
        const isShared = platform.contract.find('SHAREDSTORE_REST_URL')?.services.includes(name)
        const gate = createGate(isShared ? limiter : local, local, policies)
        const fetch = createApp(site, gate, counted, originPolicy(corsOrigins))
        return [name, { handler: { fetch }, health, poll: createPoll(site) }]
      }),
  )
}
