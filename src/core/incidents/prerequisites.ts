import type { Settings } from '../env/settings.ts'
import type { ProbeDefinition } from '../health/probe.ts'
import { dependenciesOf, type Prerequisites, reachable } from '../health/verdict.ts'
import type { ServiceDefinition } from '../service.ts'
import { CONDITIONS } from './advice.ts'

export const NO_PREREQUISITES: Prerequisites = new Map()

/** Collects what the definition, the engine's probes and the conditions depend on. */
export function prerequisitesOf(
  platform: {
    readonly probes: readonly Pick<ProbeDefinition, 'name' | 'service' | 'dependsOn'>[]
    readonly services: readonly Pick<ServiceDefinition, 'name' | 'dependsOn'>[]
  },
  settings: Settings,
): Prerequisites {
  const { probes, services } = platform
  const direct = Map.groupBy(
    [
      ...services.map(({ name, dependsOn = [] }) => ({ name, on: dependsOn })),
      // A service needs what its probes ask and need: seen from another process, it fails for that.
      ...[...dependenciesOf(probes, services)].map(([name, on]) => ({ name, on })),
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
  const next = (name: string) => direct.get(name)?.flatMap(({ on }) => on) ?? []
  return new Map([...direct.keys()].map((name) => [name, reachable(next(name), next)]))
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
