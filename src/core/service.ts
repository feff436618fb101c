/** The three services of the platform, in the order in which they are always shown. */
export const SERVICES = ['web', 'api', 'agent'] as const

export type Service = (typeof SERVICES)[number]

export function isService(value: string): value is Service {
  return (SERVICES as readonly string[]).includes(value)
}
