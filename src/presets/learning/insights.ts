import type { InsightsDefinition } from '../../core/analytics/insights-definition.ts'
import { sampleEvents } from './sample-events.ts'

/** The insights page of the preset: lessons, exams, devices and questions. */
export const learningInsights: InsightsDefinition = {
  sections: [
    {
      id: 'lessons',
      heading: 'Lessons',
      caption: 'Lessons viewed and completed',
      empty: 'No lesson in this range.',
      by: ['lesson', 'day'],
      rowHead: 'Lesson',
      columns: [
        { head: 'Viewed', kind: 'lesson.viewed', compute: 'count' },
        { head: 'Completed', kind: 'lesson.completed', compute: 'count' },
      ],
      bars: true,
      tile: { label: 'lessons completed', column: 'Completed' },
    },
    {
      id: 'exams',
      heading: 'Exams',
      caption: 'Exams',
      empty: 'No exam in this range.',
      by: ['exam'],
      rowHead: 'Exam',
      columns: [
        { head: 'Started', kind: 'exam.started', compute: 'count' },
        { head: 'Done', kind: 'exam.completed', compute: 'count' },
        { head: 'Passed', kind: 'exam.completed', compute: 'true', property: 'passed' },
        { head: 'Best', kind: 'exam.completed', compute: 'max', property: 'score' },
      ],
    },
    {
      id: 'devices',
      heading: 'Devices',
      caption: 'Devices chosen',
      empty: 'No device chosen in this range.',
      by: ['device'],
      rowHead: 'Device',
      columns: [{ head: 'Chosen', kind: 'device.selected', compute: 'count' }],
      order: 'most',
      bars: true,
    },
    {
      id: 'tutor',
      heading: 'Tutor',
      caption: 'Use of the tutor',
      empty: 'The tutor was not asked in this range.',
      rowHead: 'Tutor',
      columns: [
        { head: 'Questions asked', kind: 'tutor.asked', compute: 'count' },
        { head: 'Answers rated', kind: 'tutor.rated', compute: 'count', property: 'rating' },
        { head: 'Average rating', kind: 'tutor.rated', compute: 'mean', property: 'rating' },
      ],
    },
  ],
  sample: sampleEvents,
}
