import { MINUTE_MS } from '../../core/durations.ts'
import type { Clock } from '../../core/host.ts'
import type { ConditionName } from '../../core/incidents/advice.ts'
import type { CounterName, MetricSet } from './registry.ts'

/** Label → a regular expression of its whole value; with `!` before it, of the values that do not count. */
type Matchers = Readonly<Record<string, string>>

/** In ten minutes at least `least` outcomes were bad, and more than `share` (default 0) of all. */
export interface OutcomeAlert {
  readonly metric: CounterName
  /** Which series count at all, and which of them are bad; by default all. */
  readonly of?: Matchers
  readonly bad?: Matchers
  /** The label whose values are judged apart. */
  readonly by?: string
  readonly least: number
  readonly share?: number
  readonly reason: (bad: number, all: number, by: string) => string
  /** The rule of runbooks/alerts.yaml; without it, the daemon alone tells. */
  readonly rule?: { readonly name: string; readonly severity: 'page' | 'ticket'; readonly summary: string }
}

export const MINUTES = 10

/** Alerts by outcome: the daemon's own alerts and rules of runbooks/alerts.yaml are both made from this table. */
export const OUTCOME_ALERTS = {
  mail_failing: {
    metric: 'platformctl_messages_total',
    bad: { outcome: 'failed|unknown' },
    by: 'stream',
    least: 10,
    share: 0.2,
    reason: (bad, all, stream) => `${bad} of ${all} attempts to send ${stream} mail failed`,
    rule: {
      name: 'PlatformDeliveriesFailing',
      severity: 'ticket',
      summary: '{{ $value | humanizePercentage }} of the attempts to send {{ $labels.stream }} mail fail',
    },
  },
  requests_failing: {
    metric: 'platformctl_http_requests_total',
    of: { route: '!.*(health|forged).*' },
    bad: { status: '5..' },
    by: 'route',
    least: 5,
    share: 0.05,
    reason: (bad, all, route) => `${bad} of ${all} requests to ${route} were answered with an error (5xx)`,
    rule: {
      name: 'PlatformErrors',
      severity: 'page',
      summary:
        '{{ $value | humanizePercentage }} of the answers of {{ $labels.route }} are errors of its own',
    },
  },
  calls_refused: {
    metric: 'platformctl_http_requests_total',
    // Called by programs that give up: what they are refused is lost. What anybody can ask for is not among it.
    of: { route: '/api/email/unsubscribe|/api/payments/webhook', status: '!40[45]' },
    bad: { status: '40[0-36-9]|4[1-9].|5..' },
    by: 'route',
    least: 3,
    share: 0.5,
    reason: (bad, all, route) => `${bad} of ${all} requests to ${route} were refused (4xx or 5xx)`,
    rule: {
      name: 'PlatformCallsRefused',
      severity: 'ticket',
      summary: '{{ $value | humanizePercentage }} of the requests to {{ $labels.route }} are refused',
    },
  },
  feedback_refused: {
    metric: 'platformctl_feedback_webhooks_total',
    bad: { result: 'refused' },
    // Those that anybody can make do not count; a provider whose secret was changed repeats its own.
    least: 3,
    reason: (bad) => `${bad} webhooks were refused: wrong secret or clock`,
    rule: {
      name: 'PlatformFeedbackRefused',
      severity: 'ticket',
      summary: 'Webhooks of the mail provider are refused for their signature',
    },
  },
  store_busy: {
    metric: 'platformctl_pool_exhausted_total',
    least: 3,
    reason: (bad) => `${bad} requests got no connection of the store in time`,
  },
} as const satisfies Partial<Record<ConditionName, OutcomeAlert>>

export type OutcomeName = keyof typeof OUTCOME_ALERTS
const ALERTS = Object.entries(OUTCOME_ALERTS) as [OutcomeName, OutcomeAlert][]

/** Why each alert is raised; undefined: it is not. Left out while that is not known, in the first minutes. */
export type Outcomes = Readonly<Partial<Record<OutcomeName, string | undefined>>>

/** Call it every minute. What was counted while another fault explained it raises no alert once that fault is over. */
export function watchOutcomes(metrics: MetricSet, clock: Pick<Clock, 'monotonic'>) {
  const startedAt = clock.monotonic()
  let looks: { readonly at: number; readonly counts: readonly Counts[] }[] = [{ at: startedAt, counts: [] }]
  let explained: readonly boolean[] = []
  return async (isExplained: (name: OutcomeName) => boolean = () => false) => {
    const now = clock.monotonic()
    const counts = await Promise.all(ALERTS.map(([, alert]) => countsOf(metrics, alert)))
    looks = looks.map(({ at, counts: then }) => ({
      at,
      counts: counts.map((own, index) => (explained[index] ? own : (then[index] ?? new Map()))),
    }))
    explained = ALERTS.map(([name]) => isExplained(name))
    looks = [...looks.filter(({ at }) => now - at <= MINUTES * MINUTE_MS), { at: now, counts }]
    const before = looks[0]?.counts ?? counts
    const isKnown = now - startedAt >= MINUTES * MINUTE_MS
    const reasons = ALERTS.map(([name, alert], index) => {
      const failing = [...(counts[index] ?? [])].flatMap(([by, { bad, all }]) => {
        const then = before[index]?.get(by) ?? { bad: 0, all: 0 }
        const badNow = bad - then.bad
        const allNow = all - then.all
        return badNow >= alert.least && badNow > allNow * (alert.share ?? 0)
          ? [alert.reason(badNow, allNow, by)]
          : []
      })
      return [name, failing.length === 0 ? undefined : `within ten minutes ${failing.join('; ')}`]
    })
    return Object.fromEntries(reasons.filter(([, reason]) => isKnown || reason !== undefined)) as Outcomes
  }
}

type Counts = ReadonlyMap<string, { readonly bad: number; readonly all: number }>

async function countsOf(metrics: MetricSet, { metric, of = {}, bad = {}, by }: OutcomeAlert) {
  const counts = new Map<string, { bad: number; all: number }>()
  for (const { labels, value } of (await metrics[metric].get()).values) {
    const texts = labels as Readonly<Record<string, string | number>>
    if (!matches(texts, of)) continue
    const key = by === undefined ? '' : String(texts[by])
    const one = counts.get(key) ?? { bad: 0, all: 0 }
    counts.set(key, one)
    one.all += value
    if (matches(texts, bad)) one.bad += value
  }
  return counts
}

const matches = (labels: Readonly<Record<string, string | number>>, matchers: Matchers) =>
  Object.entries(matchers).every(([label, pattern]) => {
    const [isNot, text] = pattern.startsWith('!') ? [true, pattern.slice(1)] : [false, pattern]
    return new RegExp(`^(?:${text})$`).test(String(labels[label])) !== isNot
  })
