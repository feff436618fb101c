import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { createCatalog } from '../../../src/core/course/catalog.ts'
import { arrivalAt, dueAt, nextLesson } from '../../../src/core/course/due.ts'
import { CSV_HEAD, type ExportedPerson, personLine, readPeople } from '../../../src/core/course/people.ts'
import { zones } from '../../../src/core/course/zones.ts'
import { cellValue, csvLine, readCsv } from '../../../src/core/csv.ts'
import { DAY_MS, HOUR_MS } from '../../../src/core/durations.ts'
import type { StoreAddress } from '../../../src/core/env/settings.ts'
import { secret } from '../../../src/core/secret.ts'
import { openMaintenance } from '../../../src/core/store/open.ts'
import { learning } from '../../../src/presets/learning/platform.ts'
import { byHand } from '../../support/by-hand.ts'
import { courseNamed, courseWith, lessons, linkOf, START } from '../../support/course.ts'
import { KEPT } from '../../support/stores.ts'

const weekly = courseNamed('choir', {
  title: 'Choir',
  lessons: lessons(4),
  cadence: { kind: 'at', minute: 18 * 60, zone: undefined, weekdays: [2] },
})
const daily = courseNamed('daily', { lessons: lessons(4), follow: 'latest' })
const catalog = createCatalog([weekly, daily], { zones })
const { courses } = catalog
const OPS = { name: 'ops', place: 'box-1' }
const CONSENT = 'consent_at,consent_how'
const reading = (text: string) => readPeople(text, { courses, now: START })

async function all<T>(pages: AsyncIterable<readonly T[]>): Promise<readonly T[]> {
  const found: T[] = []
  for await (const page of pages) found.push(...page)
  return found
}

describe.each(KEPT)('on %s', (kind) => {
  test('an export reads back into another store: everybody goes on where they were, and nobody who left comes back', async () => {
    const before = await courseWith(0, { kind, catalog })
    const people = ['ada', 'bob', 'eve', 'kim', 'lee'].map((name) => `${name}@example.com`)
    for (const identity of people)
      for (const course of ['choir', 'daily'])
        await before.course.enrol({
          ...{ spelling: identity, identity, course, language: 'de', timeZone: 'Europe/Vienna' },
        })
    for (let day = 0; day < 5; day += 1) {
      await before.course.dispatch({ limit: 100 })
      before.pass(DAY_MS)
    }
    await before.course.cancel({ identity: 'bob@example.com', course: 'choir' })
    const exported = await all(before.course.people())
    expect(exported).toHaveLength(10)
    const left = exported.find(({ state }) => state === 'unsubscribed')
    const consentHow = 'enrolled by a program or an operator'
    expect(left).toMatchObject({ sentLessons: lessons(1), nextAt: undefined, consentHow })
    const json = JSON.stringify({ version: 1, enrolments: exported })
    const csv = CSV_HEAD + exported.map(personLine).join('')
    for (const text of [json, csv]) {
      const after = await courseWith(0, { kind, catalog })
      after.pass(5 * DAY_MS)
      await after.course.enrol({ spelling: 'eve@example.com', identity: 'eve@example.com', course: 'choir' })
      await after.course.cancel({ identity: 'eve@example.com', course: 'choir' })
      await after.course.erase('kim@example.com')
      const read = readPeople(text, { courses, now: after.now() })
      expect(read.faults).toEqual([])
      expect(read.leftOut.map(({ why }) => why)).toEqual(['unsubscribed'])
      const outcomes = async (dryRun: boolean) => {
        const options = { dryRun, file: 'people.csv' }
        const became = await all(after.course.admit(read.people, options, OPS))
        return Map.groupBy(became, (one) => one.became)
      }
      const sizes = (groups: Awaited<ReturnType<typeof outcomes>>) =>
        Object.fromEntries([...groups].map(([became, group]) => [became, group.length]))
      const expected = { imported: 6, erased: 2, unsubscribed: 1 }
      expect(sizes(await outcomes(true))).toEqual(expected)
      expect(await all(after.course.people())).toHaveLength(1)
      expect(sizes(await outcomes(false))).toEqual(expected)
      // Twice is once.
      expect(sizes(await outcomes(false))).toEqual({ known: 6, erased: 2, unsubscribed: 1 })
      const mine = ({ address, course }: ExportedPerson) =>
        !address.startsWith('kim') && !(course === 'choir' && /^(bob|eve)/.test(address))
      const sorted = (list: readonly ExportedPerson[]) =>
        list.filter(mine).sort((a, b) => `${a.address} ${a.course}`.localeCompare(`${b.address} ${b.course}`))
      expect(sorted(await all(after.course.people()))).toEqual(sorted(exported))
      const audited = (await after.store.audit.list(10)).filter(({ action }) => action === 'import')
      expect(audited).toMatchObject([{ details: '9 people from people.csv', who: 'ops' }])
      // Both go on alike from here.
      const sent = before.messages.length
      for (let day = 0; day < 9; day += 1) {
        await after.course.dispatch({ limit: 100 })
        after.pass(DAY_MS)
      }
      expect(sent).toBeGreaterThan(0)
      expect((await after.course.find('ada@example.com', 'choir'))?.sentDays).toEqual([1, 2])
      expect(after.messages.filter(({ to }) => to.address === 'ada@example.com')).toHaveLength(1)
    }
  })
})

/** Somebody of a store that was lost, as it exported her, and the link of a mail from there. */
async function lostAda() {
  const lost = await courseWith(0, { catalog })
  const ada = { spelling: 'ada@example.com', identity: 'ada@example.com', course: 'daily' }
  await lost.course.enrol(ada)
  await lost.course.dispatch({ limit: 1 })
  const exported = CSV_HEAD + (await all(lost.course.people())).map(personLine).join('')
  return { ada, people: reading(exported).people, link: linkOf(lost.messages[0]) }
}

test.each(['before', 'after'])(
  'somebody whom a restore has lost is out by the link of a mail, used %s the import that brings people back',
  async (when) => {
    const { ada, people, link } = await lostAda()
    const restored = await courseWith(0, { catalog })
    await restored.store.getOrCreate('address_key', () => 'a key')
    const uses = () => restored.course.unsubscribe(link)
    if (when === 'before') await uses()
    const imports = () => all(restored.course.admit(people, { dryRun: false, file: 'lost.csv' }, OPS))
    expect(await imports()).toMatchObject([{ became: when === 'before' ? 'unsubscribed' : 'imported' }])
    await uses()
    const found = await restored.course.find(ada.identity, 'daily')
    expect(found?.state).toBe(when === 'before' ? undefined : 'unsubscribed')
    expect(await imports()).toMatchObject([{ became: 'unsubscribed' }])
  },
)

test.each(['asked', 'confirmed'])(
  'who has %s again before an import is out by the link of an old mail',
  async (again) => {
    const { ada, people, link } = await lostAda()
    const it = await courseWith(0, { catalog })
    await (again === 'asked' ? it.course.subscribe(ada) : it.course.enrol(ada))
    for (const dryRun of [true, false, false]) {
      await all(it.course.admit(people, { dryRun, file: 'lost.csv' }, OPS))
      // A link of hers is kept with her, and by a dry run with nobody.
      expect(await byHand(it.address, 'SELECT * FROM enrol_request')).toHaveLength(dryRun ? 0 : 1)
    }
    await it.course.unsubscribe(link)
    expect(await it.course.find(ada.identity, 'daily')).toMatchObject({ state: 'unsubscribed' })
    await it.course.undoUnsubscribe(link)
    expect(await it.course.find(ada.identity, 'daily')).toMatchObject({ state: 'confirmed' })
  },
)

test('nobody who was erased under an earlier key is imported or enrolled', async () => {
  const { ada, people } = await lostAda()
  const it = await courseWith(0, { catalog })
  await it.course.erase(ada.identity)
  const later = it.open(it.store.course, { more: { addressKey: secret('another key for addresses') } })
  const imported = await all(later.admit(people, { dryRun: false, file: 'lost.csv' }, OPS))
  expect(imported).toMatchObject([{ became: 'erased' }])
  expect(await later.enrol(ada)).toEqual({ enrolled: false, reason: 'erased' })
})

test('an export says of a lesson that waits for its next attempt when it was due', async () => {
  const it = await courseWith(0, { catalog })
  await it.course.enrol({ spelling: 'ada@example.com', identity: 'ada@example.com', course: 'daily' })
  it.answer(() => ({ kind: 'transient', scope: 'message', reason: 'the mailbox is full' }))
  it.pass(HOUR_MS)
  expect(await it.course.dispatch({ limit: 1 })).toMatchObject({ failed: 1 })
  expect(await all(it.course.people())).toMatchObject([{ nextAt: new Date(START).toISOString() }])
})

test('an id that is taken, or that two people have, is given to nobody else', async () => {
  const it = await courseWith(0, { catalog })
  const list = ['ada', 'bob', 'cai'].map(
    (name, n) => `${name}@example.com,2026-01-02,form,subscription-1.${n + 2}\n`,
  )
  for (const lines of [list.slice(0, 2), list])
    await all(
      it.course.admit(
        reading(`address,${CONSENT},subscription\n${lines.join('')}`).people,
        { dryRun: false, file: 'people.csv' },
        OPS,
      ),
    )
  const ids = (await all(it.course.people())).map(({ address, subscription }) => [address, subscription])
  // Of her second enrolment: its mails have other keys than those of the first.
  const kept = ids.filter(([, id]) => id?.startsWith('subscription-1'))
  expect(kept).toEqual([['ada@example.com', 'subscription-1.2']])
  expect(new Set(ids.map(([, id]) => id)).size).toBe(3)
  const agreed = { consentAt: '2026-01-02', consentHow: 'form', subscription: 'subscription-1.2' }
  const inJson = ['ada', 'bob'].map((name) => ({ address: `${name}@example.com`, ...agreed }))
  const given = reading(JSON.stringify(inJson)).people.map(({ subscription }) => subscription?.id)
  expect(given).toEqual(['subscription-1', undefined])
})

test.each(['start', 'latest'] as const)(
  'somebody imported gets the lessons that they lack, whichever those are: the course follows its %s lessons',
  async (follow) => {
    const course = { ...daily, follow }
    const it = await courseWith(0, { catalog: createCatalog([weekly, course], { zones }) })
    const [first = '', second = '', third = '', last = ''] = lessons(4)
    const had = { 'ada@example.com': [second, last], 'bob@example.com': ['a-lesson-of-before', first] }
    const lines = Object.entries(had).map(
      ([who, names]) => `${who},daily,2026-01-02,form,${names.join(' ')}\n`,
    )
    const { people } = reading(`address,course,${CONSENT},sent_lessons\n${lines.join('')}`)
    await all(it.course.admit(people, { dryRun: false, file: 'people.csv' }, OPS))
    const needs = follow === 'latest' ? 2 : 0
    expect(await byHand(it.address, 'SELECT needs FROM subscription')).toEqual([{ needs }, { needs }])
    for (let day = 0; day < 4; day += 1) {
      await it.course.dispatch({ limit: 10 })
      it.pass(DAY_MS)
    }
    const names = new Map((await all(it.course.people())).map((one) => [one.address, one.sentLessons]))
    expect(names.get('ada@example.com')).toEqual([second, last, first, third])
    expect(names.get('bob@example.com')).toEqual(['a-lesson-of-before', first, second, third, last])
    const mailed = (who: string) =>
      it.messages.filter(({ to }) => to.address === who).map(({ subject }) => subject)
    const bobs = mailed('bob@example.com')
    expect(bobs).not.toContain(mailed('ada@example.com')[0])
    expect(mailed('ada@example.com')).toEqual([expect.any(String), bobs[1]])
  },
)

test('somebody imported as finished stays so, with the lessons that they had, and can begin again', async () => {
  const it = await courseWith(0, { catalog })
  const rows = ['choir', 'daily'].map((course) => `ada@example.com,${course},2026-01-02,form,finished,`)
  const head = `address,course,${CONSENT},state,sent_lessons`
  const { people } = reading([head, ...rows.map((row) => `${row}course-day-2 course-day-1`)].join('\n'))
  await all(it.course.admit(people, { dryRun: false, file: 'people.csv' }, OPS))
  it.pass(30 * DAY_MS)
  expect(await it.course.dispatch({ limit: 10 })).toMatchObject({ sent: 0 })
  const exported = await all(it.course.people())
  expect(exported.map(({ state, sent }) => [state, sent])).toEqual(rows.map(() => ['finished', 2]))
  const daily = exported.find(({ course }) => course === 'daily')
  expect(daily?.sentLessons).toEqual(['course-day-2', 'course-day-1'])
  const ada = { spelling: 'ada@example.com', identity: 'ada@example.com' }
  for (const course of ['choir', 'daily'])
    expect(await it.course.enrol({ ...ada, course })).toMatchObject({ enrolled: true })
  // The export has the consent that they began anew with, and not the first.
  const [again] = await all(it.course.people())
  expect(again).toMatchObject({
    consentAt: new Date(it.now()).toISOString(),
    consentHow: 'enrolled by a program or an operator',
  })
})

test('somebody enrolled before consent was recorded is exported with how they agreed, so that the list reads back', async () => {
  const it = await courseWith(1)
  await byHand(it.address, 'UPDATE subscription SET consent_at = NULL, consent_how = NULL')
  const text = CSV_HEAD + (await all(it.course.people())).map(personLine).join('')
  const { people, faults } = readPeople(text, { courses: learning.courses, now: START })
  expect(faults).toEqual([])
  expect(people[0]?.consent.how).toContain('confirmed by link')
})

test.each(['admit', 'enrol'] as const)(
  'somebody who is erased just before the store is asked to %s them stays out',
  async (how) => {
    const it = await courseWith(0, { catalog })
    const ada = 'ada@example.com'
    const write: (input: never) => Promise<unknown> = it.store.course[how]
    Object.assign(it.store.course, {
      async [how](input: never) {
        await it.course.erase(ada)
        return write(input)
      },
    })
    const { people } = reading(`address,course,${CONSENT}\n${ada},daily,2026-01-02,form\n`)
    const answer =
      how === 'enrol'
        ? await it.course.enrol({ spelling: ada, identity: ada, course: 'daily' })
        : await all(it.course.admit(people, { dryRun: false, file: 'people.csv' }, OPS))
    expect(answer).toEqual(
      how === 'enrol' ? { enrolled: false, reason: 'erased' } : [{ line: 2, became: 'erased' }],
    )
    expect(await it.course.findPerson(ada)).toEqual([])
  },
)

test('an import hears of an interruption between two of its transactions', async () => {
  const it = await courseWith(0, { catalog })
  const lines = Array.from({ length: 1000 }, (_, n) => `p${n}@example.com,daily,2026-01-02,form\n`)
  const { people } = reading(`address,course,${CONSENT}\n${lines.join('')}`)
  const interruption = new AbortController()
  setImmediate(() => interruption.abort())
  let done = 0
  for await (const admitted of it.course.admit(people, { dryRun: false, file: 'people.csv' }, OPS)) {
    done += admitted.length
    if (interruption.signal.aborted) break
  }
  expect(done).toBeLessThan(1000)
})

test('the people of one course are exported also behind a page that has none of them', async () => {
  const it = await courseWith(500, { kind: 'memory' })
  await it.join('late@example.com', { id: 'person-late', course: 'choir', confirms: false })
  expect(await all(it.course.people('choir'))).toMatchObject([{ address: 'late@example.com' }])
  expect(await all(it.course.people())).toHaveLength(501)
})

test('a list with a fault says each by its line, and no message holds an address', () => {
  const inDays = (days: number, ms = 0) => new Date(START + days * DAY_MS + ms).toISOString()
  const text = `address,course,${CONSENT},language,time_zone,sent,state,next_at,last_sent_at,sent_lessons
ada@example.com,choir,2026-01-02T09:30:00+02:00,form,de,Europe/Vienna,2,,
bad address@example.com,choir,2026-01-02,form,,,,,
b@example.com,chior,2026-01-02,form,,,,,
c@example.com,choir,,form,,,,,
"d@example.com",choir,2026-01-02,"a
form",de_DE,,,,
e@example.com,choir,2026-01-02,form,,Mars,,,
f@example.com,choir,2026-01-02,form,,,9,,
g@example.com,choir,02/01/2026,form,,,,,
h@example.com,choir,2036-01-02,form,,,,,
i@example.com,choir,2026-01-02,form,,,,gone,
j@example.com,choir,2026-01-02,form,,,,,soon
ADA@example.com,,2026-01-02,form,,,,,
k@example.com,,,,,,,unsubscribed,
l@example.com,,,,,,,unconfirmed,
m@example.com,choir,${inDays(2)},form,,,,,
n@example.com,choir,2025-02-29,form,,,,,
o@example.com,choir,2026-01-02,form,,,,,2026-11-31T09:00:00Z
p@example.com,choir,2026-01-02,form,,,,,,2036-01-02
q@example.com,choir,2026-01-02,form,,,,,${inDays(366, 1)}
r@example.com,choir,2026-01-02,form,,,,,${inDays(366)}
s@example.com,daily,2026-01-02,form,,,99
t@example.com,daily,2026-01-02,form,,,4
u@example.com,daily,2026-01-02,form,,,5,,,,one two three four five
v@example.com,status,2026-01-02,form,,,99
w@example.com,daily,2026-01-02,form,,,2,,,,four four
`
  const { people, leftOut, faults, unit } = reading(text)
  expect(unit).toBe('line')
  expect(people[0]).toMatchObject({
    line: 2,
    sent: 2,
    consent: { at: Date.UTC(2026, 0, 2, 7, 30), how: 'form' },
  })
  expect(people.slice(1).map(({ line, sent }) => [line, sent])).toEqual([
    [22, 0],
    [24, 4],
    [25, 5],
    [26, 99],
  ])
  expect(leftOut).toEqual([
    { line: 14, why: 'repeated' },
    { line: 15, why: 'unsubscribed' },
    { line: 16, why: 'unconfirmed' },
  ])
  expect(faults.map(({ line, message }) => `${line} ${message}`)).toEqual([
    '3 the part before the @ is malformed',
    '4 the course is none of this platform: choir, daily',
    expect.stringMatching(/^5 proof of consent is missing: consent_at says when/),
    '6 language is not a language tag, as de or pt-BR',
    '8 time_zone is not an IANA time zone, as Europe/Berlin',
    '9 sent is 9, and the course choir has 4 lessons',
    '10 consent_at is not a time, as 2026-03-01 or 2026-03-01T09:30:00Z',
    '11 consent_at is in the future',
    '12 state is not confirmed, finished, unconfirmed or unsubscribed',
    '13 next_at is not a time, as 2026-03-01 or 2026-03-01T09:30:00Z',
    '17 consent_at is in the future',
    '18 consent_at is not a time, as 2026-03-01 or 2026-03-01T09:30:00Z',
    '19 next_at is not a time, as 2026-03-01 or 2026-03-01T09:30:00Z',
    '20 last_sent_at is in the future',
    '21 next_at is more than 366 days away',
    '23 sent is 99, and the course daily has 4 lessons',
    '27 sent_lessons names a lesson twice',
  ])
  expect(JSON.stringify(faults)).not.toContain('example.com')
})

const HEAD = `address,${CONSENT}`
const listOf = (length: number) => `[${' '.repeat(length - 2)}]`
const MB = 1024 * 1024
test.each([
  ['no column but others', 'email\nada', 1, /^there is no column address; .*consent_at; .*consent_how; /],
  ['JSON that does not end', '[{"address": "ada@example.com"', 1, /^the file is not JSON$/],
  ['JSON without a list', '{}', 1, /^there is no list of enrolments$/],
  ['an export of another version', '{"version": 2, "enrolments": []}', 1, /another version than 1/],
  ['JSON of more than 8 MB', listOf(8 * MB + 1), 1, /JSON .* 8 MB: import CSV/],
  [
    'a quote that does not end',
    `${HEAD}\na@example.com,"`,
    2,
    /^a quote that begins on this line does not end$/,
  ],
  ['a line of 1001 columns', `${HEAD}\n${'x,'.repeat(1000)}`, 2, /^this line has more than 1000 columns$/],
  [
    'a cell of more than 64 KB',
    `${HEAD}\n${'x'.repeat(MB / 16 + 1)}`,
    2,
    /^a cell of this line has more than 64 KB$/,
  ],
])('a list with %s is refused, with the reason', (_, text, line, message) => {
  const { faults, people } = reading(text)
  expect([...new Set(faults.map((one) => one.line))]).toEqual([line])
  expect(faults.map((one) => one.message).join(' ')).toMatch(message)
  expect(people).toEqual([])
})

test('a list is read up to these limits', () => {
  for (const text of ['{"version": 1, "enrolments": []}', listOf(8 * MB)])
    expect(reading(text).faults).toEqual([])
  for (const line of ['x,'.repeat(999), 'x'.repeat(MB / 16)])
    expect([...readCsv(`${HEAD}\n${line}`)][1]).not.toHaveProperty('fault')
  const { faults } = reading(`${HEAD}\n${'nobody,,\n'.repeat(1000)}"`)
  expect([faults.length, faults.at(-1)?.line]).toEqual([1000, 1001])
})

test('a second column of the same name is reported as ignored', () => {
  const { people, ignored } = reading(
    `Address,name,${CONSENT},address\na@example.com,A,2026-01-02,form,b@example.com\n`,
  )
  expect(people.map(({ spelling }) => spelling)).toEqual(['a@example.com'])
  expect(ignored).toEqual(['name', 'address'])
})

test.each([',', ';', '\t'])(
  'a line with more fields than the header, separated by %j, is a fault, unless the rest is empty',
  (separator) => {
    const lines = [
      'address,consent_at,consent_how,sent,',
      'a@example.com,2026-01-02,form 12,,,,',
      'b@example.com,2026-01-02,form 12, ,signed 2025-12-31 in Ghent',
      'c@example.com,2026-01-02,form 12,, , ,signed',
      'd@example.com,2026-01-02,"form 12, signed; in\tGhent"',
    ].map((line) => line.replaceAll(/,(?! signed)/g, separator))
    const { people, faults } = reading(lines.join('\n'))
    const fix = 'put quotes around a field that holds the separator, such as a comma'
    expect(faults).toEqual([
      { line: 3, message: `there are 5 fields for 4 columns: ${fix}` },
      { line: 4, message: `there are 7 fields for 4 columns: ${fix}` },
    ])
    expect(people.map(({ consent }) => consent.how)).toEqual(['form 12', 'form 12, signed; in\tGhent'])
  },
)

test('an object in the place of a text, as in the proof of consent, is a fault in JSON', () => {
  const person = { address: 'a@example.com', consentAt: '2026-01-02' }
  const proofs = ['form 12', ['form', 12], { form: 12 }, ['form', { number: 12 }]]
  const { people, faults } = reading(JSON.stringify(proofs.map((consentHow) => ({ ...person, consentHow }))))
  expect(people.map(({ consent }) => consent.how)).toEqual(['form 12'])
  expect(faults).toEqual([3, 4].map((line) => ({ line, message: 'consentHow is not a text' })))
})

test('what is written as CSV reads back, and no cell begins as a formula does', () => {
  const cell = fc.oneof(
    fc.string(),
    fc.stringMatching(/^[=+\-@'\t"][ -~]{0,8}$/),
    fc.constantFrom('a,b', 'a\r\nb', '""'),
  )
  const row = fc.array(cell, { minLength: 2, maxLength: 5 })
  const property = fc.property(fc.array(row, { minLength: 1, maxLength: 6 }), (rows) => {
    const text = ['a,b', ...rows.map((one) => csvLine(one).slice(0, -2))].join('\r\n')
    const read = [...readCsv(text)].slice(1)
    const filled = (list: readonly (readonly string[])[]) => list.filter((one) => one.some(Boolean))
    expect(filled(read.map(({ cells }) => cells.map(cellValue)))).toEqual(
      filled(rows.map((one) => one.map((value) => value.trim()))),
    )
    for (const { cells } of read) for (const value of cells) expect(value).not.toMatch(/^[=+\-@\t\r]/)
  })
  fc.assert(property)
})

test('who had some lessons elsewhere gets the next at the next slot, and each later one in the slot after', () => {
  const property = fc.property(
    fc.constantFrom(weekly, daily),
    fc.nat(3),
    fc.integer({ min: START, max: START + 400 * DAY_MS }),
    fc.constantFrom('UTC', 'Europe/Vienna', 'America/New_York', 'Pacific/Auckland'),
    (course, sent, next, timeZone) => {
      const { confirmedAt, dueAt: due } = arrivalAt(course, { sent, next, timeZone }, zones)
      expect(due).toBeGreaterThanOrEqual(next)
      expect(due - next).toBeLessThanOrEqual(course === daily ? 0 : 7 * DAY_MS + 3_600_000)
      expect(dueAt(course, { confirmedAt, timeZone }, sent + 1, zones)).toBe(due)
      const following = nextLesson(course, { confirmedAt, timeZone, dueAt: due }, sent + 1, zones)
      if (sent < 3) expect(following?.dueAt).toBe(dueAt(course, { confirmedAt, timeZone }, sent + 2, zones))
    },
  )
  fc.assert(property)
})

const morning = courseNamed('morning', {
  lessons: lessons(4),
  cadence: { kind: 'at', minute: 9 * 60, zone: undefined, weekdays: [] },
})
const spaced = { ...daily, id: 'spaced', spacingMs: 20 * HOUR_MS }
const mixed = createCatalog([weekly, daily, morning, spaced], { zones })

describe.each(KEPT)('on %s', (kind) => {
  test('somebody imported gets the next lesson at next_at, and db verify finds no fault', async () => {
    const iso = (ms: number) => new Date(START + ms).toISOString()
    const days = (min: number, max: number) =>
      fc.oneof(
        fc.integer({ min, max }).map((n) => iso(n * DAY_MS)),
        fc.integer({ min: min * 48, max: max * 48 }).map((n) => iso((n * HOUR_MS) / 2)),
      )
    const orNone = (of: fc.Arbitrary<string>) => fc.option(of, { nil: '' })
    const line = fc.tuple(
      fc.constantFrom('choir', 'daily', 'morning', 'spaced'),
      fc.constantFrom('', 'confirmed', 'finished'),
      fc.constantFrom('', 'UTC', 'Europe/Vienna', 'Pacific/Auckland'),
      fc.nat(4).map(String),
      days(-9, 2),
      orNone(days(-9, 2)),
      orNone(days(-9, 9)),
    )
    const head = `address,course,state,time_zone,sent,consent_at,last_sent_at,next_at,consent_how\n`
    const property = fc.asyncProperty(
      fc.array(line, { minLength: 1, maxLength: 60, size: 'max' }),
      async (lines) => {
        const it = await courseWith(0, { kind, catalog: mixed })
        const text = head + lines.map((one, n) => `p${n}@example.com,${one.join(',')},form\n`).join('')
        const { people } = readPeople(text, { courses: mixed.courses, now: START })
        await all(it.course.admit(people, { dryRun: false, file: 'people.csv' }, OPS))
        await it.course.redate()
        const maintenance = await openMaintenance(it.address as StoreAddress)
        expect((await maintenance.verify(START)).faults).toEqual([])
        for (const { identity, course, nextAt = 0, lastSentAt, isFinished, sent } of people) {
          const found = await it.course.find(identity, course)
          expect(found?.consent?.at).toBeLessThanOrEqual(START)
          const next = Math.max(START, nextAt)
          if (isFinished || sent === 4) expect(found?.dueAt).toBeUndefined()
          else if (course === 'spaced')
            expect(found?.dueAt).toBe(Math.max(next, (lastSentAt ?? 0) + spaced.spacingMs))
          else if (course === 'daily') expect(found?.dueAt).toBe(next)
          else expect(found?.dueAt).toBeGreaterThanOrEqual(next)
        }
        for (let day = 1; day <= 4; day += 1) {
          it.pass(DAY_MS)
          await it.course.dispatch({ limit: 100 })
          expect((await maintenance.verify(it.now())).faults).toEqual([])
        }
        await maintenance.close()
      },
    )
    await fc.assert(property, {
      numRuns: kind === 'sqlite' ? 8 : 4,
      // The next lesson is wanted sooner than the spacing allows.
      examples: [[[['spaced', '', '', '1', iso(-DAY_MS), iso(-HOUR_MS), iso(HOUR_MS)]]]],
    })
  }, 120_000)
})
