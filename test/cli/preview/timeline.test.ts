import fc from 'fast-check'
import { Temporal } from 'temporal-polyfill'
import { expect, test } from 'vitest'
import { localText, parseLocal, timelineOf } from '../../../src/cli/preview/courses-page.ts'
import type { Cadence } from '../../../src/core/course/definition.ts'
import { dueAt } from '../../../src/core/course/due.ts'
import { zones } from '../../../src/core/course/zones.ts'

const HOUR = 3_600_000
const BERLIN = 'Europe/Berlin'
const lessons = (count: number) => Array.from({ length: count }, (_, n) => `lesson-${n + 1}`)
const at = (hour: string, parts: Partial<Extract<Cadence, { kind: 'at' }>> = {}): Cadence => {
  const [hours = 0, minutes = 0] = hour.split(':').map(Number)
  return { kind: 'at', minute: hours * 60 + minutes, zone: undefined, weekdays: [], ...parts }
}

/** One line for each step, in the subscriber's local time. */
function told(cadence: Cadence, start: string, { count = 4, zone = BERLIN, spacingMs = 0 } = {}) {
  const plan = { lessons: lessons(count), cadence, spacingMs }
  const confirmedAt = parseLocal(start, zone)
  if (confirmedAt === undefined) throw new Error('no time')
  return timelineOf(plan, { confirmedAt, timeZone: zone }).map((step) => {
    const local = localText(step.at, zone)
    if (!('lesson' in step)) return `${local} ${step.zone} ${step.shiftMs / 60_000} min`
    const { spacedFrom, skipped, repeated } = step
    const marks = [
      ...(spacedFrom === undefined ? [] : [`spaced from ${localText(spacedFrom, zone)}`]),
      ...(skipped === undefined ? [] : [`skipped ${skipped}`]),
      ...(repeated === undefined ? [] : [repeated]),
    ]
    return [local, step.lesson, ...marks].join(' ')
  })
}

test.each<
  [what: string, cadence: Cadence, start: string, more: Parameters<typeof told>[2], expected: string[]]
>([
  [
    'a course by the hour keeps its local time when clocks go forward, and says so in between',
    at('09:00'),
    '2026-03-27T10:00',
    { count: 2 },
    ['2026-03-28T09:00 lesson-1', '2026-03-29T03:00 Europe/Berlin 60 min', '2026-03-29T09:00 lesson-2'],
  ],
  [
    'a lesson at an hour that the clock skips is marked, and comes later by as much',
    at('02:30'),
    '2026-03-28T12:00',
    { count: 2 },
    [
      '2026-03-29T03:00 Europe/Berlin 60 min',
      '2026-03-29T03:30 lesson-1 skipped 150',
      '2026-03-30T02:30 lesson-2',
    ],
  ],
  [
    'a fixed number of hours may fall on the first and on the second of an hour that occurs twice',
    { kind: 'every', ms: HOUR },
    '2026-10-25T01:30',
    { count: 4 },
    [
      '2026-10-25T01:30 lesson-1',
      '2026-10-25T02:30 lesson-2 first',
      '2026-10-25T02:00 Europe/Berlin -60 min',
      '2026-10-25T02:30 lesson-3 second',
      '2026-10-25T03:30 lesson-4',
    ],
  ],
  [
    'the first of an hour that occurs twice is taken and marked, also with half an hour of summer time',
    at('01:45'),
    '2026-04-04T00:00',
    { count: 2, zone: 'Australia/Lord_Howe' },
    ['2026-04-04T01:45 lesson-1', '2026-04-05T01:45 lesson-2 first'],
  ],
  [
    'a course in days of 24 hours moves on the local clock',
    { kind: 'every', ms: 24 * HOUR },
    '2026-03-28T10:00',
    { count: 2 },
    ['2026-03-28T10:00 lesson-1', '2026-03-29T03:00 Europe/Berlin 60 min', '2026-03-29T11:00 lesson-2'],
  ],
  [
    'on chosen weekdays, spacing moves what comes too soon after the lesson before',
    at('09:00', { weekdays: [1, 2, 5] }),
    '2026-06-01T00:00',
    { spacingMs: 36 * HOUR },
    [
      '2026-06-01T09:00 lesson-1',
      '2026-06-02T21:00 lesson-2 spaced from 2026-06-02T09:00',
      '2026-06-05T09:00 lesson-3',
      '2026-06-08T09:00 lesson-4',
    ],
  ],
  [
    'a course with its own time zone shows the clock changes of both zones',
    at('09:00', { zone: 'America/New_York', weekdays: [7] }),
    '2026-03-02T00:00',
    {},
    [
      '2026-03-08T08:00 America/New_York 60 min',
      '2026-03-08T14:00 lesson-1',
      '2026-03-15T14:00 lesson-2',
      '2026-03-22T14:00 lesson-3',
      '2026-03-29T03:00 Europe/Berlin 60 min',
      '2026-03-29T15:00 lesson-4',
    ],
  ],
])('%s', (_, cadence, start, more, expected) => {
  expect(told(cadence, start, more)).toEqual(expected)
})

test('a course of a year is due exactly when the schedule says', () => {
  const plan = { lessons: lessons(365), cadence: at('08:15'), spacingMs: 0 }
  const confirmedAt = Date.parse('2026-01-01T00:00:00Z')
  const steps = timelineOf(plan, { confirmedAt, timeZone: BERLIN })
  const times = steps.flatMap((step) => ('lesson' in step ? step.at : []))
  expect(times).toEqual(
    plan.lessons.map((_, n) => dueAt(plan, { confirmedAt, timeZone: BERLIN }, n + 1, zones)),
  )
  expect(steps.filter((step) => !('lesson' in step))).toHaveLength(2)
})

test('a local time in any year and zone is shown as that zone’s calendar has it', () => {
  const zone = fc.constantFrom(
    BERLIN,
    'Pacific/Apia',
    'America/New_York',
    'Asia/Kathmandu',
    'Africa/Monrovia',
  )
  const firstYear = Date.parse('0001-01-01T00:00:00Z')
  const minute = fc.integer({ min: firstYear, max: Date.parse('9999-12-01T00:00:00Z') })
  const start = fc.constantFrom(
    ...['0001-01-01', '0099-12-30', '1893-03-30', '2011-12-29', '2026-03-28'].map((day) => Date.parse(day)),
  )
  fc.assert(
    fc.property(fc.oneof(minute, start), fc.nat(3 * 24 * HOUR), zone, (from, plus, timeZone) => {
      const text = new Date(from + plus).toISOString().slice(0, 16)
      const expected = Temporal.PlainDateTime.from(text).toZonedDateTime(timeZone).toPlainDateTime()
      const instant = parseLocal(text, timeZone)
      expect(localText(instant ?? Number.NaN, timeZone)).toBe(expected.toString().slice(0, 16))
    }),
  )
})

test.each(['2026-02-30T10:00', '2026-03-27', '2026-03-27T24:00', 'soon', '2026-3-27T10:00'])(
  '%s is no local time',
  (text) => {
    expect(parseLocal(text, BERLIN)).toBeUndefined()
  },
)
