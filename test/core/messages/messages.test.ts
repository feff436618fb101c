import { expect, test } from 'vitest'
import { de } from '../../../src/core/messages/de.ts'
import { en } from '../../../src/core/messages/en.ts'
import { directionOf, messagesOf } from '../../../src/core/messages/messages.ts'
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
const SHARED = ['.status.title', '.time.months.3', '.insights.controls']

test('no text of the German messages was left in English', () => {
  const english = new Map(textsOf(en))
  const same = textsOf(de).filter(([path, text]) => english.get(path) === text && !SHARED.includes(path))
  expect(same).toEqual([])
})

test('in German every error says what happened, as its own sentence is English', () => {
  const { codes, noLesson, forPrograms, operatorsOnly, notCharged } = de.errors
  for (const [, , what] of [...Object.values(codes), noLesson('', 0), forPrograms, operatorsOnly, notCharged])
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
  [de.status.checked(400, '07:26 UTC'), 'geprüft vor weniger als einer Sekunde, um 07:26 UTC'],
  [de.status.areFailing(['Web', 'Brennofen']), 'Gestört sind Web und Brennofen'],
  [de.status.areDegraded(['Web']), 'Alles funktioniert, aber eingeschränkt ist Web'],
  [
    en.course.confirmedEvery(2 * 86_400_000),
    'Your address is confirmed. A lesson comes every 2 days, beginning with the next delivery.',
  ],
  [en.errors.noLesson('<a>', 7)[1], 'The course has seven: <a>.'],
])('%s', (text, expected) => {
  expect(text).toBe(expected)
})
