import { expect, test } from 'vitest'
import { de } from '../../../src/core/messages/de.ts'
import { en } from '../../../src/core/messages/en.ts'
import { directionOf, messagesOf } from '../../../src/core/messages/messages.ts'
import { timesIn } from '../../../src/core/messages/words.ts'
import { base } from '../../../src/presets/base/platform.ts'

test.each([
  ['de', 'de'],
  ['de-AT', 'de'],
  ['DE', 'de'],
  ['en-GB', 'en'],
  ['fr', 'en'],
])('a platform in %s hears the engine in %s', (language, spoken) => {
  expect(messagesOf(language).language).toBe(spoken)
})

test.each([
  ['ar-EG', 'rtl'],
  ['he', 'rtl'],
  ['de', 'ltr'],
])('%s is written %s', (language, direction) => {
  expect(directionOf(language)).toBe(direction)
})

/** Every text that takes no values, by its path. */
function textsOf(value: unknown, path = ''): [string, string][] {
  if (typeof value === 'string') return [[path, value]]
  if (typeof value !== 'object' || value === null) return []
  return Object.entries(value).flatMap(([key, one]) => textsOf(one, `${path}.${key}`))
}

/** The same in both languages, because the word is. */
const SHARED = ['.status.title', '.insights.controls']

test('no text of the German messages was left in English', () => {
  const english = new Map(textsOf(en))
  const same = textsOf(de).filter(([path, text]) => english.get(path) === text && !SHARED.includes(path))
  expect(same).toEqual([])
})

test('in German every error says what happened, as its own sentence is English', () => {
  const { codes, noLesson, forPrograms, operatorsOnly, notCharged } = de.errors
  for (const [, , what] of [
    ...Object.values(codes),
    noLesson,
    de.errors.noLessons,
    forPrograms,
    operatorsOnly,
    notCharged,
    de.errors.courseClosed,
  ])
    expect(what).toMatch(/^[A-ZÄÖÜ].*\.$/)
})

test('in German every probe of the engine has a name, and every group that can be absent its meaning', () => {
  for (const { name, group } of base.probes) {
    expect(de.status.probes).toHaveProperty(name)
    if (group !== undefined) expect(de.status.absent).toHaveProperty(group)
  }
})

test.each([
  [en.status.since(2 * 86_400_000 + 3_600_000), 'for 2 days 1 hour · '],
  [de.status.since(2 * 86_400_000 + 3_600_000), 'seit 2 Tagen 1 Stunde · '],
  [de.status.was('failing', 2 * 86_400_000), 'war 2 Tage lang gestört'],
  [de.status.checked(timesIn('de').ago(61_000)), 'geprüft vor 1 Minute'],
  [de.status.areFailing(['Web', 'Brennofen']), 'Gestört sind Web und Brennofen'],
  [de.status.areDegraded(['Web']), 'Alles funktioniert, aber eingeschränkt ist Web'],
  [
    de.course.confirmedEvery(3_600_000),
    'Ihre Adresse ist bestätigt. Im Abstand von 1 Stunde kommt eine Lektion; die erste mit dem nächsten Versand.',
  ],
  [
    en.course.confirmedEvery(2 * 86_400_000),
    'Your address is confirmed. A lesson comes every 2 days, beginning with the next delivery.',
  ],
])('%s', (text, expected) => {
  expect(text).toBe(expected)
})

test.each([
  ['en', 'UTC', '1 Dec 2026, 07:11 UTC', '1 Dec 2026, 07:11–07:26 UTC', '1 Dec 2026'],
  ['en', 'America/New_York', '1 Dec 2026, 02:11 GMT-5', '1 Dec 2026, 02:11–02:26 GMT-5', '1 Dec 2026'],
  ['de', 'UTC', '1. Dez. 2026, 07:11 UTC', '1. Dez. 2026, 07:11–07:26 Uhr UTC', '1. Dez. 2026'],
  ['de', 'Europe/Vienna', '1. Dez. 2026, 08:11 MEZ', '1. Dez. 2026, 08:11–08:26 Uhr MEZ', '1. Dez. 2026'],
])('times in %s and %s read naturally', (language, zone, moment, span, day) => {
  const times = timesIn(language, zone)
  const at = Date.UTC(2026, 11, 1, 7, 11)
  expect(times.moment(at)).toBe(moment)
  expect(times.span(at, at + 900_000)).toBe(span)
  // A clock that was set back ends nothing before it began.
  expect(times.span(at, at - 900_000)).not.toContain(moment.slice(0, -5))
  expect(times.day(at)).toBe(day)
})

test('how long ago something was is told in its largest unit', () => {
  const { ago } = timesIn('en')
  const told = [-5, 999, 1000, 59_999, 60_000, 7_200_000, 100_000_000].map(ago)
  expect(told).toEqual([
    '0 seconds ago',
    '0 seconds ago',
    '1 second ago',
    '59 seconds ago',
    '1 minute ago',
    '2 hours ago',
    '1 day ago',
  ])
})
