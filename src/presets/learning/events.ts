import type { EventDefinition } from '../../core/analytics/events.ts'

/** The only events that may be counted (CONTRACT §6). To add a kind, add a row. */
export const learningEvents = [
  { name: 'lesson.viewed', label: 'Lessons viewed' },
  { name: 'circuit.run', label: 'Circuits run' },
  { name: 'tutor.asked', label: 'Questions to the tutor' },
  { name: 'exam.completed', label: 'Exams completed' },
  { name: 'lesson.completed', label: 'Lessons completed' },
  { name: 'exam.started', label: 'Exams started' },
  { name: 'circuit.saved', label: 'Circuits saved' },
  { name: 'circuit.shared', label: 'Circuits shared' },
  { name: 'tutor.rated', label: 'Answers rated' },
  { name: 'device.selected', label: 'Devices chosen' },
  { name: 'search.performed', label: 'Searches' },
  { name: 'page.viewed', label: 'Pages viewed' },
  { name: 'pricing.viewed', label: 'Prices viewed' },
  { name: 'checkout.started', label: 'Checkouts started' },
  { name: 'course.subscribed', label: 'Course subscribed' },
] as const satisfies readonly EventDefinition[]

export type LearningEvent = (typeof learningEvents)[number]['name']
