import { FEEDBACK_PROVIDER_NAMES } from '../../core/feedback-providers.ts'
import { FEEDBACK_KINDS } from '../../core/mail/feedback/event.ts'
import { STREAMS } from '../../core/mail/holds.ts'

interface MetricRow {
  readonly type: 'counter' | 'gauge' | 'histogram'
  readonly help: string
  /** Label → the values that it can have. Each set is closed, so the number of series is bounded. */
  readonly labels?: Readonly<Record<string, string>>
  /** Upper bounds in seconds. */
  readonly buckets?: readonly number[]
  /** One person's subscription could be inferred from it: for the health token only, or without one configured for this machine. */
  readonly personal?: true
}

const SERVICE = '`web`, `api`, `agent`'
const PROBE = 'the probes of the service'
const STATE = '`ok`, `degraded`, `failing`, `skipped`'
const PROVIDERS = listOf(FEEDBACK_PROVIDER_NAMES)
const REPORTED = listOf(FEEDBACK_KINDS)
const SHORT = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5] as const
const LONG = [0.1, 0.5, 1, 5, 10, 30, 60, 300] as const

const METRICS = {
  platformctl_build_info: {
    type: 'gauge',
    help: 'Always 1; the label names the build that runs.',
    labels: { build: 'BUILD_STAMP, `unstamped` without one', node: 'the version of Node' },
  },
  platformctl_service_state: {
    type: 'gauge',
    help: '1 for the state that a service was last seen in, 0 for the others.',
    labels: { service: SERVICE, state: '`ok`, `degraded`, `failing`' },
  },
  platformctl_probe_state: {
    type: 'gauge',
    help: '1 for the state that a probe was last seen in, 0 for the others.',
    labels: { service: SERVICE, probe: PROBE, state: STATE },
  },
  platformctl_probe_duration_seconds: {
    type: 'histogram',
    help: 'Time that live checks took.',
    labels: { service: SERVICE, probe: PROBE },
    buckets: SHORT,
  },
  platformctl_health_checked_timestamp_seconds: {
    type: 'gauge',
    help: 'When a service was last looked at; the daemon looks once a minute.',
    labels: { service: SERVICE },
  },
  platformctl_history_recorded_timestamp_seconds: {
    type: 'gauge',
    help: 'When health was last written to the history that the status page shows.',
  },
  platformctl_http_requests_total: {
    type: 'counter',
    help: 'Requests answered. 429 are those that a rate limit refused.',
    labels: {
      service: SERVICE,
      method: '`GET`, `HEAD`, `POST`, `OPTIONS`, `other`',
      route: 'the declared path, `(none)` for an address that is no route',
      status: 'the HTTP status',
    },
  },
  platformctl_http_request_duration_seconds: {
    type: 'histogram',
    help: 'Time from a request to its answer.',
    labels: { service: SERVICE, route: 'as above' },
    buckets: SHORT,
  },
  platformctl_limiter_counting: {
    type: 'gauge',
    help: '1 for where rate limits count now: fallback is in this process because the shared store does not answer.',
    labels: { where: '`local`, `shared`, `fallback`' },
  },
  platformctl_dispatches_total: {
    personal: true,
    type: 'counter',
    help: 'Dispatch calls: completed, paused (the mail provider was not reached), off (mail is not configured) or failed.',
    labels: { result: '`completed`, `paused`, `off`, `failed`' },
  },
  platformctl_dispatch_duration_seconds: {
    personal: true,
    type: 'histogram',
    help: 'Time that dispatch calls took.',
    buckets: LONG,
  },
  platformctl_deliveries_total: {
    personal: true,
    type: 'counter',
    help: 'Lessons that dispatch tried to send, by outcome.',
    labels: { outcome: '`sent`, `failed`, `unknown`' },
  },
  platformctl_lessons_due: {
    personal: true,
    type: 'gauge',
    help: 'Lessons that are due and can be sent now.',
  },
  platformctl_lessons_waiting: {
    personal: true,
    type: 'gauge',
    help: 'Lessons that are due and wait for their next attempt, because one failed.',
  },
  platformctl_feedback_total: {
    personal: true,
    type: 'counter',
    help: 'Bounces, complaints, unsubscribes and deliveries that webhooks of the mail provider reported to this process, each once.',
    labels: { provider: PROVIDERS, kind: REPORTED },
  },
  platformctl_feedback_webhooks_total: {
    personal: true,
    type: 'counter',
    help: 'Webhooks of the mail provider: recorded, confirmed (a new subscription of SNS), not_understood (signed, but of an unknown form) or refused (not signed by the provider).',
    labels: { result: '`recorded`, `confirmed`, `not_understood`, `refused`' },
  },
  platformctl_mail_today: {
    personal: true,
    type: 'gauge',
    help: 'Messages sent and reported since midnight UTC, in all processes of the store: webhooks, `email feedback` and refusals while sending.',
    labels: {
      source: `the transport of what was sent; of what was reported a provider, \`pipe\` or \`send\``,
      kind: `\`sent\`, ${REPORTED}`,
    },
  },
  platformctl_courses_paused: {
    type: 'gauge',
    help: '1 while courses are paused; platformctl course resume ends it.',
  },
  platformctl_mail_paused: {
    type: 'gauge',
    help: '1 while a stream of mail is paused; platformctl mail resume ends it.',
    labels: { stream: STREAMS.map((stream) => `\`${stream}\``).join(', ') },
  },
  platformctl_confirmations_refused_total: {
    type: 'counter',
    help: 'Subscriptions that were not mailed a confirmation because EMAIL_CONFIRMATIONS_PER_DAY is used up.',
  },
  platformctl_lessons_oldest_due_age_seconds: {
    personal: true,
    type: 'gauge',
    help: 'How long the oldest lesson has been due, whatever was tried since; 0 when none is.',
  },
  platformctl_deliveries_waiting: {
    personal: true,
    type: 'gauge',
    help: 'Deliveries that need an operator (parked) or have an unknown outcome.',
    labels: { problem: '`parked`, `unknown`' },
  },
  platformctl_subscriptions: {
    personal: true,
    type: 'gauge',
    help: 'Subscriptions of the course.',
    labels: { state: '`unconfirmed`, `confirmed`, `unsubscribed`' },
  },
  platformctl_store_up: {
    type: 'gauge',
    help: '1 when the store answered this scrape and its last live check passed: it can be written and no page is damaged. When it did not answer, what is read from it is absent.',
  },
  platformctl_store_size_bytes: {
    personal: true,
    type: 'gauge',
    help: 'Size of the store, where it is a file.',
  },
  platformctl_analytics_size_bytes: {
    type: 'gauge',
    help: 'Bytes of events that are stored; none are beyond ANALYTICS_TOTAL_MB.',
  },
  platformctl_analytics_refused_total: {
    type: 'counter',
    help: 'Batches of events that were not stored for want of room: in the budget of all days, of the day, of the client, or on the disk.',
    labels: { reason: '`total`, `day`, `client`, `disk`' },
  },
  platformctl_store_info: {
    type: 'gauge',
    help: 'Always 1; the label names the kind of store.',
    labels: { kind: '`memory`, `sqlite`, `postgres`' },
  },
  platformctl_backup_timestamp_seconds: {
    type: 'gauge',
    help: 'When platformctl db backup last made a backup of this store; 0: never. Absent where the store is no file and was never backed up by it.',
  },
  platformctl_certificate_expires_timestamp_seconds: {
    type: 'gauge',
    help: 'When the certificate behind a configured address ends, looked at once an hour.',
    labels: { variable: 'the variable that holds the address' },
  },
  platformctl_certificate_valid: {
    type: 'gauge',
    help: '1 when programs accept the certificate behind a configured address, 0 when they refuse it. Absent while it cannot be read.',
    labels: { variable: 'as above' },
  },
  platformctl_secrets_refused_total: {
    type: 'counter',
    help: 'Requests that were refused for a missing or wrong secret.',
    labels: { secret: '`dispatch`, `health`', given: '`wrong`, `none`' },
  },
  platformctl_event_loop_delay_seconds: {
    type: 'histogram',
    help: 'How late a timer of the daemon runs, looked at twice a second.',
    buckets: SHORT,
  },
  platformctl_event_loop_busy_seconds_total: {
    type: 'counter',
    help: 'Time that the event loop was not idle; its rate is the utilisation.',
  },
  process_start_time_seconds: { type: 'gauge', help: 'When the process started.' },
  process_cpu_seconds_total: { type: 'counter', help: 'CPU time of the process, user and system.' },
  process_resident_memory_bytes: { type: 'gauge', help: 'Memory of the process.' },
  nodejs_heap_size_used_bytes: { type: 'gauge', help: 'JavaScript heap in use.' },
} as const satisfies Record<string, MetricRow>

/** The names with their types, for the compiler. */
export type MetricCatalog = typeof METRICS
export type MetricName = keyof MetricCatalog

/** Every metric of `/metrics`: docs/reference/metrics.md is made from this table, and nothing else can be registered. */
export const ROWS: Readonly<Record<MetricName, MetricRow>> = METRICS

function listOf(values: readonly string[]): string {
  return values.map((value) => `\`${value}\``).join(', ')
}
