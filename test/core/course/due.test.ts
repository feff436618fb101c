import fc from 'fast-check'
import { expect, test } from 'vitest'
import { isLanguage, isTimeZone } from '../../../src/core/course/definition.ts'
import { arrivalAt, dueAt, movedDue, nextLesson } from '../../../src/core/course/due.ts'
import { nextDay } from '../../../src/core/course/subscription.ts'
import { zones } from '../../../src/core/course/zones.ts'
import { DAY_MS, HOUR_MS } from '../../../src/core/durations.ts'

const MINUTE_MS = 60_000
const time = fc.integer({ min: 0, max: 4_102_444_800_000 })
const anyEvery = fc.integer({ min: 15 * MINUTE_MS, max: 90 * DAY_MS })
const ZONES = [
  'UTC',
  'Europe/Berlin',
  'America/New_York',
  'America/St_Johns',
  'Australia/Lord_Howe',
  'Pacific/Chatham',
  'America/Havana',
  'Africa/Casablanca',
  'Asia/Kathmandu',
]
const anyLocal = fc.record({
  kind: fc.constant('at' as const),
  minute: fc.integer({ min: 0, max: 1439 }),
  zone: fc.constantFrom(undefined, ...ZONES),
  weekdays: fc.uniqueArray(fc.integer({ min: 1, max: 7 })).map((days) => days.sort()),
})
const isNoonAtUtc = (timeZone: string) =>
  new Intl.DateTimeFormat('en-US', { timeZone, hour: '2-digit', minute: '2-digit', hourCycle: 'h23' }).format(
    20_000 * DAY_MS + 12 * HOUR_MS,
  ) === '12:00'
const between2000And2040 = fc.integer({ min: Date.UTC(2000, 0, 1), max: Date.UTC(2040, 0, 1) })

test('with every, lesson N is due N − 1 times that long after the confirmation, whatever the calendar does', () => {
  fc.assert(
    fc.property(time, anyEvery, fc.integer({ min: 1, max: 365 }), (confirmedAt, ms, day) => {
      const cadence = { kind: 'every', ms } as const
      expect(dueAt({ cadence, spacingMs: 0 }, { confirmedAt }, day, undefined) - confirmedAt).toBe(
        (day - 1) * ms,
      )
    }),
  )
})

test('every time zone that is taken has local times, and one that is not known here has those of UTC', () => {
  const old = ['PST', 'JST', 'IST', 'CTT', 'EST', 'GMT', 'PRC', 'US/Eastern', 'Etc/GMT+5']
  const some = Intl.supportedValuesOf('timeZone').filter((_, at) => at % 4 === 0)
  const taken = [...some, ...old].filter(isTimeZone)
  expect(taken).toEqual(expect.arrayContaining(['EST', 'GMT', 'PRC', 'US/Eastern', 'Etc/GMT+5']))
  const noon = (zone: string) => zones.instantOf(20_000, 720, zone)
  for (const zone of taken) expect([zone, noon(zone) === noon('UTC')]).toEqual([zone, isNoonAtUtc(zone)])
  const offsets = ['+05:00', '-0300']
  const unknown = ['PST', 'jst', 'Mars/Olympus']
  expect([...offsets, ...unknown].filter(isTimeZone)).toEqual([])
  for (const zone of unknown) {
    expect(noon(zone)).toBe(noon('UTC'))
    expect(zones.dayAt(noon('UTC'), zone)).toBe(20_000)
  }
})

test('at a local hour, lessons come on chosen days, each on a later one, and the first at the first slot', () => {
  const local = (at: number, timeZone: string) => {
    const parts = new Intl.DateTimeFormat('en-US', {
      timeZone,
      weekday: 'short',
      hour: '2-digit',
      minute: '2-digit',
      hourCycle: 'h23',
    }).formatToParts(at)
    const of = (type: string) => parts.find((part) => part.type === type)?.value ?? ''
    return {
      weekday: ['Mon', 'Tue', 'Wed', 'Thu', 'Fri', 'Sat', 'Sun'].indexOf(of('weekday')) + 1,
      minute: Number(of('hour')) * 60 + Number(of('minute')),
    }
  }
  fc.assert(
    fc.property(
      anyLocal,
      between2000And2040,
      fc.constantFrom(undefined, ...ZONES),
      (cadence, confirmedAt, timeZone) => {
        const zone = cadence.zone ?? timeZone ?? 'UTC'
        const due = (day: number) => dueAt({ cadence, spacingMs: 0 }, { confirmedAt, timeZone }, day, zones)
        let before = confirmedAt
        for (let day = 1; day <= 9; day += 1) {
          const at = due(day)
          const { weekday, minute } = local(at, zone)
          // A slot in a gap comes later by the length of the gap, and never on another day in these zones.
          const late = minute - cadence.minute
          expect(late === 0 || late === 60 || late === 30).toBe(true)
          if (cadence.weekdays.length > 0) expect(cadence.weekdays).toContain(weekday)
          expect(at).toBeGreaterThanOrEqual(before)
          // No slot before this one was skipped.
          expect(at - before).toBeLessThanOrEqual(
            (cadence.weekdays.length === 0 ? 1 : 7) * DAY_MS + 2 * 3_600_000,
          )
          before = at + 1
        }
      },
    ),
    { numRuns: 30 },
  )
})

test('wherever a reader moves between two lessons, the next come in the slots of that zone, one in each', () => {
  const anyMove = fc.record({
    to: fc.constantFrom(...ZONES),
    // In thousandths: of all numbers from 0 to 1, nearly every one is next to 0.
    after: fc.integer({ min: 0, max: 1000 }),
  })
  const property = fc.property(
    anyLocal,
    between2000And2040,
    fc.constantFrom(...ZONES),
    fc.array(anyMove, { minLength: 1, maxLength: 6 }),
    (local, confirmedAt, zone, moves) => {
      const cadence = { ...local, zone: undefined }
      const plan = { lessons: Array.from({ length: 9 }, String), cadence, spacingMs: 0 }
      const isSlot = (at: number, timeZone: string) =>
        dueAt(plan, { confirmedAt: at, timeZone }, 1, zones) === at
      let timeZone = zone
      let due = dueAt(plan, { confirmedAt, timeZone }, 1, zones)
      for (const [sent, { to, after }] of moves.entries()) {
        const lastSentAt = due
        due = nextLesson(plan, { confirmedAt, timeZone, lastSentAt, dueAt: due }, sent + 1, zones)?.dueAt ?? 0
        expect(due).toBeGreaterThan(lastSentAt)
        const now = Math.floor(lastSentAt + (after / 1000) * (due - lastSentAt))
        due = movedDue(plan, { dueAt: due, timeZone, lastSentAt }, { to, now }, zones) ?? due
        timeZone = to
        expect(due).toBeGreaterThanOrEqual(now)
        if (due > now) expect(isSlot(due, timeZone)).toBe(true)
      }
    },
  )
  fc.assert(property, {
    numRuns: 50,
    // A reader who moves at the very moment at which the lesson is due.
    examples: [
      [
        { kind: 'at', minute: 0, zone: undefined, weekdays: [] },
        2_079_608_400_001,
        'Australia/Lord_Howe',
        [
          { to: 'UTC', after: 0 },
          { to: 'Asia/Kathmandu', after: 1000 },
          { to: 'UTC', after: 0 },
        ],
      ],
    ],
  })
})

test.each([
  // The clock goes from 02:00 to 03:00: read with the offset before the gap.
  ['Europe/Berlin', '02:30', '2026-03-28T12:00Z', '2026-03-29T01:30:00.000Z'],
  ['America/New_York', '02:30', '2026-03-08T05:00Z', '2026-03-08T07:30:00.000Z'],
  ['Australia/Lord_Howe', '02:10', '2026-10-03T12:00Z', '2026-10-03T15:40:00.000Z'],
  // It goes from 03:00 back to 02:00: the first of the two.
  ['Europe/Berlin', '02:30', '2026-10-24T12:00Z', '2026-10-25T00:30:00.000Z'],
  ['America/New_York', '01:30', '2026-11-01T04:00Z', '2026-11-01T05:30:00.000Z'],
  // It goes from 23:00 to midnight: the slot of Saturday, confirmed on Sunday.
  ['America/Scoresbysund', '23:30', '2026-03-29T01:10Z', '2026-03-29T01:30:00.000Z'],
])('in %s, a lesson at %s after %s is due at %s, as RFC 5545 reads it', (zone, at, confirmed, expected) => {
  const [hours = 0, minutes = 0] = at.split(':').map(Number)
  const cadence = { kind: 'at', minute: hours * 60 + minutes, zone, weekdays: [] } as const
  const confirmedAt = Date.parse(confirmed)
  const due = dueAt({ cadence, spacingMs: 0 }, { confirmedAt }, 1, zones)
  expect(new Date(due).toISOString()).toBe(expected)
  const plan = { lessons: ['1', '2'], cadence, spacingMs: 0 }
  const next = nextLesson(plan, { confirmedAt, dueAt: due }, 1, zones)?.dueAt ?? 0
  expect(Math.abs(next - due - DAY_MS)).toBeLessThanOrEqual(HOUR_MS)
})

test('a lesson keeps its distance from the one before, however late that one was', () => {
  fc.assert(
    fc.property(
      between2000And2040,
      anyEvery,
      fc.nat(90 * DAY_MS),
      fc.nat(400 * DAY_MS),
      (confirmedAt, ms, spacingMs, late) => {
        const lastSentAt = confirmedAt + late
        const plan = { cadence: { kind: 'every', ms }, spacingMs } as const
        const due = dueAt(plan, { confirmedAt, lastSentAt }, 2, undefined)
        // What is overdue keeps an hour, also with a shorter spacing.
        const distance = ms <= late ? Math.max(spacingMs, HOUR_MS) : spacingMs
        expect(due).toBe(Math.max(confirmedAt + ms, spacingMs === 0 ? 0 : lastSentAt + distance))
      },
    ),
  )
})

const anyCadence = fc.oneof(
  anyEvery.map((ms) => ({ kind: 'every' as const, ms })),
  anyLocal,
)
const anySpacing = fc.constantFrom(0, 0, HOUR_MS / 2, 20 * HOUR_MS, 30 * HOUR_MS)
/** How late a lesson leaves: mostly at once, sometimes after an outage. */
const anyDelay = fc.oneof(fc.constant(0), fc.nat(MINUTE_MS), fc.nat(9 * DAY_MS))
const timeZone = 'Europe/Berlin'

test('with an unchanged cadence, each lesson is due as counted from the confirmation, whatever outages came between', () => {
  const delays = fc.array(anyDelay, { minLength: 2, maxLength: 9 })
  const property = fc.property(
    ...([anyCadence, anySpacing, between2000And2040, delays] as const),
    (cadence, spacingMs, confirmedAt, late) => {
      const plan = { lessons: Array.from({ length: 10 }, String), cadence, spacingMs }
      let before = { confirmedAt, timeZone, dueAt: dueAt(plan, { confirmedAt, timeZone }, 1, zones) }
      let lastSentAt: number | undefined
      for (const [index, ms] of late.entries()) {
        const sentAt = Math.max(before.dueAt, lastSentAt ?? 0) + ms
        const next = nextLesson(plan, { ...before, lastSentAt }, index + 1, zones, sentAt)?.dueAt
        expect(next).toBe(dueAt(plan, { confirmedAt, timeZone, lastSentAt: sentAt }, index + 2, zones))
        before = { ...before, dueAt: next ?? 0 }
        lastSentAt = sentAt
      }
    },
  )
  fc.assert(property, { numRuns: 100 })
})

test('however often the cadence changes, the next lesson waits an interval of the new one, and never two', () => {
  const steps = fc.array(fc.tuple(anyCadence, anyDelay), { minLength: 2, maxLength: 9 })
  const property = fc.property(anySpacing, between2000And2040, steps, (spacingMs, confirmedAt, changes) => {
    const lessons = Array.from({ length: 10 }, String)
    let before = confirmedAt
    let lastSentAt: number | undefined
    for (const [index, [cadence, late]] of changes.entries()) {
      const sentAt = Math.max(before, lastSentAt ?? 0) + late
      const enrolment = { confirmedAt, timeZone, dueAt: before, lastSentAt }
      const next =
        nextLesson({ lessons, cadence, spacingMs }, enrolment, index + 1, zones, sentAt)?.dueAt ?? 0
      const interval = cadence.kind === 'every' ? cadence.ms : (cadence.weekdays.length ? 7 : 1) * DAY_MS
      const longest = Math.max(2 * interval, Math.max(spacingMs, HOUR_MS) + 1) + HOUR_MS
      expect(next - sentAt).toBeLessThanOrEqual(longest)
      if (spacingMs > 0) expect(next - sentAt).toBeGreaterThanOrEqual(spacingMs)
      else if (cadence.kind === 'every') expect(next - before).toBe(interval)
      else {
        const zone = cadence.zone ?? timeZone
        expect(zones.dayAt(next, zone)).toBeGreaterThanOrEqual(zones.dayAt(before, zone))
        expect(next).toBeGreaterThan(before)
      }
      before = next
      lastSentAt = sentAt
    }
  })
  fc.assert(property, { numRuns: 100 })
})

test('the lowest unsent day is next, in whatever order days were recorded', () => {
  const sent = (...sentDays: number[]) => nextDay({ sentDays, lessons: 4 })
  expect([sent(), sent(1, 3), sent(3, 2, 1), sent(2, 4, 3)]).toEqual([1, 2, 4, 1])
  expect(sent(4, 2, 1, 3)).toBeUndefined()
})

test('a reader who moves east gets the next lesson no sooner after the last than the spacing', () => {
  const cadence = { kind: 'at', minute: 18 * 60, zone: undefined, weekdays: [] } as const
  const lastSentAt = Date.UTC(2026, 10, 23, 18)
  const moved = (spacingMs: number) =>
    movedDue(
      { cadence, spacingMs },
      { dueAt: lastSentAt + DAY_MS, timeZone: 'UTC', lastSentAt },
      { to: 'Asia/Tokyo', now: lastSentAt + HOUR_MS },
      zones,
    )
  // 18:00 in Tokyo is 9:00 in UTC.
  expect([moved(0), moved(20 * HOUR_MS)]).toEqual([Date.UTC(2026, 10, 24, 9), Date.UTC(2026, 10, 24, 14)])
})

test('a lesson that is overdue when its reader moves is not put off to another day', () => {
  const cadence = { kind: 'at', minute: 18 * 60, zone: undefined, weekdays: [] } as const
  const due = Date.UTC(2026, 10, 24, 18)
  const to = { to: 'Asia/Tokyo', now: due + HOUR_MS }
  expect(movedDue({ cadence, spacingMs: 0 }, { dueAt: due, timeZone: 'UTC' }, to, zones)).toBeUndefined()
})

test('a reader who moves keeps the hours of a course with a zone of its own', () => {
  const cadence = { kind: 'at', minute: 18 * 60, zone: 'Europe/Vienna', weekdays: [] } as const
  const due = Date.UTC(2026, 10, 24, 17)
  const to = { to: 'UTC', now: due - HOUR_MS }
  expect(
    movedDue({ cadence, spacingMs: 0 }, { dueAt: due, timeZone: 'Asia/Tokyo' }, to, zones),
  ).toBeUndefined()
})

test('somebody who arrives in a course with a zone of its own keeps its hours, wherever they live', () => {
  const cadence = { kind: 'at', minute: 18 * 60, zone: 'Europe/Vienna', weekdays: [2] } as const
  const arrive = (sent: number) =>
    arrivalAt({ cadence }, { sent, next: Date.UTC(2026, 10, 2), timeZone: 'Asia/Tokyo' }, zones)
  const tuesday = Date.UTC(2026, 10, 3, 17)
  expect(arrive(0)).toEqual({ confirmedAt: Date.UTC(2026, 10, 2), dueAt: tuesday })
  // Two weeks before, Vienna still had summer time.
  expect(arrive(2)).toEqual({ confirmedAt: Date.UTC(2026, 9, 20, 16), dueAt: tuesday })
})

test('a slot at the very moment of the confirmation counts, and one a millisecond before does not', () => {
  const monday = Date.UTC(2026, 10, 23, 8)
  const cadence = { kind: 'at', minute: 8 * 60, zone: 'UTC', weekdays: [1, 4] } as const
  const due = (confirmedAt: number, day: number) =>
    new Date(dueAt({ cadence, spacingMs: 0 }, { confirmedAt }, day, zones)).toISOString().slice(0, 10)
  expect([1, 2, 3, 4, 5].map((day) => due(monday, day))).toEqual([
    '2026-11-23',
    '2026-11-26',
    '2026-11-30',
    '2026-12-03',
    '2026-12-07',
  ])
  expect([1, 2, 3].map((day) => due(monday + 1, day))).toEqual(['2026-11-26', '2026-11-30', '2026-12-03'])
  expect(() => dueAt({ cadence, spacingMs: 0 }, { confirmedAt: 0 }, 1, undefined)).toThrow('needs time zones')
})

test.each([
  [true, ['en', 'pt-BR', 'zh-Hant-TW', 'de-1996', 'es-419', 'DE']],
  [false, ['en-12', 'old-v2', 'de-de-de', 'zh-cmn', 'no-bok', 'de-', 'en_US', 'german', 'i-klingon', '']],
])('is a language tag, whatever its form: %s', (is, tags) => {
  expect(tags.filter((tag) => isLanguage(tag) !== is)).toEqual([])
})

test('every accepted language works in all formatters', () => {
  const part = fc.stringMatching(/^[A-Za-z0-9]{1,9}$/)
  const tag = fc.array(part, { minLength: 1, maxLength: 5 }).map((parts) => parts.join('-'))
  const accepted: string[] = []
  fc.assert(
    fc.property(
      fc.oneof(tag, fc.stringMatching(/^[a-z]{2,3}(-[A-Za-z0-9]{2,4}){0,3}$/), fc.string()),
      (text) => {
        if (!isLanguage(text)) return
        accepted.push(text)
        expect(new Intl.DisplayNames('en', { type: 'language', fallback: 'code' }).of(text)).toBeTruthy()
        new Intl.DateTimeFormat(text).format(0)
        new Intl.NumberFormat(text).format(0)
        expect(new Intl.Locale(text).language).not.toBe('')
      },
    ),
    { numRuns: 300 },
  )
  expect(accepted.length).toBeGreaterThan(15)
})
