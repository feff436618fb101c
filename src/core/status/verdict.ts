import { dependsOn } from '../incidents/prerequisites.ts'
import type { Line, Summary } from './summary.ts'
import type { Labels } from './words.ts'

/** The state of everything in one sentence, with what matters most. */
export function verdict(summary: Summary, labels: Labels): string {
  const { services, state, now, checkedAt } = summary
  const T = labels.messages.status
  if (checkedAt === undefined) return T.noHistory
  const silent = services.filter(({ whole }) => whole.state === 'unknown')
  if (silent.length === services.length) return T.silentFor(now - checkedAt)
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
  if (state === 'failing') return T.areFailing(short(troubled('failing').map(named), T.more))
  if (silent.length > 0) return T.unknown(silent.map(({ service }) => labels.service(service)))
  if (state === 'degraded') return T.areDegraded(short(troubled('degraded').map(named), T.more))
  return T.works
}

const NAMED = 5

/** The first few names, and how many more there are. */
function short(names: readonly string[], more: (count: number) => string): string[] {
  return names.length <= NAMED + 1 ? [...names] : [...names.slice(0, NAMED), more(names.length - NAMED)]
}

/** Whether a probe only follows something else in trouble, whose own lines give the cause. */
function follows(probe: Line, summary: Summary, labels: Labels, before: readonly Line[] = []): boolean {
  const lines = summary.services.flatMap((service) => service.probes)
  if (lines.some((one) => one.state === 'failing' && dependsOn(summary.prerequisites, probe, one)))
    return true
  const neighbour = labels.isService(probe.probe)
    ? summary.services.find(({ service }) => service === probe.probe)
    : undefined
  if (neighbour?.seenFrom !== undefined) return true
  return (neighbour?.probes ?? []).some(
    (one) =>
      one.state === probe.state &&
      // Services that ask each other would explain each other for ever.
      !before.includes(one) &&
      (!labels.isService(one.probe) || follows(one, summary, labels, [...before, probe])),
  )
}
