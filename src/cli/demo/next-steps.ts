import { existsSync } from 'node:fs'
import path from 'node:path'
import { type Service, type ServiceDefinition, WEB } from '../../core/service.ts'
import type { Context } from '../context.ts'

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
  const name = isOnPath(env) ? 'platformctl' : 'npx platformctl'
  // `health` asks the usual port of a service that is not named.
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

/** Is there a command `platformctl`? Started by npm or npx there may be one that is gone with this process. */
function isOnPath(env: Context['env']): boolean {
  if (env.npm_lifecycle_event !== undefined) return false
  const folders = env.PATH?.split(path.delimiter) ?? []
  return folders.some((folder) =>
    ['platformctl', 'platformctl.cmd'].some((file) => existsSync(path.join(folder, file))),
  )
}
