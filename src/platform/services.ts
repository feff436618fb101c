import { given } from '../core/given.ts'
import type { ResolvedPlatform } from '../core/platform.ts'
import type { HealthFormat, ServiceDefinition } from '../core/service.ts'
import type { PlatformDefinition } from './definition.ts'

export const HEALTH_PATHS: Readonly<Record<HealthFormat, string>> = {
  platformctl: '/api/health',
  'health+json': '/health',
  spring: '/actuator/health',
  aspnet: '/health',
  status: '/health',
}

/** The services of a definition in its own order; those of its preset when it names none. */
export function servicesOf(
  { services }: PlatformDefinition,
  preset: Pick<ResolvedPlatform, 'services'>,
): readonly ServiceDefinition[] {
  if (services === undefined) return preset.services
  return Object.entries(services).map(
    ([name, { address, health, format, label, group, dependsOn, ...input }]) => {
      const known = preset.services.find((one) => one.name === name)
      return {
        ...known,
        name,
        health: health ?? known?.health ?? HEALTH_PATHS[format ?? 'platformctl'],
        ...given({
          address: address === undefined ? known?.address : [address].flat(),
          format,
          label,
          group,
          dependsOn,
          port: format === undefined ? (input.port ?? known?.port) : undefined,
        }),
      }
    },
  )
}
