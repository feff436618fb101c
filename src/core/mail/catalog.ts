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
