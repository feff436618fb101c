/** How another program's health answer is read: platformctl's own body, a framework's, or the HTTP status alone. */
export type HealthFormat = 'platformctl' | 'health+json' | 'spring' | 'aspnet' | 'status'

/** One service of a platform: served by this process when it has a port, another program otherwise. */
export interface ServiceDefinition {
  readonly name: string
  /** For people; made from the name when left out. */
  readonly label?: string
  /** Variables that hold its address, the first one set wins. */
  readonly address?: readonly string[]
  /** The path of its health. */
  readonly health: string
  /** `platformctl` when left out. */
  readonly format?: HealthFormat
  /** Where this process serves it unless told otherwise. */
  readonly port?: number
}

/** The three services of the platform, in the order in which they are always shown. */
export const SERVICES = ['web', 'api', 'agent'] as const

export type Service = (typeof SERVICES)[number]

export function isService(value: string): value is Service {
  return (SERVICES as readonly string[]).includes(value)
}
