import type { Service } from '../service.ts'
import type { Incident, RootIncident } from './history.ts'

/**
 * A service notices trouble of its neighbor within this time: two rounds a minute apart, and the time they
 * take.
 */
const NOTICE_MS = 3 * 60 * 1000

/**
 * Separates causes from what follows: `agent: api` while the API itself was failing is no incident of its
 * own.
 */
export function rootIncidents(
  incidents: readonly Incident[],
  now: number,
  services: readonly Service[],
): RootIncident[] {
  const end = (incident: Incident) => incident.endedAt ?? now
  const causesOf = (follower: Incident) =>
    services.includes(follower.probe)
      ? incidents.filter(
          (cause) =>
            cause.service === follower.probe &&
            cause.beganAt <= follower.beganAt + NOTICE_MS &&
            follower.beganAt <= end(cause) + NOTICE_MS,
        )
      : []
  // A cause can itself follow from another: web notices the agent, which notices the API.
  const rootsOf = (incident: Incident, seen: readonly Incident[] = []): Incident[] => {
    const causes = causesOf(incident).filter((cause) => !seen.includes(cause))
    return causes.length === 0 ? [incident] : causes.flatMap((cause) => rootsOf(cause, [...seen, incident]))
  }
  const feltBy = new Map<Incident, Set<Service>>()
  for (const incident of incidents) {
    for (const root of rootsOf(incident)) {
      const felt = feltBy.get(root) ?? new Set()
      feltBy.set(root, root.service === incident.service ? felt : felt.add(incident.service))
    }
  }
  const roots = incidents.flatMap((incident): RootIncident[] => {
    const felt = feltBy.get(incident)
    return felt === undefined ? [] : [{ ...incident, lengthMs: 0, feltBy: [...felt] }]
  })
  return joinObservers(roots).map((one) => ({ ...one, lengthMs: Math.max(0, end(one) - one.beganAt) }))
}

/**
 * Joins what several services saw in probes of the same name: one outage is one incident, of the first that
 * saw it.
 */
function joinObservers(roots: readonly RootIncident[]): RootIncident[] {
  const joined: RootIncident[] = []
  for (const one of roots.toSorted((a, b) => a.beganAt - b.beganAt)) {
    const index = joined.findIndex(
      (other) =>
        other.probe === one.probe &&
        other.service !== one.service &&
        one.beganAt <= (other.endedAt ?? Number.POSITIVE_INFINITY) + NOTICE_MS,
    )
    const other = joined[index]
    if (other === undefined) joined.push(one)
    else
      joined[index] = {
        ...other,
        state: one.state === 'failing' ? 'failing' : other.state,
        reason: other.reason ?? one.reason,
        endedAt:
          other.endedAt === undefined || one.endedAt === undefined
            ? undefined
            : Math.max(other.endedAt, one.endedAt),
        feltBy: [...new Set([...other.feltBy, one.service, ...one.feltBy])].filter(
          (name) => name !== other.service,
        ),
      }
  }
  return joined.toSorted((a, b) => b.beganAt - a.beganAt)
}
