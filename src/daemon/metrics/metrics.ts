import type { Counting } from '../../core/access/limit/limiter.ts'
import { OUT_OF_TIME, OUTCOMES, STOPPED } from '../../core/course/dispatch.ts'
import type { Course } from '../../core/course/open.ts'
import type { CourseCounts } from '../../core/course/store.ts'
import type { FeedbackProviderName } from '../../core/env/settings.ts'
import type { HealthReport, ProbeResult } from '../../core/health/probe.ts'
import type { Health } from '../../core/health/runner.ts'
import { type Clock, within } from '../../core/host.ts'
import { lateLessons } from '../../core/incidents/conditions.ts'
import { STREAMS, type StreamName } from '../../core/mail/holds.ts'
import type { Service } from '../../core/service.ts'
import type { Store } from '../../core/store/store.ts'
import { watchOutcomes } from './outcomes.ts'
import { clear, openRegistry, readProcess, startAtZero, watchEventLoop } from './registry.ts'

export interface MetricsOptions {
  readonly build: string | undefined
  readonly counting: () => Counting
  readonly mailConfigured: boolean
  readonly feedbackProvider: FeedbackProviderName | undefined
  /** Undefined while their store is not open. */
  readonly analyticsBytes: () => Promise<number | undefined>
  /** Undefined while no store is open: a scrape opens nothing. */
  readonly knownStore: () => Promise<Pick<Store, 'course' | 'sending' | 'status'> | undefined>
}

export interface Answered {
  readonly service: Service
  readonly method: string
  /** The declared path; undefined if no route matches. */
  readonly route: string | undefined
  readonly status: number
  readonly durationMs: number
  readonly isForged?: true | undefined
}

export type Metrics = ReturnType<typeof openMetrics>

const STATES = ['ok', 'degraded', 'failing', 'skipped'] as const
const METHODS: ReadonlySet<string> = new Set(['GET', 'HEAD', 'POST', 'OPTIONS'])
/** Counting reads every row. Slow counts are cached, so they use at most 1 / COUNTING_SHARE of the time. */
const COUNTING_SHARE = 100
const FELT_MS = 20
/** Less than any scrape's own limit. */
const STORE_DEADLINE_MS = 1000

/** Absent, not 0, while the store does not answer. */
const FROM_STORE = [
  'platformctl_store_size_bytes',
  'platformctl_lessons_due',
  'platformctl_lessons_waiting',
  'platformctl_backup_timestamp_seconds',
  'platformctl_lessons_oldest_due_age_seconds',
  'platformctl_lessons_late',
  'platformctl_deliveries_waiting',
  'platformctl_subscriptions',
  'platformctl_mail_today',
  'platformctl_courses_paused',
  'platformctl_mail_paused',
] as const

export function openMetrics(clock: Clock, options: MetricsOptions) {
  const { build, counting, mailConfigured, feedbackProvider, analyticsBytes, knownStore } = options
  const { metrics, text } = openRegistry()
  metrics.platformctl_build_info.set({ build: build ?? 'unstamped', node: process.versions.node }, 1)
  startAtZero(metrics, 'platformctl_deliveries_total')
  startAtZero(metrics, 'platformctl_dispatches_total')
  startAtZero(metrics, 'platformctl_messages_total')
  startAtZero(metrics, 'platformctl_analytics_refused_total')
  startAtZero(metrics, 'platformctl_secrets_refused_total')
  if (feedbackProvider !== undefined) {
    startAtZero(metrics, 'platformctl_feedback_total', { provider: [feedbackProvider] })
    startAtZero(metrics, 'platformctl_feedback_webhooks_total')
  }
  for (const name of FROM_STORE) clear(metrics, name)
  clear(metrics, 'platformctl_store_up')
  clear(metrics, 'platformctl_analytics_size_bytes')
  clear(metrics, 'platformctl_history_recorded_timestamp_seconds')

  const shown = new Map<string, string>()
  const lookedLive = new Set<Service>()
  const counted = new Map<string, ProbeResult>()
  let storeFailed = false
  let busy: string | undefined

  function showState(service: Service, probe: string | undefined, state: string): void {
    const key = `${service} ${probe ?? ''}`
    if (shown.get(key) === state) return
    shown.set(key, state)
    for (const each of STATES) {
      const value = each === state ? 1 : 0
      if (probe !== undefined) metrics.platformctl_probe_state.set({ service, probe, state: each }, value)
      else if (each !== 'skipped') metrics.platformctl_service_state.set({ service, state: each }, value)
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
        metrics.platformctl_probe_duration_seconds.observe({ service, probe }, result.latencyMs / 1000)
    }
    // A check of the configuration alone must not overwrite the result of a live check with "ok".
    if (!deep && lookedLive.has(service)) return
    if (deep) lookedLive.add(service)
    const kept = report.probes.store ?? report.probes.job_store
    if (kept?.checked) storeFailed = kept.state === 'failing'
    for (const [probe, { state }] of Object.entries(report.probes)) showState(service, probe, state)
    showState(service, undefined, report.state)
    metrics.platformctl_health_checked_timestamp_seconds.set({ service }, clock.now() / 1000)
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
    const store = await knownStore()
    if (store === undefined) return
    const { course, sending } = store
    const now = clock.now()
    const reading = Promise.all([
      course.backlog(now),
      countsOf(() => course.counts(now)),
      store.status(),
      sending.days(now),
      sending.holds(),
      lateLessons(course, mailConfigured, now),
    ])
    const [backlog, counts, status, days, holds, late] = await within(STORE_DEADLINE_MS, reading, silentStore)
    const isHeld = (stream: StreamName) => (holds.some((one) => one.stream === stream) ? 1 : 0)
    metrics.platformctl_courses_paused.set(isHeld('course'))
    for (const stream of STREAMS) metrics.platformctl_mail_paused.set({ stream }, isHeld(stream))
    // Remove yesterday's series, which may have no count today.
    metrics.platformctl_mail_today.reset()
    for (const { source, kind, count } of days) metrics.platformctl_mail_today.inc({ source, kind }, count)
    metrics.platformctl_store_up.set(storeFailed ? 0 : 1)
    metrics.platformctl_store_info.set({ kind: status.kind }, 1)
    if (status.bytes !== undefined) metrics.platformctl_store_size_bytes.set(status.bytes)
    metrics.platformctl_lessons_due.set(backlog.due)
    metrics.platformctl_lessons_waiting.set(backlog.waiting)
    const backupAt = status.backupAt ?? (status.kind === 'sqlite' ? 0 : undefined)
    if (backupAt !== undefined) metrics.platformctl_backup_timestamp_seconds.set(backupAt / 1000)
    const waited = Math.max(0, now - (backlog.oldestDueAt ?? now))
    metrics.platformctl_lessons_oldest_due_age_seconds.set(waited / 1000)
    const areLate = !isHeld('course') && (late.at ?? late.stalledAt) !== undefined
    metrics.platformctl_lessons_late.set(areLate ? 1 : 0)
    for (const problem of ['parked', 'unknown'] as const)
      metrics.platformctl_deliveries_waiting.set({ problem }, counts[problem])
    for (const [state, number] of Object.entries(counts.byState))
      metrics.platformctl_subscriptions.set({ state }, number)
  }

  async function showAnalytics(): Promise<void> {
    const bytes = await within(STORE_DEADLINE_MS, analyticsBytes(), silentStore)
    if (bytes !== undefined) metrics.platformctl_analytics_size_bytes.set(bytes)
  }

  return {
    /** The catalog's metrics by their names, for what is counted where it happens. */
    series: metrics,
    /** `health`: the path of the service's health, whose answers in 5xx are no fault of its own. */
    answered({ route: declared = '(none)', ...answer }: Answered, health?: string): void {
      const { service, method, status, durationMs, isForged } = answer
      const isHealth = declared === health && !declared.includes('health')
      const route = isForged ? '(forged)' : isHealth ? `${declared} (health)` : declared
      const known = METHODS.has(method) ? method : 'other'
      metrics.platformctl_http_requests_total.inc({ service, method: known, route, status })
      metrics.platformctl_http_request_duration_seconds.observe({ service, route }, durationMs / 1000)
    },
    health: (health: Health): Health => ({
      async check(asked) {
        const report = await health.check(asked)
        observe(report, asked.deep)
        return report
      },
    }),
    dispatch:
      (dispatch: Course['dispatch']): Course['dispatch'] =>
      async (asked) => {
        const began = clock.monotonic()
        let result = 'failed'
        try {
          const done = await dispatch(asked)
          for (const outcome of OUTCOMES) metrics.platformctl_deliveries_total.inc({ outcome }, done[outcome])
          const isWhole = [undefined, OUT_OF_TIME, STOPPED].includes(done.reason)
          result = isWhole ? 'completed' : mailConfigured ? 'paused' : 'off'
          return done
        } finally {
          metrics.platformctl_dispatches_total.inc({ result })
          metrics.platformctl_dispatch_duration_seconds.observe((clock.monotonic() - began) / 1000)
        }
      },
    watchOutcomes() {
      const judge = watchOutcomes(metrics, clock)
      return async (...given: Parameters<typeof judge>) => {
        const outcomes = await judge(...given)
        busy = outcomes.store_busy
        return outcomes
      }
    },
    /** What the last judgement said of requests that got no connection of the store. */
    storeBusyReason: () => busy,
    /** The certificate at an address; undefined if it could not be read. */
    certificate(variable: string, found?: { readonly validTo: number; readonly valid: boolean }) {
      if (found === undefined) return metrics.platformctl_certificate_valid.remove({ variable })
      metrics.platformctl_certificate_expires_timestamp_seconds.set({ variable }, found.validTo / 1000)
      metrics.platformctl_certificate_valid.set({ variable }, found.valid ? 1 : 0)
    },
    /** Health is checked and recorded from now on, so the age of the record counts from here. */
    expectRounds(services: readonly Service[]): void {
      const now = clock.now() / 1000
      metrics.platformctl_history_recorded_timestamp_seconds.set(now)
      for (const service of services)
        metrics.platformctl_health_checked_timestamp_seconds.set({ service }, now)
    },
    recorded: () => metrics.platformctl_history_recorded_timestamp_seconds.set(clock.now() / 1000),
    watch: () => watchEventLoop(metrics),
    /** The metrics as text. Never rejects: figures that cannot be read now are left out. */
    async text() {
      readProcess(metrics)
      const now = counting()
      for (const where of ['local', 'shared', 'fallback'])
        metrics.platformctl_limiter_counting.set({ where }, where === now ? 1 : 0)
      await showStore().catch(() => {
        for (const name of FROM_STORE) clear(metrics, name)
        metrics.platformctl_store_up.set(0)
      })
      await showAnalytics().catch(() => clear(metrics, 'platformctl_analytics_size_bytes'))
      return text()
    },
  }
}

function silentStore(): never {
  throw new Error('the store does not answer')
}
