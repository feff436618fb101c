import { MINUTES, OUTCOME_ALERTS, type OutcomeAlert } from '../src/daemon/metrics/outcomes.ts'

/** The daemon’s own alerts by outcome, as rules for Prometheus. */
export function outcomeRules(): string {
  const alerts: readonly OutcomeAlert[] = Object.values(OUTCOME_ALERTS)
  const rules = alerts.flatMap(({ metric, of = {}, bad, by, least, share = 0, rule }) => {
    if (rule === undefined) return []
    const sum = (matchers: Readonly<Record<string, string>>) => {
      const wanted = Object.entries(matchers).map(([label, pattern]) =>
        pattern.startsWith('!') ? `${label}!~"${pattern.slice(1)}"` : `${label}=~"${pattern}"`,
      )
      const selector = wanted.length === 0 ? '' : `{${wanted.join(', ')}}`
      return `sum${by === undefined ? '' : ` by (${by})`} (increase(${metric}${selector}[${MINUTES}m]))`
    }
    const isBad = sum({ ...of, ...bad })
    // Prometheus extrapolates, so that three events are a little more or less than 3.
    return `      - alert: ${rule.name}
        expr: |
          ${isBad} / ${sum(of)} > ${share}
            and ${isBad} > ${least - 0.5}
        for: 1m
        labels: { severity: ${rule.severity} }
        annotations:
          summary: '${rule.summary}'
          runbook: alerts.md#${rule.name.toLowerCase()}
`
  })
  return rules.join('\n')
}
