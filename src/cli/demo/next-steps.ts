import { type Service, type ServiceDefinition, WEB } from '../../core/service.ts'
import type { Context } from '../context.ts'
import { programName } from '../program-name.ts'

const PREVIEW_PORT = 8026

export interface NextStepsInput {
  readonly services: readonly ServiceDefinition[]
  readonly urls: Readonly<Partial<Record<Service, string>>>
  readonly env: Context['env']
  /** Free ports for a daemon and a preview beside this demo. */
  readonly free: { readonly services: Readonly<Record<Service, number>>; readonly preview: number }
}

/** Commands to try after the demo, each with what it does. They run as printed, while the demo keeps its ports. */
export function nextSteps({
  services,
  urls,
  env,
  free,
}: NextStepsInput): readonly (readonly [command: string, what: string])[] {
  const name = programName(env)
  // `health` asks services that are not named on their usual port, so only the others need an address.
  const addresses = services.flatMap((service) => {
    const usual = `http://127.0.0.1:${service.port}`
    const url = urls[service.name] ?? usual
    return service.name === WEB || url !== usual ? [`${service.name}=${url}`] : []
  })
  const preview = free.preview === PREVIEW_PORT ? '' : ` --port ${free.preview}`
  const ports = Object.entries(free.services).map(([service, port]) => `--${service}-port ${port}`)
  return [
    [`${name} health --url ${addresses.join(' ')}`, 'Check the running services:'],
    [`${name} email preview${preview}`, 'Look at every mail, edit the templates, see them reload:'],
    [`${name} env example > platform.env`, 'Write an environment file of your own:'],
    [`${name} preflight --env-file platform.env`, 'Check it before anything serves requests:'],
    [
      `${name} daemon --env-file platform.env ${ports.join(' ')}`,
      'Run the services with it, beside the demo:',
    ],
  ]
}
