import { hostname } from 'node:os'
import { createProxyWatch } from '../core/access/client.ts'
import { type Identify, jwtIdentify, parseIdentity } from '../core/access/identity.ts'
import { openLimiter } from '../core/access/limit/open.ts'
import { createUnderway, once } from '../core/calls.ts'
import { isInstalled } from '../core/env/group-warnings.ts'
import { readSettings } from '../core/env/settings.ts'
import { fingerprintAll } from '../core/fingerprints.ts'
import { openProbes, type ProbeParts, type StoreProbe } from '../core/health/probe.ts'
import { createHealth, logChanges } from '../core/health/runner.ts'
import type { Host, Log } from '../core/host.ts'
import { dailyMail, firstOfDays } from '../core/mail/feedback/sending.ts'
import { useProxies } from '../core/network/proxy.ts'
import { answerInTime } from '../core/own-code.ts'
import type { Service } from '../core/service.ts'
import { createLabels } from '../core/status/words.ts'
import { openSharedHistory } from '../core/store/open.ts'
import type { Store } from '../core/store/store.ts'
import { watchClock } from './clock-watch.ts'
import type { OpenOptions } from './embedding.ts'
import { type Metrics, openMetrics } from './metrics/metrics.ts'
import { openAnalytics } from './open/analytics.ts'
import { openCoursePart } from './open/course.ts'
import { isRefusalOver, openMail } from './open/mail.ts'
import { openStores } from './open/stores.ts'
import { sharedIncidents, statusSource } from './status.ts'

/** Days of mail figures that the status page shows to operators. */
const DAYS_OF_MAIL = 2 * 7

export type App = ReturnType<typeof openApp>

/** The only composition root. Nothing listens, ticks or opens a connection before it is asked to. */
export function openApp(host: Host, options: OpenOptions) {
  const { env, platform } = options
  const { clock, random, log } = host
  useProxies(env)
  const settings = readSettings(platform, env)
  const { site, payments, health } = settings
  const startedAt = clock.now()
  const stores = openStores(host, options, settings)
  const { store, known } = stores
  const ownHosts = [...settings.addresses.values()].map((url) => new URL(url).hostname)
  const clockWatch = watchClock(host, new Set(['localhost', ...ownHosts]))
  const mailService = openMail(
    host,
    options,
    settings,
    stores,
    (stream, outcome) => metrics.series.platformctl_messages_total.inc({ stream, outcome }),
    clockWatch.note,
  )
  const { mailer } = mailService
  const limiter = openLimiter(host, settings.sharedStore)
  const { ingest, analytics } = openAnalytics(host, options, settings, (reason) =>
    metrics.series.platformctl_analytics_refused_total.inc({ reason }),
  )
  const metrics: Metrics = openMetrics(clock, {
    build: site.buildStamp,
    counting: limiter.counting,
    mailConfigured: mailer.configured,
    feedbackProvider: settings.feedback?.provider,
    analyticsBytes: async () => ((await analytics?.opened()) ? ingest.size() : undefined),
    knownStore: known,
  })
  const courses = openCoursePart(host, options, settings, stores, mailService, metrics)
  const sharedHistory = once(async () =>
    options.store === undefined && settings.store.address
      ? openSharedHistory(settings.store.address, log)
      : undefined,
  )
  const proxies = createProxyWatch(host, site.trustProxy)
  let keysMissing = false
  const heardOfKeys = (available: boolean) => {
    if (available !== keysMissing) return
    keysMissing = !available
    if (available) log.info('identity_keys_back', 'the keys that tokens are verified with are back')
    else log.warn('identity_keys_missing', 'DATASTORE_JWKS_URL gives no keys to verify tokens with')
  }
  const { sourceOf, replica = `${hostname()}:${process.pid}` } = options.sources ?? {}
  const configuration = once(() => fingerprintAll(platform, env, (name) => sourceOf?.(name) !== 'default'))
  const neighbours = new Map<Service, string | null>()
  const probeParts: ProbeParts = {
    settings,
    counting: limiter.counting,
    random,
    clock,
    store: storeProbe(store),
    jobStore: storeProbe(stores.jobStore),
    verifyMail: (signal) => mailer.verify(signal),
    hasOwnMailer: options.mailer !== undefined,
    pingAnalytics: async () => {
      await (await analytics?.())?.ping()
      await ingest.size()
    },
    analyticsFull: ingest.full,
    confirmationsExhausted: courses.confirmationsExhausted,
    heartbeat: async (input) => (await store()).heartbeats.expect(input),
    mailHolds: async () => (await known())?.sending.holds() ?? [],
    mailRefused: async () => {
      if (!mailService.refused()) return false
      return !isRefusalOver(mailService.failure(), (await (await known())?.sending.lastMail())?.sentAt)
    },
    isConfiguredApart: async () => {
      const [{ noteConfiguration }, own] = await Promise.all([store(), configuration()])
      return (await noteConfiguration(replica, own, clock.now())).some((other) => other !== own)
    },
    untrustedProxy: proxies.seen,
    keysMissing: () => keysMissing,
    hasPackage: isInstalled,
    network: { onDate: clockWatch.note },
    storeBusy: () => metrics.storeBusyReason(),
    noteBuild: (service, build) => neighbours.set(service, build),
  }
  let stopping = false
  const definition = health.deepToken === undefined ? undefined : platform.definition
  const challenge = options.challenge ?? platform.challenge
  // The form has no answer to a host's own challenge.
  const takesSubscribers =
    mailer.configured && challenge === undefined && platform.contract.group('mail') !== undefined

  return {
    ...host,
    platform,
    labels: createLabels(platform),
    settings,
    stores,
    store,
    mailService,
    limiter,
    proxies,
    metrics,
    ingest,
    /** Where ingest stores, opened when first asked for; undefined when it stores nothing. */
    analytics,
    ...courses,
    sharedHistory,
    /** Builds of services in other processes, from their health answers. */
    neighbours,
    clockWatch,
    /** Groups that the embedding program has something of its own for: nothing of them is off. */
    replaced: [mailer.configured && 'mail', options.identify && 'datastore'],
    started: {
      ...options.sources,
      at: startedAt,
      env,
      /** As its files were then: they may change while the process runs. */
      platform: {
        name: platform.name,
        fingerprint: definition?.fingerprint() ?? null,
        lessons: definition?.lessons() ?? null,
      },
    },
    /** How a confirmation link confirms: by being opened, or by a button on its page. */
    confirmation: options.confirmation ?? platform.confirmation ?? 'link',
    challenge,
    takesSubscribers,
    /** Incidents are mailed to visitors who subscribe to them. */
    mailsIncidents: takesSubscribers && options.history !== undefined,
    identify: options.identify
      ? checked(options.identify, log)
      : jwtIdentify(clock, settings.datastore?.tokens, settings.identity, undefined, heardOfKeys),
    onPaymentEvent: options.onPaymentEvent,
    underway: createUnderway(),
    checkout:
      payments &&
      once(async () =>
        (await import('../core/payments/checkout.ts')).openCheckout(host, payments, site.siteUrl),
      ),
    healthOf: (service: Service) =>
      metrics.health(
        logChanges(
          createHealth({
            service,
            probes: openProbes(platform.probes, service, probeParts),
            clock,
            build: site.buildStamp,
            startedAt,
            stopping: () => stopping,
          }),
          log,
        ),
      ),
    status: statusSource(
      options.history,
      async (now) => {
        const opened = await (settings.store.address?.kind === 'postgres' ? store() : known())
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
    /** Undefined while mail is not configured or no store is open. */
    async mailReport() {
      const opened = await known()
      if (!mailer.configured || opened === undefined) return undefined
      const now = clock.now()
      const since = firstOfDays(DAYS_OF_MAIL, now)
      const [counts, holds] = await Promise.all([opened.sending.days(since), opened.sending.holds()])
      return { days: dailyMail(counts, { days: DAYS_OF_MAIL, now }), holds }
    },
    /** From now on health is failing, so that load balancers send traffic elsewhere. */
    announceStop() {
      stopping = true
      void courses.course.opened().then(
        (opened) => opened?.stopDispatching(),
        () => {},
      )
    },
  }
}

/** A host's own identity is held to the same form as a token's, and given in time. */
function checked(identify: Identify, log: Log): Identify {
  return (request) =>
    answerInTime(async () => parseIdentity(await identify(request)), {
      log,
      event: 'identify_fault',
      sentence: 'The sender of this request cannot be verified now; try again in a minute.',
    })
}

function storeProbe(open: () => Promise<Store>): StoreProbe {
  return { kind: async () => (await open()).kind, ping: async (options) => (await open()).ping(options) }
}
