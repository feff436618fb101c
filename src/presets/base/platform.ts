import { createContract } from '../../core/env/contract.ts'
import { baseGroups } from '../../core/env/groups.ts'
import { engineProbes } from '../../core/health/engine-probes.ts'
import type { ResolvedPlatform } from '../../core/platform.ts'
import { WEB, web } from '../../core/service.ts'
import { baseMailSet } from './mails.ts'

/** The `base` preset: only what the engine itself uses, as a start for your own platform. */
export const base: ResolvedPlatform = {
  name: 'Platform',
  brand: undefined,
  language: 'en',
  contract: createContract({ services: [WEB], groups: baseGroups }),
  services: [web],
  probes: engineProbes,
  mails: baseMailSet,
  courses: [],
  events: [{ name: 'page.viewed' }, { name: 'course.subscribed' }],
  insights: { sections: [] },
  heartbeats: [],
  texts: {},
}
