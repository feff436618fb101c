import type { Counting } from '../../core/access/limit/limiter.ts'
import type { Refusal } from '../../core/analytics/store.ts'
import type { Clock } from '../../core/clock.ts'
import { type Course, type DispatchResult, OUT_OF_TIME, STOPPED } from '../../core/course/course.ts'
import type { Backlog, CourseCounts } from '../../core/course/store.ts'
import type { FeedbackProviderName } from '../../core/feedback-providers.ts'
import type { HealthReport, ProbeResult } from '../../core/health/probe.ts'
import type { Health } from '../../core/health/runner.ts'
import { FEEDBACK_KINDS, type FeedbackKind } from '../../core/mail/feedback/event.ts'
import type { MailDayCount } from '../../core/mail/feedback/sending.ts'
import { type Hold, STREAMS, type StreamName } from '../../core/mail/holds.ts'
import type { Service } from '../../core/service.ts'
import type { StoreStatus } from '../../core/store/store.ts'
import { within } from '../../core/wait.ts'
import { openRegistry, readProcess, watchEventLoop } from './registry.ts'

export interface MetricsOptions {
  readonly build: string | undefined
  readonly clock: Clock
  readonly counting: () => Counting
  readonly mailConfigured: boolean
  /** Undefined: this platform takes no feedback. */
  readonly feedbackProvider: FeedbackProviderName | undefined
  /** Size of the analytics; undefined while their store is not open. */
  readonly analyticsBytes: () => Promise<number | undefined>
  /** Undefined while no store is open: a scrape opens nothing. */
  readonly readStore: () => Promise<
    | {
        readonly backlog: () => Promise<Backlog>
        readonly counts: () => Promise<CourseCounts>
        readonly status: () => Promise<StoreStatus>
        /** Mails of today. */
        readonly mail: () => Promise<readonly MailDayCount[]>
        readonly holds: () => Promise<readonly Hold[]>
      }
    | undefined
  >
}

export interface Answered {
  readonly service: Service
  readonly method: string
  /** The declared path; undefined if no route matches. */
  readonly route: string | undefined
  readonly status: number
  readonly durationMs: number
}

export interface Metrics {
  answered(request: Answered): void
  /** Wraps a service's health so that each check is counted. */
  health(health: Health): Health
  /** Wraps dispatch so that each run is counted. */
  dispatch(dispatch: Course['dispatch']): Course['dispatch']
  /** A batch of events was not stored for want of room. */
  analyticsRefused(reason: Refusal): void
  /** A confirmation was not mailed because the budget of the day is used up. */
  confirmationRefused(): void
  /** A webhook of the mail provider was answered; `kinds` are those of the events that it reported for the first time. */
  feedback(provider: FeedbackProviderName, result: FeedbackResult, kinds?: readonly FeedbackKind[]): void
  /** How many webhooks were refused. */
  feedbackRefused(): number
  /** Health was written to the history. */
  recorded(): void
  /** Health is checked and recorded from now on, so the age of the record counts from here. */
  expectRounds(services: readonly Service[]): void
  /** A request was refused for want of a secret. */
  secretRefused(name: 'dispatch' | 'health' | 'witness', given: 'wrong' | 'none'): void
  /** The certificate at an address; undefined if it could not be read. */
  certificate(
    variable: string,
    found: { readonly validTo: number; readonly valid: boolean } | undefined,
  ): void
  /** Starts to measure the event loop, and returns a function that stops it. */
  watch(): () => void
  /** The metrics as text. Never rejects: figures that cannot be read now are left out. */
  text(): Promise<{ readonly type: string; readonly body: string }>
}

export type FeedbackResult = 'recorded' | 'confirmed' | 'not_understood' | 'refused'

const FEEDBACK_RESULTS: readonly FeedbackResult[] = ['recorded', 'confirmed', 'not_understood', 'refused']
const STATES = ['ok', 'degraded', 'failing', 'skipped'] as const
const RESULTS = ['completed', 'paused', 'off', 'failed'] as const
const METHODS: ReadonlySet<string> = new Set(['GET', 'HEAD', 'POST', 'OPTIONS'])
/** Counting reads every row. Slow counts are cached, so they use at most 1 / COUNTING_SHARE of the time. */
const COUNTING_SHARE = 100
const FELT_MS = 20
/** Less than any scrape's own limit. */
const STORE_DEADLINE_MS = 1000

export function openMetrics({
  build,
  clock,
  counting,
  mailConfigured,
  feedbackProvider,
  analyticsBytes,
  readStore,
}: MetricsOptions): Metrics {
  const registry = openRegistry()
  const requests = registry.counter('platformctl_http_requests_total')
  const durations = registry.histogram('platformctl_http_request_duration_seconds')
  const deliveries = registry.counter('platformctl_deliveries_total')
  const dispatches = registry.counter('platformctl_dispatches_total')
  registry
    .gauge('platformctl_build_info')
    .set({ build: build ?? 'unstamped', node: process.versions.node }, 1)
  // From the start at 0: a rate needs a value before the first event.
  for (const outcome of ['sent', 'failed', 'unknown']) deliveries.inc({ outcome }, 0)
  for (const result of RESULTS) dispatches.inc({ result }, 0)
  for (const reason of ['total', 'day', 'client', 'disk'])
    registry.counter('platformctl_analytics_refused_total').inc({ reason }, 0)
  const refusals = registry.counter('platformctl_secrets_refused_total')
  for (const name of ['dispatch', 'health', 'witness'])
    for (const given of ['wrong', 'none']) refusals.inc({ secret: name, given }, 0)
  const reported = registry.counter('platformctl_feedback_total')
  let refused = 0
  const webhooks = registry.counter('platformctl_feedback_webhooks_total')
  if (feedbackProvider !== undefined) {
    for (const kind of FEEDBACK_KINDS) reported.inc({ provider: feedbackProvider, kind }, 0)
    for (const result of FEEDBACK_RESULTS) webhooks.inc({ result }, 0)
  }
  // Values that are not known yet are absent, not 0.
  const unknown = [
    'platformctl_store_up',
    'platformctl_analytics_size_bytes',
    'platformctl_history_recorded_timestamp_seconds',
  ] as const
  for (const name of [...FROM_STORE, ...unknown]) registry.clear(name)

  const shown = new Map<string, string>()
  const lookedLive = new Set<Service>()
  const counted = new Map<string, ProbeResult>()
  let storeFailed = false

  function showState(service: Service, probe: string | undefined, state: string): void {
    const key = `${service} ${probe ?? ''}`
    if (shown.get(key) === state) return
    shown.set(key, state)
    for (const each of STATES) {
      const value = each === state ? 1 : 0
      if (probe !== undefined)
        registry.gauge('platformctl_probe_state').set({ service, probe, state: each }, value)
      else if (each !== 'skipped')
        registry.gauge('platformctl_service_state').set({ service, state: each }, value)
    }
  }

  function observe(report: HealthReport, deep: boolean): void {
    const { service } = report
    for (const [probe, result] of Object.entries(report.probes)) {
      // Requests at the same time share one run: it took its time once.
      const key = `${service} ${probe} ${deep}`
      if (counted.get(key) === result) continue
      counted.set(key, result)
      if (result.latencyMs !== undefined)
        registry
          .histogram('platformctl_probe_duration_seconds')
          .observe({ service, probe }, result.latencyMs / 1000)
    }
    // A check of the configuration alone must not overwrite the result of a live check with "ok".
    if (!deep && lookedLive.has(service)) return
    if (deep) lookedLive.add(service)
    const kept = report.probes.store ?? report.probes.job_store
    if (kept?.checked) storeFailed = kept.state === 'failing'
    for (const [probe, { state }] of Object.entries(report.probes)) showState(service, probe, state)
    showState(service, undefined, report.state)
    registry.gauge('platformctl_health_checked_timestamp_seconds').set({ service }, clock.now() / 1000)
  }

  let lastCount: { readonly counts: CourseCounts; readonly until: number } | undefined
  async function countsOf(read: () => Promise<CourseCounts>): Promise<CourseCounts> {
    const began = clock.monotonic()
    if (lastCount && began < lastCount.until) return lastCount.counts
    const counts = await read()
    const ended = clock.monotonic()
    const took = ended - began
    if (took > FELT_MS) lastCount = { counts, until: ended + took * COUNTING_SHARE }
    return counts
  }

  async function showStore(): Promise<void> {
    const store = await readStore()
    if (store === undefined) return
    const [backlog, counts, status, mail, holds] = await within(
      STORE_DEADLINE_MS,
      Promise.all([store.backlog(), countsOf(store.counts), store.status(), store.mail(), store.holds()]),
      silentStore,
    )
    const isHeld = (stream: StreamName) => (holds.some((one) => one.stream === stream) ? 1 : 0)
    registry.gauge('platformctl_courses_paused').set(isHeld('course'))
    for (const stream of STREAMS) registry.gauge('platformctl_mail_paused').set({ stream }, isHeld(stream))
    const today = registry.gauge('platformctl_mail_today')
    // Remove yesterday's series, which may have no count today.
    today.reset()
    for (const { source, kind, count } of mail) today.inc({ source, kind }, count)
    registry.gauge('platformctl_store_up').set(storeFailed ? 0 : 1)
    registry.gauge('platformctl_store_info').set({ kind: status.kind }, 1)
    if (status.bytes !== undefined) registry.gauge('platformctl_store_size_bytes').set(status.bytes)
    registry.gauge('platformctl_lessons_due').set(backlog.due)
    registry.gauge('platformctl_lessons_waiting').set(backlog.waiting)
    const backupAt = status.backupAt ?? (status.kind === 'sqlite' ? 0 : undefined)
    if (backupAt !== undefined) registry.gauge('platformctl_backup_timestamp_seconds').set(backupAt / 1000)
    const waited = backlog.oldestDueAt === undefined ? 0 : Math.max(0, clock.now() - backlog.oldestDueAt)
    registry.gauge('platformctl_lessons_oldest_due_age_seconds').set(waited / 1000)
    for (const problem of ['parked', 'unknown'] as const)
      registry.gauge('platformctl_deliveries_waiting').set({ problem }, counts[problem])
    for (const [state, number] of Object.entries(counts.byState))
      registry.gauge('platformctl_subscriptions').set({ state }, number)
  }

  async function showAnalytics(): Promise<void> {
    const bytes = await within(STORE_DEADLINE_MS, analyticsBytes(), silentStore)
    if (bytes !== undefined) registry.gauge('platformctl_analytics_size_bytes').set(bytes)
  }

  return {
    analyticsRefused: (reason) => registry.counter('platformctl_analytics_refused_total').inc({ reason }),
    feedbackRefused: () => refused,
    feedback(provider, result, kinds = []) {
      if (result === 'refused') refused += 1
      webhooks.inc({ result })
      for (const kind of kinds) reported.inc({ provider, kind })
    },
    confirmationRefused: () => registry.counter('platformctl_confirmations_refused_total').inc(),
    answered({ service, method, route = '(none)', status, durationMs }) {
      requests.inc({ service, method: METHODS.has(method) ? method : 'other', route, status })
      durations.observe({ service, route }, durationMs / 1000)
    },
    health: (health) => ({
      async check(options) {
        const report = await health.check(options)
        observe(report, options.deep)
        return report
      },
    }),
    dispatch: (dispatch) => async (options) => {
      const began = clock.monotonic()
      const ended = (result: (typeof RESULTS)[number]) => {
        dispatches.inc({ result })
        registry
          .histogram('platformctl_dispatch_duration_seconds')
          .observe((clock.monotonic() - began) / 1000)
      }
      let result: DispatchResult
      try {
        result = await dispatch(options)
      } catch (error) {
        ended('failed')
        throw error
      }
      for (const outcome of ['sent', 'failed', 'unknown'] as const)
        deliveries.inc({ outcome }, result[outcome])
      ended(
        result.reason === undefined || result.reason === OUT_OF_TIME || result.reason === STOPPED
          ? 'completed'
          : mailConfigured
            ? 'paused'
            : 'off',
      )
      return result
    },
    secretRefused: (name, given) => refusals.inc({ secret: name, given }),
    certificate(variable, found) {
      const ends = registry.gauge('platformctl_certificate_expires_timestamp_seconds')
      const valid = registry.gauge('platformctl_certificate_valid')
      if (found) {
        ends.set({ variable }, found.validTo / 1000)
        valid.set({ variable }, found.valid ? 1 : 0)
      } else valid.remove({ variable })
    },
    expectRounds(services) {
      const now = clock.now() / 1000
      registry.gauge('platformctl_history_recorded_timestamp_seconds').set(now)
      for (const service of services)
        registry.gauge('platformctl_health_checked_timestamp_seconds').set({ service }, now)
    },
    recorded: () => registry.gauge('platformctl_history_recorded_timestamp_seconds').set(clock.now() / 1000),
    watch: () => watchEventLoop(registry),
    async text() {
      readProcess(registry)
      const where = counting()
      for (const each of ['local', 'shared', 'fallback'])
        registry.gauge('platformctl_limiter_counting').set({ where: each }, each === where ? 1 : 0)
      await showStore().catch(() => {
        for (const name of FROM_STORE) registry.clear(name)
        registry.gauge('platformctl_store_up').set(0)
      })
      await showAnalytics().catch(() => registry.clear('platformctl_analytics_size_bytes'))
      return registry.text()
    },
  }
}

const FROM_STORE = [
  'platformctl_store_size_bytes',
  'platformctl_lessons_due',
  'platformctl_lessons_waiting',
  'platformctl_backup_timestamp_seconds',
  'platformctl_lessons_oldest_due_age_seconds',
  'platformctl_deliveries_waiting',
  'platformctl_subscriptions',
  'platformctl_mail_today',
  'platformctl_courses_paused',
  'platformctl_mail_paused',
] as const

function silentStore(): never {
  throw new Error('the store does not answer')
}
