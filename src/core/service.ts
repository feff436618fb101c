/** How another program's health answer is read: platformctl's own body, a framework's, or the HTTP status alone. */
export type HealthFormat = keyof typeof HEALTH_PATHS

/** Where each format of health is, unless a service says otherwise. */
export const HEALTH_PATHS = {
  platformctl: '/api/health',
  'health+json': '/health',
  spring: '/actuator/health',
  aspnet: '/health',
  status: '/health',
} as const

/** One service of a platform: served by this process when it has a port, another program otherwise. */
export interface ServiceDefinition {
  readonly name: string
  /** For people; made from the name when left out. */
  readonly label?: string
  /** The heading that it is listed under on the status page. */
  readonly group?: string
  /** Short description of its health checks, for documents. */
  readonly summary?: string
  /** Variables that hold its address, the first one set wins. */
  readonly address?: readonly string[]
  readonly health: string
  /** `platformctl` when left out. */
  readonly format?: HealthFormat
  /** Names of the probes and services that it needs, as `dependsOn` of a probe. */
  readonly dependsOn?: readonly string[]
  /** The port on which this process serves it by default. */
  readonly port?: number
}

export type Service = string

/** The service that serves the routes; every platform has it. */
export const WEB = 'web'

/** The same, as the presets define it. */
export const web = { name: WEB, address: ['NEXT_PUBLIC_SITE_URL'], health: '/api/health', port: 3000 }

/** The probe by which web asks a service that has the name of another probe of web. No service has such a name. */
export const namesakeProbeName = (service: Service) => `${service}_service`
