import { engineVariables } from '../../core/env/groups.ts'
import { FEEDBACK_KINDS } from '../../core/mail/feedback/event.ts'
import { STREAMS } from '../../core/mail/holds.ts'

/** Label → its values, or what they are. Each set is closed, so the number of series is bounded. */
type MetricLabels = Readonly<Record<string, string | readonly string[]>>

export interface MetricRow {
  readonly type: 'counter' | 'gauge' | 'histogram'
  readonly help: string
  readonly labels?: MetricLabels | undefined
  readonly buckets?: readonly number[]
  /** One person's subscription could be inferred from it: for the health token only, or without one configured for this machine. */
  readonly personal?: true
}

const rows = <More extends Pick<MetricRow, 'personal'>>(more: More) => ({
  gauge: (help: string, labels?: MetricLabels) => ({ type: 'gauge', help, labels, ...more }) as const,
  counter: (help: string, labels?: MetricLabels) => ({ type: 'counter', help, labels, ...more }) as const,
  histogram: (help: string, buckets: readonly number[], labels?: MetricLabels) =>
    ({ type: 'histogram', help, buckets, labels, ...more }) as const,
})
const { gauge, counter, histogram } = rows({})
const personal = rows({ personal: true })

const SERVICE = 'the name of a service'
const OF_PROBE = { service: SERVICE, probe: 'the probes of the service' }
const STATE = ['ok', 'degraded', 'failing', 'skipped']
const SHORT = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5]
const LONG = [0.1, 0.5, 1, 5, 10, 30, 60, 300]

const METRICS = {
  platformctl_build_info: gauge('Always 1; the label names the build that runs.', {
    build: 'BUILD_STAMP, `unstamped` without one',
    node: 'the version of Node',
  }),
  platformctl_service_state: gauge('1 for the state that a service was last seen in, 0 for the others.', {
    service: SERVICE,
    state: ['ok', 'degraded', 'failing'],
  }),
  platformctl_probe_state: gauge('1 for the state that a probe was last seen in, 0 for the others.', {
    ...OF_PROBE,
    state: STATE,
  }),
  platformctl_probe_duration_seconds: histogram('Time that live checks took.', SHORT, OF_PROBE),
  platformctl_health_checked_timestamp_seconds: gauge(
    'When a service was last looked at; the daemon looks once a minute.',
    { service: SERVICE },
  ),
  platformctl_history_recorded_timestamp_seconds: gauge(
    'When health was last written to the history that the status page shows.',
  ),
  platformctl_http_requests_total: counter('Requests answered. 429 are those that a rate limit refused.', {
    service: SERVICE,
    method: ['GET', 'HEAD', 'POST', 'OPTIONS', 'other'],
    route: 'the declared path; `(none)`: no route; `(forged)`: by anybody; `… (health)`: of health',
    status: 'the HTTP status',
  }),
  platformctl_http_request_duration_seconds: histogram('Time from a request to its answer.', SHORT, {
    service: SERVICE,
    route: 'as above',
  }),
  platformctl_limiter_counting: gauge(
    '1 for where rate limits count now: fallback is in this process because the shared store does not answer.',
    { where: ['local', 'shared', 'fallback'] },
  ),
  platformctl_dispatches_total: personal.counter(
    'Dispatch calls: completed, paused (courses are paused, or no mail provider was reached), off (mail is not configured) or failed.',
    { result: ['completed', 'paused', 'off', 'failed'] },
  ),
  platformctl_dispatch_duration_seconds: personal.histogram('Time that dispatch calls took.', LONG),
  platformctl_deliveries_total: personal.counter('Lessons that dispatch tried to send, by outcome.', {
    outcome: ['sent', 'failed', 'unknown'],
  }),
  platformctl_messages_total: personal.counter(
    'Attempts of this process to send mail, by outcome; alerts by mail are not among them.',
    { stream: STREAMS.filter((stream) => stream !== 'alert'), outcome: ['sent', 'failed', 'unknown'] },
  ),
  platformctl_lessons_due: personal.gauge('Lessons that are due and can be sent now.'),
  platformctl_lessons_waiting: personal.gauge('Due lessons that wait for another attempt.'),
  platformctl_feedback_total: personal.counter(
    'Bounces, complaints, unsubscribes and deliveries that webhooks of the mail provider reported to this process, each once.',
    { provider: engineVariables.MAILER_FEEDBACK_PROVIDER.of, kind: FEEDBACK_KINDS },
  ),
  platformctl_feedback_webhooks_total: personal.counter(
    'Webhooks of the mail provider: recorded, confirmed (an SNS subscription), not_understood (of unknown form), refused (wrong secret or clock) or forged (unsigned, or while the secret works).',
    { result: ['recorded', 'confirmed', 'not_understood', 'refused', 'forged'] },
  ),
  platformctl_mail_today: personal.gauge(
    'Messages sent and reported since midnight UTC, in all processes of the store: webhooks, `email feedback` and refusals while sending.',
    {
      source: 'the transport of what was sent; of what was reported a provider, `pipe` or `send`',
      kind: ['sent', ...FEEDBACK_KINDS],
    },
  ),
  platformctl_courses_paused: gauge('1 while courses are paused; platformctl course resume ends it.'),
  platformctl_mail_paused: gauge('1 while a stream of mail is paused; platformctl mail resume ends it.', {
    stream: STREAMS,
  }),
  platformctl_confirmations_refused_total: counter(
    'Subscriptions that were not mailed a confirmation because EMAIL_CONFIRMATIONS_PER_DAY is used up.',
  ),
  platformctl_lessons_oldest_due_age_seconds: personal.gauge('Age of the oldest due lesson; 0 when none is.'),
  platformctl_lessons_late: personal.gauge('1 while lessons are late, as in the alert.'),
  platformctl_deliveries_waiting: personal.gauge(
    'Deliveries that need an operator (parked) or have an unknown outcome.',
    { problem: ['parked', 'unknown'] },
  ),
  platformctl_subscriptions: personal.gauge('Subscriptions of the course.', {
    state: ['unconfirmed', 'confirmed', 'unsubscribed'],
  }),
  platformctl_store_up: gauge(
    '1 when the store answered this scrape and its last live check passed: it can be written and no page is damaged. When it did not answer, what is read from it is absent.',
  ),
  platformctl_pool_exhausted_total: counter(
    'Requests that got no connection of the store in time, because every one of the pool was in use.',
  ),
  platformctl_store_size_bytes: personal.gauge('Size of the store, where it is a file.'),
  platformctl_analytics_size_bytes: gauge(
    'Bytes of events that are stored; none are beyond ANALYTICS_TOTAL_MB.',
  ),
  platformctl_analytics_refused_total: counter(
    'Batches of events that were not stored because there was no room: in the budget of all days, of the day, of the client, or on the disk.',
    { reason: ['total', 'day', 'client', 'disk'] },
  ),
  platformctl_store_info: gauge('Always 1; the label names the kind of store.', {
    kind: ['memory', 'sqlite', 'postgres'],
  }),
  platformctl_backup_timestamp_seconds: gauge(
    'When platformctl db backup last made a backup of this store; 0: never. Absent where the store is no file and was never backed up by it.',
  ),
  platformctl_certificate_expires_timestamp_seconds: gauge(
    'When the certificate behind a configured address expires; checked once an hour.',
    { variable: 'the variable that holds the address' },
  ),
  platformctl_certificate_valid: gauge(
    '1 when programs accept the certificate behind a configured address, 0 when they refuse it. Absent while it cannot be read.',
    { variable: 'as above' },
  ),
  platformctl_secrets_refused_total: counter('Requests that were refused for a missing or wrong secret.', {
    secret: ['dispatch', 'health', 'witness'],
    given: ['wrong', 'none'],
  }),
  platformctl_event_loop_delay_seconds: histogram(
    'How late a timer of the daemon runs, looked at twice a second.',
    SHORT,
  ),
  platformctl_event_loop_busy_seconds_total: counter(
    'Time that the event loop was not idle; its rate is the utilisation.',
  ),
  process_start_time_seconds: gauge('When the process started.'),
  process_cpu_seconds_total: counter('CPU time of the process, user and system.'),
  process_resident_memory_bytes: gauge('Memory of the process.'),
  nodejs_heap_size_used_bytes: gauge('JavaScript heap in use.'),
} satisfies Record<string, MetricRow>

export type MetricCatalog = typeof METRICS
export type MetricName = keyof MetricCatalog

/** Every metric of `/metrics`: docs/reference/metrics.md is made from this table, and nothing else can be registered. */
export const ROWS: Readonly<Record<MetricName, MetricRow>> = METRICS
