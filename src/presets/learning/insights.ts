import type { AnalyticsEvent, EventKind, Properties } from '../../core/analytics/events.ts'
import type { InsightsDefinition } from '../../core/analytics/insights.ts'
import { fromFirstDay, SAMPLE_DAYS, seeded } from '../../core/analytics/sample.ts'
import { DAY_MS } from '../../core/durations.ts'

const PASS_SCORE = 60

/** Thirty days of made-up events, for a browser that has recorded none. The same time gives the same events. */
export function sampleEvents(now: number): AnalyticsEvent[] {
  const events: AnalyticsEvent[] = []
  const random = seeded(20_261_121)
  const pick = <Item>(items: readonly [Item, ...Item[]]): Item =>
    items[Math.floor(random() * items.length)] ?? items[0]
  for (let ago = SAMPLE_DAYS - 1; ago >= 0; ago -= 1) {
    const progress = SAMPLE_DAYS - ago
    // Some days are quiet, but none on which a lesson is completed or an exam taken.
    if (random() < 0.18 && ago > 4 && progress % 6 !== 0 && ago % 14 !== 0) continue
    const add = (kind: EventKind, properties: Properties = {}) => {
      const at = now - ago * DAY_MS - Math.floor(random() * 6 * 3_600_000)
      events.push({ kind, at, properties })
    }
    const times = (most: number) => Array.from({ length: Math.ceil(random() * most) })
    for (const _ of times(4)) add('page.viewed')
    for (const _ of times(3)) add('lesson.viewed', { lesson: 1 + Math.floor((random() * progress) / 6) })
    for (const _ of times(6)) add('circuit.run', { qubits: 1 + Math.floor(random() * 4) })
    // A lesson is completed once, after it was viewed.
    const lesson = progress / 6
    if (Number.isInteger(lesson)) {
      add('lesson.viewed', { lesson })
      add('lesson.completed', { lesson })
    }
    if (random() < 0.5)
      add('device.selected', { device: pick(['simulator', 'simulator', 'hardware A', 'cloud B']) })
    if (random() < 0.6) add('tutor.asked')
    if (random() < 0.3) add('tutor.rated', { rating: 3 + Math.floor(random() * 3) })
    if (random() < 0.3) add('circuit.saved')
    if (random() < 0.15) add('circuit.shared')
    if (ago % 14 === 0) {
      const exam = `exam ${3 - ago / 14}`
      add('exam.started', { exam })
      const score = ago === 28 ? 52 : 68 + Math.floor(random() * 30)
      add('exam.completed', { exam, score, passed: score >= PASS_SCORE })
    }
  }
  return fromFirstDay(events, now)
}

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
