import { createProxyWatch } from '../core/access/client.ts'
import { type Identify, jwtIdentify, parseIdentity } from '../core/access/identity.ts'
import { openLimiter } from '../core/access/limit/open.ts'
import { systemClock } from '../core/clock.ts'
import { isInstalled } from '../core/env/group-warnings.ts'
import { readSettings } from '../core/env/settings.ts'
import { validate } from '../core/env/validate.ts'
import type { ProbeParts, StoreProbe } from '../core/health/definition.ts'
import { openProbes } from '../core/health/definition.ts'
import { createHealth, logChanges } from '../core/health/runner.ts'
import type { Log } from '../core/log.ts'
import { dailyMail, firstOfDays } from '../core/mail/feedback/sending.ts'
import { createSendEmail, createSendMail } from '../core/mail/send-email.ts'
import { once } from '../core/once.ts'
import type { ResolvedPlatform } from '../core/platform.ts'
import { systemRandom } from '../core/random.ts'
import { type Service, WEB } from '../core/service.ts'
import { createLabels } from '../core/status/words.ts'
import { openSharedHistory } from '../core/store/open.ts'
import type { Store } from '../core/store/store.ts'
import { openCourses } from './courses.ts'
import type { DaemonParts, Handler, Operations, PlatformOptions } from './embedding.ts'
import { type Metrics, openMetrics } from './metrics/metrics.ts'
import { openAnalytics } from './open/analytics.ts'
import { openCoursePart } from './open/course.ts'
import { openMail } from './open/mail.ts'
import { openStores } from './open/stores.ts'
import type { Parts } from './parts.ts'
import { serveAll } from './serve.ts'
import { sharedIncidents, statusSource } from './status.ts'

/** As `PlatformOptions`, but somebody has decided which platform it is. */
export type OpenOptions = Omit<PlatformOptions, 'platform'> &
  DaemonParts & { readonly platform: ResolvedPlatform }

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

/** Days of mail figures that the status page shows to operators. */
const DAYS_OF_MAIL = 2 * 7

/** The only composition root. Nothing listens, ticks or opens a connection before it is asked to. */
export function openPlatform(options: OpenOptions) {
  const {
    env,
    platform,
    clock = systemClock,
    random = systemRandom,
    log = processWarnings(),
    onLost,
  } = options
  const settings = readSettings(platform, env)
  const startedAt = clock.now()
  const stores = openStores({ options, platform: platform.name, settings, random, log })
  const { store, jobStore } = stores
  const mail = openMail({ transport: options.mailer, settings, platform, stores, clock })
  const { mailer, suppressionList } = mail
  const limiter = openLimiter({ clock, log }, settings.sharedStore)
  const { ingest, analytics } = openAnalytics({
    platform,
    settings,
    metrics: () => metrics,
    clock,
    log,
    onLost,
  })
  const metrics: Metrics = openMetrics(clock, {
    build: settings.site.buildStamp,
    counting: limiter.counting,
    mailConfigured: mailer.configured,
    feedbackProvider: settings.feedback?.provider,
    analyticsBytes: async () => ((await analytics?.opened()) ? ingest.size() : undefined),
    knownStore: stores.known,
  })
  const { course, transactionalMail, keptMail, confirmationsExhausted } = openCoursePart({
    platform,
    settings,
    stores,
    mail,
    directory: options.directory,
    metrics,
    clock,
    random,
    log,
  })
  const sharedHistory = once(async () =>
    options.store === undefined && settings.store.address
      ? openSharedHistory(settings.store.address, log)
      : undefined,
  )
  const proxies = createProxyWatch({ clock, log }, settings.site.trustProxy)
  const neighbours = new Map<Service, string | null>()
  const probeParts: ProbeParts = {
    settings,
    counting: limiter.counting,
    random,
    clock,
    store: storeProbe(store),
    jobStore: storeProbe(jobStore),
    verifyMail: (signal) => mailer.verify(signal),
    pingAnalytics: async () => {
      await (await analytics?.())?.ping()
      await ingest.size()
    },
    analyticsFull: ingest.full,
    confirmationsExhausted,
    heartbeat: async (input) => (await store()).heartbeats.expect(input),
    mailHolds: async () => (await stores.known())?.sending.holds() ?? [],
    untrustedProxy: proxies.seen,
    hasPackage: isInstalled,
    noteBuild: (service, build) => neighbours.set(service, build),
  }
  let stopping = false
  const healthOf = (service: Service) =>
    metrics.health(
      logChanges(
        createHealth({
          service,
          probes: openProbes(platform.probes, service, probeParts),
          clock,
          build: settings.site.buildStamp,
          startedAt,
          stopping: () => stopping,
        }),
        log,
      ),
    )
  const { payments } = settings
  const checkout =
    payments &&
    once(async () =>
      (await import('../core/payments/checkout.ts')).openCheckout(
        { clock, log },
        payments,
        settings.site.siteUrl,
      ),
    )
  const withToken = settings.health.deepToken === undefined ? undefined : platform.definition
  const challenge = options.challenge ?? platform.challenge
  // The form has no answer to a host's own challenge.
  const takesSubscribers =
    mailer.configured && challenge === undefined && platform.contract.group('mail') !== undefined
  const parts: Parts = {
    started: {
      ...options.sources,
      at: startedAt,
      env,
      platform: {
        name: platform.name,
        fingerprint: withToken?.fingerprint() ?? null,
        lessons: withToken?.lessons() ?? null,
      },
    },
    signingSecret: async () => (await stores.keys()).linkKey,
    platform,
    labels: createLabels(platform),
    settings,
    course,
    confirmation: options.confirmation ?? platform.confirmation ?? 'link',
    challenge,
    mailConfigured: mailer.configured,
    takesSubscribers,
    mailsIncidents: takesSubscribers && options.history !== undefined,
    identify: options.identify
      ? checked(options.identify)
      : jwtIdentify(clock, settings.datastore?.tokens, settings.identity),
    transactionalMail,
    suppressionList,
    checkout,
    heartbeats: async () => (await store()).heartbeats,
    incidents: async () => (await store()).incidents,
    paymentEvents: async () => (await store()).paymentEvents,
    onPaymentEvent: options.onPaymentEvent,
    ingest,
    clock,
    timer: systemClock,
    log,
    health: healthOf(WEB),
    status: statusSource(
      options.history,
      async (now) => {
        const opened = await (settings.store.address?.kind === 'postgres' ? store() : stores.known())
        if (opened === undefined) return {}
        const { incidents, kind } = opened
        return {
          announcements: await incidents.announcements(now),
          updates: await incidents.updates(),
          ...(kind === 'postgres' && { shared: await sharedIncidents(incidents, platform, now) }),
        }
      },
      async (now) => (await sharedHistory())?.read(now),
    ),
    async mailReport() {
      const opened = await stores.known()
      if (!mailer.configured || opened === undefined) return undefined
      const now = clock.now()
      const since = firstOfDays(DAYS_OF_MAIL, now)
      const [counts, holds] = await Promise.all([opened.sending.days(since), opened.sending.holds()])
      return { days: dailyMail(counts, { days: DAYS_OF_MAIL, now }), holds }
    },
    metrics,
  }
  const services = serveAll(parts, limiter, proxies, healthOf)

  const sendEmail = createSendEmail(mailer, clock, platform.mails, { held: mail.held, kept: keptMail })

  let closing: Promise<void> | undefined
  const operations: Operations = {
    sendEmail,
    mail: createSendMail(sendEmail, random),
    async dispatch({ limit: most = settings.dispatch.limit, signal } = {}) {
      if (!(Number.isInteger(most) && most >= 0) && most !== Infinity)
        throw new RangeError('the limit of a dispatch is a whole number, or Infinity for none')
      return (await course()).dispatch({ limit: most, ...(signal && { signal }) })
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
      closing ??= closeAll([
        async () => (await course.opened())?.stopDispatching(),
        async () => (await course.opened())?.close(),
        () => mail.tally.flush(),
        async () => options.mailer ?? mailer.close(),
        async () => (await checkout?.opened())?.close(),
        async () => limiter.close(),
        async () => (await analytics?.opened())?.close(),
        async () => options.store ?? (await store.opened())?.close(),
        async () => await (await sharedHistory.opened())?.close(),
        async () => (settings.store.jobStore ? (await jobStore.opened())?.close() : undefined),
      ])
      return closing
    },
  }
  return {
    ...operations,
    /** The services that this process serves, by name. */
    services,
    /** Loads everything that sending needs, so that files missing or replaced later do not matter. */
    prepareMail: () => mailer.prepare(),
    course,
    suppressionList,
    store,
    ingest,
    analytics,
    mailRefused: mail.refused,
    writeMailCounts: () => mail.tally.flush(),
    sending: mail.sending,
    held: mail.held,
    announceStop() {
      stopping = true
      void course.opened().then(
        (opened) => opened?.stopDispatching(),
        () => {},
      )
    },
    neighbours,
    metrics,
  }
}

/** What the daemon and the CLI use besides the public operations. */
export type OpenedPlatform = ReturnType<typeof openPlatform>

/** Closes one after the other, all of them whatever becomes of one; rejects with the first fault. */
async function closeAll(ends: readonly (() => Promise<unknown>)[]): Promise<void> {
  const faults: unknown[] = []
  for (const end of ends) await end().catch((fault: unknown) => faults.push(fault))
  if (faults.length > 0) throw faults[0]
}

/** A host's own identity is held to the same form as a token's. */
function checked(identify: Identify): Identify {
  return async (request) => {
    const identity = await identify(request)
    return identity === undefined ? undefined : parseIdentity(identity)
  }
}

function storeProbe(open: () => Promise<Store>): StoreProbe {
  return { kind: async () => (await open()).kind, ping: async (options) => (await open()).ping(options) }
}

/** A handler for each service that the platform serves, by name. */
export function handlersOf({ services }: OpenedPlatform): Readonly<Record<Service, Handler>> {
  return Object.fromEntries([...services].map(([name, { handler }]) => [name, handler]))
}
