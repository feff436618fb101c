import { DAY_MS, HOUR_MS } from '../../src/core/durations.ts'
import { createContract } from '../../src/core/env/contract.ts'
import { baseGroups } from '../../src/core/env/groups.ts'
import { LESSON_SLOTS } from '../../src/core/mail/definition.ts'
import type { ResolvedPlatform } from '../../src/core/platform.ts'
import { base } from '../../src/presets/base/platform.ts'

const LESSONS = ['lesson-1', 'lesson-2']

const services = [
  ...base.services,
  { name: 'api', address: ['API_URL'], health: '/health', port: 8000, summary: 'what its program reports' },
] as const

/**
 * The platform that the reference pages show: a site, an API, a course of two lessons and a heartbeat, so that every
 * route, mail and option is there, under names that are nobody's.
 */
export const reference: ResolvedPlatform = {
  ...base,
  contract: createContract({ services: services.map(({ name }) => name), groups: baseGroups }),
  services,
  mails: {
    ...base.mails,
    definitions: [
      ...base.mails.definitions,
      ...LESSONS.map((name) => ({ name, slots: LESSON_SLOTS, lesson: true })),
    ],
  },
  courses: [
    {
      id: 'course',
      title: 'A course',
      lessons: LESSONS,
      cadence: { kind: 'every', ms: DAY_MS },
      spacingMs: 0,
      follow: 'start',
    },
  ],
  heartbeats: [{ name: 'backup', everyMs: DAY_MS, graceMs: HOUR_MS }],
}

/** The first sentence of each page that shows it; the page adds what shows the names of another platform. */
export const SHOWN = 'Shown for a sample platform: services web and api, and a course of two lessons.'
