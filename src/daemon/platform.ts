import { clientKey, type Peer, untrustedClient } from '../core/access/client.ts'
import { localLimiter, policiesOf } from '../core/access/limit/limiter.ts'
import { oneByOne } from '../core/calls.ts'
import { validate } from '../core/env/validate.ts'
import { type Log, newId, systemClock, systemRandom, within } from '../core/host.ts'
import { createSendEmail } from '../core/mail/send-email.ts'
import type { Service } from '../core/service.ts'
import { type App, openApp } from './app.ts'
import { openCourses } from './courses.ts'
import type { Handler, OpenOptions, Operations } from './embedding.ts'
import { createApp } from './http/app.ts'
import { bodyMemory } from './http/body.ts'
import { createGate } from './http/gate.ts'
import { createPoll } from './http/poll.ts'
import { originPolicy } from './http/respond.ts'
import { routesOf } from './routes.ts'

/** Without a log of the program's own, nothing that it should hear of stays silent: each event is told once. */
function processWarnings(): Log {
  const told = new Set<string>()
  const warn: Log['warn'] = (code, message) => {
    if (told.has(code)) return
    told.add(code)
    process.emitWarning(message, { type: 'platformctl', code })
  }
  return { debug() {}, info() {}, warn, error: warn }
}

/** What the daemon and the CLI use besides the public operations. */
export type OpenedPlatform = ReturnType<typeof openPlatform>

/** A close waits no longer for mails that are sent at once, and for events of payments. */
const LAST_MS = 60_000

/** Opens a platform for a program, the daemon or a command. */
export function openPlatform(options: OpenOptions) {
  const { clock = systemClock, random = systemRandom, log = processWarnings(), env, platform } = options
  const app = openApp({ clock, timer: systemClock, random, log }, options)
  const { settings, stores, mailService, course } = app
  const { mailer, held, tally } = mailService
  const services = serveAll(app)
  const send = createSendEmail(mailer, clock, platform.mails, held, app.keptMail)
  const sendEmail: typeof send = (input) => app.underway.during(send(input))
  let closing: Promise<void> | undefined
  const operations: Operations = {
    sendEmail,
    mail: {
      // Callers without types may leave the second argument out; what is missing is then a reason.
      send: (template, mail) => sendEmail({ ...mail, template, about: mail?.key ?? newId(random, 18) }),
    },
    async dispatch(request = {}) {
      const { limit = 0 } = request
      if (!(Number.isInteger(limit) && limit >= 0) && limit !== Infinity)
        throw new RangeError('the limit of a dispatch is a whole number, or Infinity for none')
      return (await course()).dispatch(request)
    },
    courses: openCourses(course),
    async health(service, { deep = false } = {}) {
      const served = services.get(service)
      if (served === undefined) throw new RangeError(`this process does not serve ${service}`)
      return served.health.check({ deep })
    },
    validate: () => validate(platform.contract, env),
    close() {
      // Close each part before the parts that it uses. A store or mailer passed in by the caller is not closed.
      closing ??= oneByOne([
        () => within(LAST_MS, app.underway.ended(), () => []),
        async () => (await course.opened())?.stopDispatching(),
        async () => (await course.opened())?.close(),
        () => tally.flush(),
        async () => options.mailer ?? mailer.close(),
        async () => (await app.checkout?.opened())?.close(),
        async () => app.limiter.close(),
        async () => (await app.analytics?.opened())?.close(),
        stores.end,
        async () => (await app.sharedHistory.opened())?.close(),
        async () => settings.store.jobStore && (await stores.jobStore.opened())?.close(),
      ])
      return closing
    },
  }
  return {
    ...app,
    ...operations,
    operations,
    services,
    /** What visitors see of the status, for files. */
    keptStatus: async () => (await import('./routes/status.ts')).keptStatus(app),
  }
}

export function handlersOf({ services }: OpenedPlatform): Readonly<Record<Service, Handler>> {
  return Object.fromEntries([...services].map(([name, { handler }]) => [name, handler]))
}

/** The handlers of the services that this process serves, by name. They share one limiter and one memory for bodies. */
function serveAll(app: App) {
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
  const served = platform.services.flatMap((service) => {
    if (service.port === undefined) return []
    const { name } = service
    const health = app.healthOf(name)
    const site = { ...app, service, health, routes: routesOf(platform, service) }
    // A service that does not read SHAREDSTORE_REST_* counts for itself.
    const isShared = platform.contract.find('SHAREDSTORE_REST_URL')?.services.includes(name)
    const gate = createGate(isShared ? limiter : local, local, policies)
    const handler: Handler = { fetch: createApp(site, gate, counted, originPolicy(corsOrigins)) }
    return [[name, { handler, health, poll: createPoll(site) }] as const]
  })
  return new Map<Service, (typeof served)[number][1]>(served)
}
