import { createContract } from '../../core/env/contract.ts'
import { baseGroups } from '../../core/env/groups.ts'
import { engineProbes } from '../../core/health/engine-probes.ts'
import type { ResolvedPlatform } from '../../core/platform.ts'
import type { ServiceDefinition } from '../../core/service.ts'
import { baseMailSet } from './mails.ts'

const services: readonly ServiceDefinition[] = [
  { name: 'web', address: ['NEXT_PUBLIC_SITE_URL'], health: '/api/health', port: 3000 },
]

/** The `base` preset: only what the engine itself uses, as a start for your own platform. */
export const base: ResolvedPlatform = {
  name: 'Platform',
  brand: undefined,
  language: 'en',
  contract: createContract({ services: services.map(({ name }) => name), groups: baseGroups }),
  services,
  probes: engineProbes,
  mails: baseMailSet,
  courses: [],
  events: [{ name: 'page.viewed' }, { name: 'course.subscribed' }],
  insights: { sections: [] },
  heartbeats: [],
  texts: {},
}
