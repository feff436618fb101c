import { compiledMails } from '../../core/mail/compiled.ts'
import type { Platform } from '../../core/platform.ts'
import { learningEnvironment } from './contract.ts'
import { learningEvents } from './events.ts'
import { learningProbes } from './probes.ts'

const LESSONS = [
  'course-day-1',
  'course-day-2',
  'course-day-3',
  'course-day-4',
  'course-day-5',
  'course-day-6',
  'course-day-7',
]

/** The default platform: everything that is known of it stands in this folder and in `templates/`. */
export const learning: Platform = {
  name: 'platformctl',
  brand: undefined,
  language: 'en',
  ...learningEnvironment,
  probes: learningProbes,
  mails: { definitions: [], compiled: compiledMails },
  courses: [
    {
      id: 'quantum',
      title: 'Quantum, from the beginning',
      lessons: LESSONS,
      everyMs: 24 * 60 * 60 * 1000,
    },
  ],
  events: learningEvents,
  insights: { sections: [] },
  texts: {
    invitation:
      'Seven short lessons on quantum computing, one a day by mail. They can be read here too: <a href="/lessons/1">start with day 1</a>.',
  },
}
