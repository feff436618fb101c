import type { Line, Summary } from './summary.ts'
import { duration, type Labels, listed } from './words.ts'

/** The state of everything in one sentence; who reads no further knows what matters. */
export function verdict(summary: Summary, labels: Labels): string {
  const { services, state, now, checkedAt } = summary
  if (checkedAt === undefined) return 'No history is recorded yet'
  const silent = services.filter(({ whole }) => whole.state === 'unknown')
  if (silent.length === services.length) return `Nothing has been recorded for ${duration(now - checkedAt)}`
  const named = (one: Line) =>
    one.probe === ''
      ? labels.service(one.service)
      : `${labels.probe(one.probe)} (${labels.service(one.service)})`
  const troubled = (wanted: 'degraded' | 'failing') =>
    services.flatMap((service): Line[] => {
      const causes = service.probes.filter(
        (probe) => probe.state === wanted && !follows(probe, summary, labels),
      )
      if (causes.length > 0) return causes
      return service.probes.length === 0 && service.whole.state === wanted ? [service.whole] : []
    })
  const sentence = (lines: readonly Line[], how: string) =>
    `${listed(lines.map(named))} ${lines.length === 1 ? 'is' : 'are'} ${how}`
  if (state === 'failing') return sentence(troubled('failing'), 'failing')
  if (silent.length > 0)
    return `Nothing is known of ${listed(silent.map(({ service }) => labels.service(service)))} now; the rest works`
  if (state === 'degraded')
    return `Everything works, with limits: ${sentence(troubled('degraded'), 'degraded')}`
  return 'Everything works'
}

/** A probe of a neighbour that is itself in trouble: the cause stands in the neighbour's own lines. */
function follows(probe: Line, summary: Summary, labels: Labels): boolean {
  const neighbour = labels.isService(probe.probe)
    ? summary.services.find(({ service }) => service === probe.probe)
    : undefined
  if (neighbour?.seenFrom !== undefined) return true
  return (neighbour?.probes ?? []).some(
    (one) => one.state === probe.state && (!labels.isService(one.probe) || follows(one, summary, labels)),
  )
}
