import { expect, test } from 'vitest'
import type { AnalyticsEvent, EventKind, Properties } from '../../../src/core/analytics/events.ts'
import { insightsOf } from '../../../src/core/analytics/insights.ts'
import { sampleEvents as kindsSample } from '../../../src/core/analytics/sample.ts'
import { learningInsights, sampleEvents } from '../../../src/presets/learning/insights.ts'

const DAY = 86_400_000
const NOW = Date.UTC(2026, 10, 21, 12)
const event = (
  ago: number,
  kind: EventKind = 'page.viewed',
  properties: Properties = {},
): AnalyticsEvent => ({
  kind,
  at: NOW - ago * DAY,
  properties,
})
const insights = (
  events: readonly AnalyticsEvent[],
  options: { readonly range?: number | undefined; readonly kind?: EventKind; readonly now?: number } = {},
) =>
  insightsOf({
    events,
    now: options.now ?? NOW,
    range: 'range' in options ? options.range : 30,
    kind: options.kind,
    sections: learningInsights.sections,
    dayOf: (time) => {
      const date = new Date(time)
      const two = (number: number) => String(number).padStart(2, '0')
      return `${date.getUTCFullYear()}-${two(date.getUTCMonth() + 1)}-${two(date.getUTCDate())}`
    },
  })

/** The rows of a section, as lists that begin with their names. */
const rowsOf = ({ tables }: ReturnType<typeof insights>, id: string) =>
  tables.find(({ section }) => section.id === id)?.rows.map(({ name, cells }) => [name, ...cells] as const) ??
  []

test('a range has every day once, also the quiet ones, and leaves out what lies before', () => {
  const { days, total } = insights([event(0), event(0), event(6), event(7)], { range: 7 })
  expect(days.map(({ day }) => day)).toEqual(
    ['15', '16', '17', '18', '19', '20', '21'].map((day) => `2026-11-${day}`),
  )
  expect(days.map(({ count }) => count)).toEqual([1, 0, 0, 0, 0, 0, 2])
  expect(total).toBe(3)
})

test('everything begins with the first event, and at most two years ago', () => {
  expect(insights([event(3), event(0)], { range: undefined }).days).toHaveLength(4)
  expect(insights([{ ...event(0), at: 0 }, event(0)], { range: undefined }).days).toHaveLength(730)
  expect(insights([], { range: undefined }).days).toEqual([{ day: '2026-11-21', count: 0 }])
})

test('counts a day that daylight saving lengthens or shortens as one day', () => {
  const zone = new Intl.DateTimeFormat('sv-SE', { timeZone: 'Europe/Berlin' })
  const now = Date.UTC(2026, 9, 27, 12)
  const { days } = insightsOf({
    events: [],
    now,
    range: 5,
    kind: undefined,
    sections: [],
    dayOf: (time) => zone.format(time),
  })
  expect(days.map(({ day }) => day.slice(-2))).toEqual(['23', '24', '25', '26', '27'])
})

test.each([
  ['nothing', [], 0, 0],
  ['today', [0], 1, 1],
  ['yesterday, and today is not over', [1], 1, 1],
  ['the day before yesterday', [2], 0, 1],
  ['three days, a gap, two days until today', [6, 5, 4, 1, 0], 2, 3],
])('the streak of %s', (_, agos, current, longest) => {
  // Outside the shown range too: a streak is a streak.
  expect(
    insights(
      agos.map((ago) => event(ago)),
      { range: 1 },
    ).streak,
  ).toEqual({ current, longest })
})

test('lessons, exams, devices and the tutor are counted by what they name', () => {
  const found = insights([
    event(1, 'lesson.viewed', { day: 10 }),
    event(1, 'lesson.viewed', { lesson: 2 }),
    event(1, 'lesson.viewed', { lesson: '2' }),
    event(0, 'lesson.completed', { lesson: 2 }),
    event(0, 'exam.started', { exam: 'basics' }),
    event(0, 'exam.completed', { exam: 'basics', passed: false, score: 40 }),
    event(0, 'exam.completed', { exam: 'basics', passed: true, score: 81.5 }),
    event(0, 'exam.completed', {}),
    event(0, 'device.selected', { device: 'simulator' }),
    event(0, 'device.selected', { device: 'constructor' }),
    event(0, 'device.selected', { device: 'simulator' }),
    event(0, 'tutor.asked'),
    event(0, 'tutor.rated', { rating: 5 }),
    event(0, 'tutor.rated', { rating: 4 }),
    event(0, 'tutor.rated', { rating: 'good' }),
  ])
  expect(found.total).toBe(15)
  expect(rowsOf(found, 'lessons')).toEqual([
    ['2', 2, 1],
    ['10', 1, 0],
  ])
  expect(rowsOf(found, 'exams')).toEqual([
    ['', 0, 1, 0, undefined],
    ['basics', 1, 2, 1, 81.5],
  ])
  expect(rowsOf(found, 'devices')).toEqual([
    ['simulator', 2],
    ['constructor', 1],
  ])
  expect(rowsOf(found, 'tutor')).toEqual([['', 1, 2, 4.5]])
  expect(found.kinds[0]).toEqual({ kind: 'lesson.viewed', count: 3 })
})

test('a filter shows one kind and leaves the streak alone', () => {
  const found = insights([event(1), event(0, 'circuit.run')], { kind: 'circuit.run' })
  expect(found).toMatchObject({
    total: 1,
    streak: { current: 2 },
    kinds: [{ kind: 'circuit.run', count: 1 }],
  })
})

test('the sample is the same each time, fills every figure and lies in no future', () => {
  const sample = sampleEvents(NOW)
  expect(sampleEvents(NOW)).toEqual(sample)
  expect(Math.max(...sample.map(({ at }) => at))).toBeLessThanOrEqual(NOW)
  const found = insights(sample, { range: undefined })
  expect(found.days.length).toBeGreaterThan(28)
  for (const list of [found.kinds, ...['lessons', 'exams', 'devices'].map((id) => rowsOf(found, id))])
    expect(list.length).toBeGreaterThan(2)
  expect(rowsOf(found, 'tutor')[0]?.[3]).toBeGreaterThan(3)
  expect(found.streak.current).toBeGreaterThan(2)
})

test.each([0, 1, 11, 22, 23])('the sample agrees with itself, seen at hour %d', (hour) => {
  const now = NOW - (NOW % 86_400_000) + hour * 3_600_000
  const found = insights(sampleEvents(now), { range: 30, now })
  const completed = found.kinds.find(({ kind }) => kind === 'lesson.completed')?.count
  const lessons = rowsOf(found, 'lessons')
  expect(lessons.filter(([, , done = 0]) => done > 0)).toHaveLength(completed ?? 0)
  for (const [, viewed, done] of lessons) expect(viewed).toBeGreaterThanOrEqual(done ?? 0)
  expect(found.streak.longest).toBeLessThanOrEqual(30)
  const best = (wanted: boolean) =>
    rowsOf(found, 'exams').flatMap(([, , , passed = 0, score = 0]) => (passed > 0 === wanted ? [score] : []))
  expect(Math.max(...best(false))).toBeLessThan(Math.min(...best(true)))
})

test('a sample moves with the time at which it is looked at', () => {
  const sample = learningInsights.sample?.(0) ?? []
  expect(sample.map((event) => ({ ...event, at: NOW + event.at }))).toEqual(sampleEvents(NOW))
})

test('a platform of its own has a sample of its first twelve kinds, with the properties that they have', () => {
  const kinds = Array.from({ length: 14 }, (_, index) => ({
    name: `kiln.kind-${index}`,
    ...(index === 0 && { properties: { kiln: 'string', cones: 'number', own: 'boolean' } as const }),
  }))
  const sample = kindsSample(kinds, NOW)
  expect(kindsSample(kinds, NOW)).toEqual(sample)
  expect(new Set(sample.map(({ kind }) => kind))).toEqual(new Set(kinds.slice(0, 12).map(({ name }) => name)))
  const [first] = sample.filter(({ kind }) => kind === 'kiln.kind-0')
  expect(first?.properties).toEqual({
    kiln: expect.stringMatching(/^kiln [1-3]$/),
    cones: expect.any(Number),
    own: expect.any(Boolean),
  })
  expect(insights(sample, { range: 30 })).toMatchObject({ total: sample.length })
})

test.each([253_402_300_800_000, 8.64e15])('an event at %d, after the year 9999, breaks nothing', (at) => {
  const { total, streak, days } = insights([{ ...event(0), at }, event(0)], { range: undefined })
  expect([total, streak, days.length]).toEqual([1, { current: 1, longest: 1 }, 1])
})
