import type { Settings } from '../env/settings.ts'
import type { ProbeDefinition } from '../health/probe.ts'
import type { ServiceDefinition } from '../service.ts'
import { CONDITIONS } from './advice.ts'

/** For each probe, service or condition that depends on others: the names of all of them, indirect ones included. */
export type Prerequisites = ReadonlyMap<string, ReadonlySet<string>>

export const NO_PREREQUISITES: Prerequisites = new Map()

/** Collects what the definition, the engine's probes and the conditions depend on. */
export function prerequisitesOf(
  {
    probes,
    services,
  }: {
    readonly probes: readonly Pick<ProbeDefinition, 'name' | 'service' | 'dependsOn'>[]
    readonly services: readonly Pick<ServiceDefinition, 'name' | 'dependsOn'>[]
  },
  settings: Settings,
): Prerequisites {
  const direct = Map.groupBy(
    [
      ...services.map(({ name, dependsOn = [] }) => ({ name, on: dependsOn })),
      // A service needs what its probes need: seen from another process, it fails for that.
      ...probes.flatMap(({ name, service, dependsOn }) => {
        const on = dependsOn?.(settings) ?? []
        return [
          { name, on },
          { name: service, on: on.filter((other) => other !== service) },
        ]
      }),
      ...Object.entries(CONDITIONS).map(([name, { dependsOn = [] }]) => ({ name, on: dependsOn })),
    ].filter(({ on }) => on.length > 0),
    ({ name }) => name,
  )
  return new Map(
    [...direct.keys()].map((name) => {
      const all = new Set<string>()
      // A set also visits what is added while it is iterated.
      const reached = new Set([name])
      for (const one of reached)
        for (const { on } of direct.get(one) ?? [])
          for (const other of on) {
            reached.add(other)
            all.add(other)
          }
      return [name, all]
    }),
  )
}

/** What explains each fault in the end: itself if nothing does; those of a ring are each reported. */
export function rootsOf<Fault>(
  faults: readonly Fault[],
  explain: (fault: Fault) => readonly Fault[],
): ReadonlyMap<Fault, readonly Fault[]> {
  const explained = new Map(faults.map((one) => [one, explain(one)]))
  const roots = (one: Fault) => {
    const reached = new Set([one])
    for (const each of reached) for (const other of explained.get(each) ?? []) reached.add(other)
    const unexplained = [...reached].filter((each) => explained.get(each)?.length === 0)
    return unexplained.length === 0 ? [one] : unexplained
  }
  return new Map(faults.map((one) => [one, roots(one)]))
}

/** Whether a probe depends on another one, directly or through the service that the other belongs to. */
export function dependsOn(
  prerequisites: Prerequisites,
  one: { readonly probe: string },
  other: { readonly service: string; readonly probe: string },
): boolean {
  const names = prerequisites.get(one.probe)
  return names !== undefined && (names.has(other.probe) || names.has(other.service))
}
