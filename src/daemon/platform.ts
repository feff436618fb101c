import { clientKey, untrustedClient } from '../core/access/client.ts'
import { originPolicy } from '../core/access/cors.ts'
import { type Identify, jwtIdentify, parseIdentity } from '../core/access/identity.ts'
import { localLimiter } from '../core/access/limit/local.ts'
import { openLimiter } from '../core/access/limit/open.ts'
import { policiesOf } from '../core/access/limit/policy.ts'
import { createProxyWatch } from '../core/access/proxy-watch.ts'
import { parseAddress } from '../core/address.ts'
import { REFUSALS } from '../core/analytics/budget.ts'
import { createIngest, type Destination } from '../core/analytics/ingest.ts'
import { type AnalyticsStore, dayOf } from '../core/analytics/store.ts'
import { systemClock } from '../core/clock.ts'
import { openCatalog } from '../core/course/catalog.ts'
import { suppressionHashes } from '../core/course/links.ts'
import { openCourse } from '../core/course/open.ts'
import { readSettings } from '../core/env/read-settings.ts'
import type { Settings, StoreAddress } from '../core/env/settings.ts'
import { malformedStoreSentence, malformedStores, type StoreVariable } from '../core/env/store-address.ts'
import { validate } from '../core/env/validate.ts'
import { PlatformError } from '../core/errors.ts'
import type { ProbeParts, StoreProbe } from '../core/health/definition.ts'
import { logChanges } from '../core/health/log-changes.ts'
import { openProbes } from '../core/health/open-probes.ts'
import { createHealth } from '../core/health/runner.ts'
import { isInstalled } from '../core/installed.ts'
import { silentLog } from '../core/log.ts'
import { createBounceAddresses } from '../core/mail/feedback/bounce-address.ts'
import { createPacer } from '../core/mail/feedback/pacer.ts'
import { dailyMail, firstOfDays } from '../core/mail/feedback/rates.ts'
import { createTally } from '../core/mail/feedback/tally.ts'
import type { Mailer } from '../core/mail/mailer.ts'
import { openMailer } from '../core/mail/open.ts'
import { recipientHashes } from '../core/mail/recipient.ts'
import { createSendEmail } from '../core/mail/send-email.ts'
import { createSuppressingMailer } from '../core/mail/suppressing-mailer.ts'
import { openTransactionalMail } from '../core/mail/transactional.ts'
import type { Platform } from '../core/platform.ts'
import { systemRandom } from '../core/random.ts'
import { ROUTES } from '../core/routes.ts'
import { secret } from '../core/secret.ts'
import { type Service, type ServiceDefinition, WEB } from '../core/service.ts'
import { createLabels } from '../core/status/words.ts'
import { openAnalyticsStore, openStore } from '../core/store/open.ts'
import { type Store, StoreOpenError } from '../core/store/store.ts'
import { openCourses } from './courses.ts'
import type { DaemonParts, Handler, OpenedPlatform, PlatformOptions, ServedService } from './embedding.ts'
import { createApp } from './http/app.ts'
import { bodyMemory } from './http/body-memory.ts'
import { createGate } from './http/gate.ts'
import { createPoll } from './http/poll.ts'
import { openMetrics } from './metrics/metrics.ts'
import { once } from './once.ts'
import { frameOf } from './pages/frame.ts'
import type { Parts } from './parts.ts'
import { healthRoute } from './routes/health.ts'
import { metricsRoute } from './routes/metrics.ts'
import { webTable } from './services/web.ts'
import { statusSource } from './status.ts'

/** As `PlatformOptions`, but somebody has decided which platform it is. */
export type OpenOptions = Omit<PlatformOptions, 'platform'> & DaemonParts & { readonly platform: Platform }

const HOUR_MS = 60 * 60 * 1000
/** What the status page shows operators of mail. */
const DAYS_OF_MAIL = 14

/** The only composition root. Nothing listens, ticks or opens a connection before it is asked to. */
export function openPlatform(options: OpenOptions): OpenedPlatform {
  const { env, platform, clock = systemClock, random = systemRandom, log = silentLog, onLost } = options
  const settings = readSettings(platform, env)
  const startedAt = clock.now()
  const opened = openMailer({
    mail: settings.mail,
    compiled: platform.mails.compiled,
    transport: options.mailer,
    bounceAddresses: async () => (await suppressionList()).bounceAddresses,
  })
  let sending = 0
  let refused: string | undefined
  const sendingStore = async () => (await store()).sending
  const tally = createTally(sendingStore, clock)
  const pacer =
    settings.mailRate === undefined
      ? undefined
      : createPacer({ perSecond: settings.mailRate, store: sendingStore, timer: systemClock })
  /** Where nothing is kept beyond the process, nothing is counted before something else has opened the store. */
  const hasStore = async () =>
    options.store !== undefined ||
    settings.store.address !== undefined ||
    (await store.opened()) !== undefined
  const suppressing = createSuppressingMailer(opened, {
    list: async () => ((await hasStore()) ? suppressionList() : undefined),
    onSent: async (count) => ((await hasStore()) ? tally.add(count) : undefined),
    onUrgent: async () => ((await hasStore()) ? pacer?.passed() : undefined),
    isSignIn: (template) =>
      platform.mails.definitions.find(({ name }) => name === template)?.allowance === 'sign-in',
    clock,
  })
  const mailer: Mailer = {
    ...suppressing,
    async send(mail, signal) {
      sending += 1
      try {
        const outcome = await suppressing.send(mail, signal)
        if (outcome.kind === 'sent') refused = undefined
        if (outcome.kind === 'transient' && outcome.scope === 'sender') refused = outcome.reason
        return outcome
      } finally {
        sending -= 1
      }
    },
  }

  const malformed = malformedStores(env)
  const assertWellFormed = (name: StoreVariable) => {
    if (malformed.includes(name))
      throw new PlatformError('store_unavailable', 'The store is not configured correctly.', {
        cause: new StoreOpenError(malformedStoreSentence(name)),
      })
  }
  const store = once(async () => {
    if (options.store === undefined) assertWellFormed('STORE_URL')
    if (options.store === undefined && settings.store.address === undefined) {
      log.warn(
        'store_in_memory',
        'STORE_URL is not set: subscriptions are kept in memory and end with the process',
      )
    }
    return (
      options.store ??
      openStore(settings.store.address, {
        poolSize: settings.store.poolSize,
        log,
        onLost,
        leaseClock: ownTime(options.clock, settings.store.address),
      })
    )
  })
  let exhaustedAt = Number.NEGATIVE_INFINITY
  const noteExhausted = () => {
    metrics.confirmationRefused()
    if (!confirmationsExhausted())
      log.warn(
        'confirmations_exhausted',
        'the platform has mailed as many confirmations as EMAIL_CONFIRMATIONS_PER_DAY allows in 24 hours',
      )
    exhaustedAt = clock.monotonic()
  }
  const confirmationsExhausted = () => clock.monotonic() - exhaustedAt < HOUR_MS
  const storedKey = (kept: Store, name: string) =>
    kept.getOrCreate(name, () => Buffer.from(random.bytes(32)).toString('base64url'))
  const keys = once(async () => {
    const kept = await store()
    const stored = secret(await storedKey(kept, 'link_key'))
    return {
      linkKey: settings.linkSecret?.current ?? stored,
      // Links that were signed before the secret was set, or under the one before it, go on working.
      oldLinkKeys: [
        ...(settings.linkSecret?.accepted.slice(1) ?? []),
        ...(settings.linkSecret ? [stored] : []),
      ],
      addressKey: secret(await storedKey(kept, 'address_key')),
    }
  })
  const suppressionList = once(async () => {
    const { addressKey, linkKey, oldLinkKeys } = await keys()
    const { feedback } = await store()
    const bounceAddress = settings.mail?.bounceAddress
    return {
      store: feedback,
      sending: await sendingStore(),
      erasureHashes: (identity: string) => suppressionHashes([addressKey, linkKey, ...oldLinkKeys], identity),
      bounceAddresses:
        bounceAddress === undefined ? undefined : createBounceAddresses(bounceAddress, addressKey.reveal()),
      wasSent: (sent: { readonly identity: string; readonly messageId: string }) =>
        feedback.wasSent({ ...sent, recipients: recipientHashes(addressKey.reveal(), sent.identity) }),
    }
  })
  const course = once(async () => {
    const kept = await store()
    const opened = openCourse({
      catalog: await openCatalog(platform.courses),
      store: kept.course,
      persistent: kept.persistent,
      mailer,
      clock,
      random,
      log,
      siteUrl: settings.site.siteUrl,
      confirmationsPerDay: settings.budgets.confirmationsPerDay,
      onExhausted: noteExhausted,
      ...(await keys()),
      ...(pacer && { turn: pacer.turn }),
      async isPaused() {
        await tally.flush()
        const pause = await kept.sending.check(clock.now())
        if (pause) log.warn('courses_paused', `courses are paused: ${pause.reason}`)
        return pause !== undefined
      },
    })
    return { ...opened, dispatch: metrics.dispatch(opened.dispatch) }
  })

  const transactionalMail = once(async () => {
    const opened = await store()
    return openTransactionalMail({
      mails: platform.mails,
      directory: options.directory ?? opened.directory,
      mailer,
      sentMail: opened.sentMail,
      addressKey: secret(await storedKey(opened, 'address_key')),
      async confirmAgain(email) {
        const address = parseAddress(email)
        const answer = address.ok ? await (await course()).confirmAgain(address.identity) : undefined
        return answer === undefined || answer.kind === 'none' ? { kind: 'not_found' } : answer
      },
      siteUrl: settings.site.siteUrl,
      clock,
    })
  })
  const identify = options.identify
    ? checked(options.identify)
    : jwtIdentify({ tokens: settings.datastore?.tokens, claims: settings.identity, clock })
  const policies = policiesOf(settings.limits.perMinute)
  const local = localLimiter(clock)
  const limiter = openLimiter({ sharedStore: settings.sharedStore, clock, log })
  const metrics = openMetrics({
    build: settings.site.buildStamp,
    clock,
    counting: limiter.counting,
    mailConfigured: mailer.configured,
    feedbackProvider: settings.feedback?.provider,
    analyticsBytes: async () => ((await analytics?.opened()) ? ingest.size() : undefined),
    async readStore() {
      const opened = options.store ?? (await store.opened())
      return (
        opened && {
          backlog: () => opened.course.backlog(clock.now()),
          counts: () => opened.course.counts(clock.now()),
          status: () => opened.status(),
          mail: () => opened.sending.days(clock.now()),
          pause: () => opened.sending.pause(),
        }
      )
    },
  })
  const { trustProxy } = settings.site
  const proxies = createProxyWatch({ trustProxy, clock, log })
  const keyOf = clientKey(trustProxy)
  const clientOf: typeof keyOf = (peer) => {
    proxies.note(peer)
    return keyOf(peer)
  }
  const { table } = settings.analytics
  const { address } = settings.store
  const analytics =
    table === undefined || address === undefined
      ? undefined
      : once(() => openAnalyticsStore(address, { table, log, onLost }))
  const { analyticsTotalBytes: totalBytes, analyticsDailyBytes: dailyBytes } = settings.budgets
  let toldRefusal = ''
  const ingest = createIngest({
    events: platform.events,
    destination: destinationOf(settings, analytics),
    budget: { totalBytes, dailyBytes },
    clock,
    onRefused(refusal) {
      metrics.analyticsRefused(refusal)
      // Once a day for each cause: the flood that fills a budget must not fill the log.
      const told = `${refusal} ${dayOf(clock.now())}`
      if (told !== toldRefusal) log.warn('analytics_refused', REFUSALS[refusal], { reason: refusal })
      toldRefusal = told
    },
  })

  const jobStore = once(async () => {
    assertWellFormed('JOB_STORE_URL')
    const address = settings.store.jobStore
    // Its only statement is the ping of health, one at a time.
    return address === undefined ? store() : openStore(address, { poolSize: 1, log, onLost })
  })
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
    mailPause: async () => (await (options.store ?? store.opened()))?.sending.pause(),
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
      (await import('../core/payments/checkout.ts')).openCheckout({
        payments,
        siteUrl: settings.site.siteUrl,
        clock,
        log,
      }),
    )
  const webHealth = healthOf(WEB)
  const parts: Parts = {
    platform,
    labels: createLabels(platform),
    settings,
    course,
    confirmation: options.confirmation ?? platform.confirmation ?? 'link',
    challenge: options.challenge ?? platform.challenge,
    mailConfigured: mailer.configured,
    identify,
    transactionalMail,
    suppressionList,
    checkout,
    heartbeats: async () => (await store()).heartbeats,
    incidents: async () => (await store()).incidents,
    paymentEvents: async () => (await store()).paymentEvents,
    onPaymentEvent: options.onPaymentEvent,
    ingest,
    clock,
    log,
    health: webHealth,
    status: statusSource(options.history),
    async mailReport() {
      const opened = options.store ?? (await store.opened())
      if (!mailer.configured || opened === undefined) return undefined
      const now = clock.now()
      const since = firstOfDays(DAYS_OF_MAIL, now)
      const [counts, paused] = await Promise.all([opened.sending.days(since), opened.sending.pause()])
      return { days: dailyMail(counts, { days: DAYS_OF_MAIL, now }), paused }
    },
    metrics,
  }
  const bodies = bodyMemory(settings.budgets.bodyBytesInFlight)
  const reads = (service: Service, name: string) => platform.contract.find(name)?.services.includes(service)
  const serve = ({ name, health: path }: ServiceDefinition): ServedService => {
    const health = name === WEB ? webHealth : healthOf(name)
    const table =
      name === WEB
        ? webTable(parts)
        : {
            serviceHealth: healthRoute(health, false),
            metrics: metricsRoute(metrics, settings.health.deepToken),
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
      frame: frameOf(platform, name === WEB ? '' : settings.site.siteUrl),
      allowsOrigin: name === WEB ? undefined : originPolicy(settings.site.corsOrigins),
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
  const services = new Map(
    platform.services.flatMap((service) =>
      service.port === undefined ? [] : [[service.name, serve(service)] as const],
    ),
  )

  let closing: Promise<void> | undefined
  return {
    services,
    sendEmail: createSendEmail(mailer, clock, platform.mails.compiled),
    dispatch: async ({ limit: most = settings.dispatch.limit, signal } = {}) =>
      (await course()).dispatch({ limit: most, ...(signal && { signal }) }),
    courses: openCourses(course),
    async health(service, { deep = false } = {}) {
      const served = services.get(service)
      if (served === undefined) throw new RangeError(`this process does not serve ${service}`)
      return served.health.check({ deep })
    },
    validate: () => validate(platform.contract, env),
    close() {
      // What stands on another ends before it. A store or a mailer that was given belongs to who gave it.
      closing ??= closeAll([
        async () => (await course.opened())?.stopDispatching(),
        async () => (await course.opened())?.close(),
        () => tally.flush(),
        async () => options.mailer ?? mailer.close(),
        async () => (await checkout?.opened())?.close(),
        async () => limiter.close(),
        async () => (await analytics?.opened())?.close(),
        async () => options.store ?? (await store.opened())?.close(),
        async () => (settings.store.jobStore ? (await jobStore.opened())?.close() : undefined),
      ])
      return closing
    },
    prepareMail: () => mailer.prepare(),
    course,
    suppressionList,
    store,
    ingest,
    analytics,
    mailRefused: () => refused,
    sending: () => sending,
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

/** Closes one after the other, all of them whatever becomes of one; rejects with the first fault. */
async function closeAll(ends: readonly (() => Promise<unknown>)[]): Promise<void> {
  const faults: unknown[] = []
  for (const end of ends) await end().catch((fault: unknown) => faults.push(fault))
  if (faults.length > 0) throw faults[0]
}

/** A host that brings its own clock has no other time, but for a server's, which it shares with others. */
function ownTime(clock: PlatformOptions['clock'], address: StoreAddress | undefined) {
  return clock === undefined || clock === systemClock || address?.kind === 'postgres' ? undefined : clock.now
}

/** A host's own identity is held to the same form as a token's. */
function checked(identify: Identify): Identify {
  return async (request) => {
    const identity = await identify(request)
    return identity && parseIdentity(identity)
  }
}

/** Where events go, or why they go nowhere; a store that cannot be opened now is a 503, and tried again. */
function destinationOf(
  settings: Settings,
  analytics: (() => Promise<AnalyticsStore>) | undefined,
): Destination {
  if (analytics !== undefined) {
    return {
      store: () =>
        analytics().catch((error: unknown) => {
          throw new PlatformError('store_unavailable', 'The store of analytics cannot be opened now.', {
            cause: error,
          })
        }),
    }
  }
  const reason =
    settings.groups.get('analytics') === 'half-configured'
      ? 'a table is named, but the store is not persistent'
      : 'no table is named, so events are counted by nobody'
  return { store: undefined, reason }
}

function storeProbe(open: () => Promise<Store>): StoreProbe {
  return { kind: async () => (await open()).kind, ping: async (options) => (await open()).ping(options) }
}

/** A handler for each service that the platform serves, by name. */
export function handlersOf({ services }: OpenedPlatform): Readonly<Record<Service, Handler>> {
  return Object.fromEntries([...services].map(([name, { handler }]) => [name, handler]))
}
