import { DAY_MS } from '../../core/durations.ts'
import type { ResolvedPlatform } from '../../core/platform.ts'
import { learningEnvironment } from './contract.ts'
import { learningEvents } from './events.ts'
import { learningInsights } from './insights.ts'
import { learningLessons, learningMailSet } from './mails.ts'
import { learningProbes } from './probes.ts'

/** The default platform: all of it is in this folder and in `templates/`. */
export const learning: ResolvedPlatform = {
  name: 'platformctl',
  brand: undefined,
  language: 'en',
  ...learningEnvironment,
  probes: learningProbes,
  mails: learningMailSet,
  courses: [
    {
      id: 'quantum',
      title: 'Quantum, from the beginning',
      lessons: learningLessons,
      cadence: { kind: 'every', ms: DAY_MS },
      spacingMs: 0,
      // The lessons come with the package: an upgrade improves them for everybody.
      follow: 'latest',
    },
  ],
  events: learningEvents,
  insights: learningInsights,
  heartbeats: [],
  texts: {
    invitation:
      'Seven short lessons on quantum computing, one a day by mail. They can be read here too: <a href="/lessons/1">start with day 1</a>.',
  },
}
