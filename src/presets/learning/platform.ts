import { compiledMails } from '../../core/mail/compiled.ts'
import type { Platform } from '../../core/platform.ts'
import { learningEnvironment } from './contract.ts'
import { learningProbes } from './probes.ts'

/** The default platform: everything that is known of it stands in this folder and in `templates/`. */
export const learning: Platform = {
  name: 'platformctl',
  brand: undefined,
  language: 'en',
  ...learningEnvironment,
  probes: learningProbes,
  mails: { definitions: [], compiled: compiledMails },
  courses: [],
  events: [],
  insights: { sections: [] },
  texts: {},
}
