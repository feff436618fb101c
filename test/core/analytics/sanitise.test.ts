import fc from 'fast-check'
import { expect, onTestFinished, test } from 'vitest'
import { LONGEST_STRING, MOST_PROPERTIES } from '../../../src/core/analytics/events.ts'
import {
  isPersonalKey,
  NAMED_THINGS,
  PERSONAL_PARTS,
  PERSONAL_WORDS,
} from '../../../src/core/analytics/personal.ts'
import { createSanitiser } from '../../../src/core/analytics/sanitise.ts'
import { anyText } from '../../support/any-text.ts'
import { EVENT_KINDS, EVENTS } from '../../support/learning.ts'

const AT = Date.UTC(2026, 10, 21, 12)

function sanitise(value: unknown) {
  const reasons: string[] = []
  const event = createSanitiser(EVENTS)(value, (reason) => reasons.push(reason))
  return { event, reasons }
}
const withProperties = (properties: unknown) => sanitise({ kind: 'circuit.run', at: AT, properties })

test('keeps the listed properties of a kind in their types, and drops all others', () => {
  const kinds = [
    { name: 'kiln.booked', properties: { kiln: 'string', cones: 'number', mark: 'string' } },
  ] as const
  const reasons: string[] = []
  const properties = { kiln: 'gas', cones: '6', mark: 'ada@example.com', glaze: 'celadon', hot: true }
  const event = createSanitiser(kinds)({ kind: 'kiln.booked', at: AT, properties }, (reason) =>
    reasons.push(reason),
  )
  expect({ ...event?.properties }).toEqual({ kiln: 'gas' })
  expect(reasons).toEqual(['property_type', 'property_personal', 'property_unknown', 'property_unknown'])
})

test.each([
  [null, 'malformed'],
  [[], 'malformed'],
  [{}, 'unknown_kind'],
  [{ kind: 'lesson.deleted', at: AT }, 'unknown_kind'],
  [{ kind: 'toString', at: AT }, 'unknown_kind'],
  [{ kind: 'lesson.viewed', at: AT, properties: [] }, 'malformed'],
  [{ kind: 'lesson.viewed' }, 'time_out_of_range'],
  [{ kind: 'lesson.viewed', at: -1 }, 'time_out_of_range'],
  [{ kind: 'lesson.viewed', at: 1e300 }, 'time_out_of_range'],
  [{ kind: 'lesson.viewed', at: '2026-11-21' }, 'time_out_of_range'],
  // Without a zone, it would be another moment on every device.
  [{ kind: 'lesson.viewed', at: '2026-11-21T12:00:00' }, 'time_out_of_range'],
])('%j is dropped as %s', (value, reason) => {
  expect(sanitise(value)).toEqual({ event: undefined, reasons: [reason] })
})

test.each([
  [AT, AT],
  [AT + 0.75, AT],
  ['2026-11-21T12:00:00Z', AT],
  ['2026-11-21T13:00:00.000+01:00', AT],
])('the time %j is understood', (at, expected) => {
  expect(sanitise({ kind: 'lesson.viewed', at }).event).toEqual({
    kind: 'lesson.viewed',
    at: expected,
    properties: {},
  })
})

test('strings, finite numbers and booleans are kept, and nothing else', () => {
  const { event, reasons } = withProperties({
    device: 'simulator',
    shots: 1024,
    ideal: true,
    nothing: null,
    list: [1],
    nested: { email: 'a@example.com' },
    infinite: Number.POSITIVE_INFINITY,
    missing: Number.NaN,
  })
  expect(event?.properties).toEqual({ device: 'simulator', shots: 1024, ideal: true })
  expect(reasons).toEqual(Array(5).fill('property_type'))
})

test.each([
  // Each word of each list: below. Here, the ways to write one.
  ...['email', 'eMail', 'E-Mail', 'user_email', 'contactEmailAddress', 'correo electrónico', 'FIRST_NAME'],
  ...['userName', 'Prénom', 'téléphone', 'Telefonnummer', 'tel', 'clientIP', 'IPAddress', 'zip', 'birthDate'],
  ...['passportNo', 'card_number', 'apiKey', 'sessionId', 'user-id', 'visitor.id', 'имя', '电子邮件'],
  ...['الاسم'],
  ...['Adresse_Ligne1', 'userPwd', 'hasło', 'şifre', 'numéroTéléphone', 'codiceFiscale', 'givenName'],
  ...['почта'],
  // Cyrillic, Greek and Armenian letters among Latin ones.
  ...['еmail', 'nаmе', 'pһone', 'ѕurname', 'tоken', 'pаѕѕwоrd', 'ｅｍａｉｌ', '𝐞𝐦𝐚𝐢𝐥', 'e\u0301mail'],
  ...['ema\u20d0il'],
])('a property called %j is personal', (key) => {
  expect(withProperties({ [key]: 'x' })).toMatchObject({
    event: { properties: {} },
    reasons: ['property_personal'],
  })
})

test.each([
  ...['lesson', 'lessonId', 'lesson_name', 'deviceName', 'script', 'shipping', 'tier', 'query_length'],
  ...['language', 'page.kind', 'stage', 'passed', 'sidebar', 'enclave', 'padding', 'adrenaline', 'routing'],
  ...['permission', 'author_count', 'pass', 'smooth', 'stadium', 'урок', 'μάθημα', 'navigation'],
])('a property called %j is kept', (key) => {
  expect(withProperties({ [key]: 'x' }).event?.properties).toEqual({ [key]: 'x' })
})

test.each([
  ...['anna@example.com', 'Anna Example <anna@example.com>', '"an na"@example.com', 'anna@localhost'],
  ...['mailto:anna@example.com', 'anna%40example.com', 'anna＠example.com', 'анна@пример.рф'],
  `${'x'.repeat(60)}@example.com`,
  // The number of a card, and a text that is one only once it is cut.
  ...[4111111111111111, `${'x'.repeat(47)} 411111111111111123`],
])('the value %j holds an address or a card and is dropped, whatever its name', (value) => {
  expect(withProperties({ note: value })).toMatchObject({
    event: { properties: {} },
    reasons: ['property_personal'],
  })
})

test.each(['@', 'a @ b', 'half past 5', '50%', '40%'])('the value %j is no address', (value) => {
  expect(withProperties({ note: value }).event?.properties).toEqual({ note: value })
})

test('names that every object has, and data used as names, are dropped', () => {
  const properties = JSON.parse(
    '{"__proto__":{"polluted":true},"constructor":"x","prototype":"kept","toString":"x","hasOwnProperty":1,"+49 170 1234567":true,"anna@example.com":1,"":1,"1":1,"_x":1}',
  )
  const { event, reasons } = withProperties(properties)
  expect(event?.properties).toEqual({ prototype: 'kept' })
  // Nothing is inherited.
  for (const name of ['__proto__', 'constructor', 'toString'])
    expect(name in (event?.properties ?? {})).toBe(false)
  expect(({} as Record<string, unknown>).polluted).toBeUndefined()
  expect(reasons).toEqual(Array(9).fill('property_name'))
})

test('the verdict on a name is for its own spelling, and not for the next that differs in capitals', () => {
  expect(withProperties({ clientip: 1, clientIp: 2 }).event?.properties).toEqual({ clientip: 1 })
})

test('a string is cut to 64 characters and never through one', () => {
  const faces = '😀'.repeat(100)
  // However often it comes.
  for (const _ of 'twice')
    expect(withProperties({ topic: faces }).event?.properties.topic).toBe('😀'.repeat(64))
  expect(withProperties({ topic: `${'a'.repeat(63)}😀b` }).event?.properties.topic).toBe(
    `${'a'.repeat(63)}😀`,
  )
  expect(withProperties({ topic: 'a\ud83db' }).event?.properties.topic).toBe('a\ufffdb')
})

test('only the first properties are kept, up to the documented number', () => {
  const many = Object.fromEntries(Array.from({ length: 25 }, (_, index) => [`p${index}`, index]))
  const { event, reasons } = withProperties(many)
  expect(Object.keys(event?.properties ?? {})).toHaveLength(MOST_PROPERTIES)
  expect(reasons).toEqual(Array(5).fill('property_limit'))
  // Those that are dropped for another reason take no place.
  const listed = Object.fromEntries(Object.keys(many).map((name) => [name, 'number'] as const))
  const dropped = { $: 1, email: 'x', other: 1, p24: 'text' }
  const faults: string[] = []
  const of = createSanitiser([{ name: 'own', properties: { ...listed, email: 'string', $: 'number' } }])
  const kept = of({ kind: 'own', at: AT, properties: { ...dropped, ...many, p24: 'text' } }, (one) =>
    faults.push(one),
  )
  expect(Object.keys(kept?.properties ?? {})).toHaveLength(MOST_PROPERTIES)
  expect(faults.toSorted()).toEqual([
    ...Array(4).fill('property_limit'),
    ...['property_name', 'property_personal', 'property_type', 'property_unknown'],
  ])
})

test('a megabyte of text is judged at once, whatever it repeats', { timeout: 2000 }, () => {
  for (const text of ['a', '%40', '@', 'a@', ' @', '\ud83d']) {
    const { event } = withProperties({ note: text.repeat(1_000_000 / text.length) })
    expect(String(event?.properties.note ?? '').length).toBeLessThanOrEqual(LONGEST_STRING)
  }
})

const anyValue = fc.oneof(
  anyText({ maxLength: 200 }),
  fc.emailAddress(),
  fc.tuple(fc.string({ maxLength: 80 }), fc.emailAddress()).map((parts) => parts.join(' ')),
  fc.double(),
  fc.boolean(),
  fc.anything(),
)
const anyKey = fc.oneof(anyText(), fc.constantFrom('email', '__proto__', 'lesson', 'constructor'))

test('sanitising twice changes nothing, and what comes out keeps every promise', () => {
  fc.assert(
    fc.property(
      fc.constantFrom(...EVENT_KINDS),
      fc.oneof(
        fc.integer({ min: 0 }),
        fc.date({ noInvalidDate: true, min: new Date(0) }).map((date) => date.toISOString()),
      ),
      fc.dictionary(anyKey, anyValue, { maxKeys: 40 }),
      (kind, at, properties) => {
        const once = sanitise({ kind, at, properties })
        const again = sanitise(JSON.parse(JSON.stringify(once.event ?? null)))
        if (once.event === undefined) return
        expect(again.reasons).toEqual([])
        expect(JSON.stringify(again.event)).toBe(JSON.stringify(once.event))
        for (const [key, value] of Object.entries(once.event.properties)) {
          expect(isPersonalKey(key)).toBe(false)
          expect(['string', 'number', 'boolean']).toContain(typeof value)
          if (typeof value === 'string') {
            expect([...value].length).toBeLessThanOrEqual(LONGEST_STRING)
            expect(value.isWellFormed()).toBe(true)
          }
        }
      },
    ),
    { numRuns: 200 },
  )
})

test('a text is judged the same however often it comes, and however many others came between', () => {
  const texts = Array.from({ length: 2_600 }, (_, index) =>
    index % 7 === 0
      ? `anna${index}@example.org`
      : index % 11 === 0
        ? `${'x'.repeat(70)}${index}`
        : `part ${index}`,
  )
  const judged = () =>
    texts.map((topic) => {
      const { event, reasons } = withProperties({ topic })
      return [event?.properties.topic, ...reasons]
    })
  const first = judged()
  expect(first[0]).toEqual([undefined, 'property_personal'])
  expect(first[1]).toEqual(['part 1'])
  expect(first[11]).toEqual(['x'.repeat(64)])
  expect(judged()).toEqual(first)
})

test('every pattern is written in the form in which names are compared', () => {
  for (const part of [...PERSONAL_PARTS, ...PERSONAL_WORDS]) expect(isPersonalKey(part), part).toBe(true)
  for (const thing of NAMED_THINGS) expect(isPersonalKey(`${thing}_name`), thing).toBe(false)
})

test('a browser without toWellFormed, as Firefox 115, records events too', () => {
  const known = String.prototype.toWellFormed
  Reflect.deleteProperty(String.prototype, 'toWellFormed')
  onTestFinished(() => {
    Object.defineProperty(String.prototype, 'toWellFormed', {
      value: known,
      configurable: true,
      writable: true,
    })
  })
  expect(withProperties({ topic: 'gates' }).event?.properties.topic).toBe('gates')
})
