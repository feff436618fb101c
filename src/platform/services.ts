import type { ResolvedPlatform } from '../core/platform.ts'
import type { HealthFormat, ServiceDefinition } from '../core/service.ts'
import type { PlatformDefinition, ServiceInput } from './definition.ts'

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
  return Object.entries(services).map(([name, service]) =>
    serviceOf(
      name,
      service,
      preset.services.find((one) => one.name === name),
    ),
  )
}

function serviceOf(
  name: string,
  input: ServiceInput,
  known: ServiceDefinition | undefined,
): ServiceDefinition {
  const { address, health, format, label, group, dependsOn } = input
  const addresses = address === undefined ? known?.address : typeof address === 'string' ? [address] : address
  const port = format === undefined ? (input.port ?? known?.port) : undefined
  return {
    ...known,
    name,
    health: health ?? known?.health ?? HEALTH_PATHS[format ?? 'platformctl'],
    ...(addresses !== undefined && { address: addresses }),
    ...(format !== undefined && { format }),
    ...(label !== undefined && { label }),
    ...(group !== undefined && { group }),
    ...(dependsOn !== undefined && { dependsOn }),
    ...(port !== undefined && { port }),
  }
}
