import type { Slot } from './template.ts'

/** The closed set of mails (CONTRACT §4): one row here and one file in `templates/` each. */
export const TEMPLATES = [
  'organisation-invite',
  'magic-link',
  'welcome',
  'subscription-confirmation',
  'exam-passed',
  'course-day-1',
  'course-day-2',
  'course-day-3',
  'course-day-4',
  'course-day-5',
  'course-day-6',
  'course-day-7',
] as const

export type TemplateName = (typeof TEMPLATES)[number]

type Slots = Readonly<Record<string, Slot['type']>>

const LESSON: Slots = { lessonUrl: 'url', unsubscribeUrl: 'url' }

/** What the platform fills in. A template has exactly these slots, or it does not compile. */
export const SLOTS: Readonly<Record<TemplateName, Slots>> = {
  'organisation-invite': { organisation: 'text', inviteUrl: 'url' },
  'magic-link': { signInUrl: 'url' },
  welcome: { startUrl: 'url' },
  'subscription-confirmation': { confirmUrl: 'url' },
  'exam-passed': { exam: 'text', score: 'text', resultUrl: 'url' },
  'course-day-1': LESSON,
  'course-day-2': LESSON,
  'course-day-3': LESSON,
  'course-day-4': LESSON,
  'course-day-5': LESSON,
  'course-day-6': LESSON,
  'course-day-7': LESSON,
}
