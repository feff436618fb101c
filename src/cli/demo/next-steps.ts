import type { Service } from '../../core/service.ts'
import type { Context } from '../context.ts'

const USUAL = { web: 'http://127.0.0.1:3000', api: 'http://127.0.0.1:8000', agent: 'http://127.0.0.1:8100' }

/**
 * What to type after the demo, each with what it does: under the name by which this one was started, and with the
 * addresses that its services were given, because `health` asks the usual ports of whatever is not named.
 */
export function nextSteps(
  urls: Readonly<Partial<Record<Service, string>>>,
  env: Context['env'],
): readonly (readonly [command: string, what: string])[] {
  // Set by npm for its scripts and for npx: who started it so has no platformctl on the path.
  const name = env.npm_lifecycle_event === undefined ? 'platformctl' : 'npx platformctl'
  const moved = (['api', 'agent'] as const).filter((service) => urls[service] !== USUAL[service])
  const addresses = (['web', ...moved] as const).map(
    (service) => `${service}=${urls[service] ?? USUAL[service]}`,
  )
  return [
    [`${name} health --url ${addresses.join(' ')}`, 'probe the running services'],
    [`${name} email preview`, 'look at every mail, edit the templates, see them reload'],
    [`${name} env example > .env`, 'start an environment file of your own'],
    [`${name} preflight --env-file .env`, 'and validate it before anything serves requests'],
    [`${name} daemon --env-file .env`, 'then run the services for real'],
  ]
}
