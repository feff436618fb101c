import Database from 'better-sqlite3'
import { describe, expect, test } from 'vitest'
import type { AuditEntry } from '../../../src/core/audit.ts'
import { createCatalog } from '../../../src/core/course/catalog.ts'
import type { CourseDefinition } from '../../../src/core/course/definition.ts'
import { zones } from '../../../src/core/course/zones.ts'
import { DAY_MS } from '../../../src/core/durations.ts'
import { readSchema } from '../../../src/core/store/schema.ts'
import { performer } from '../../../src/core/store/sqlite/sql.ts'
import { learning } from '../../../src/presets/learning/platform.ts'
import { byHand } from '../../support/by-hand.ts'
import { courseNamed, courseWith, lessons, tokenIn } from '../../support/course.ts'
import { KEPT } from '../../support/stores.ts'

const HOUR_MS = 3_600_000
const pottery = courseNamed('pottery', { cadence: { kind: 'every', ms: 2 * DAY_MS } })
/** On Mondays at nine, wherever the subscriber is. */
const drawing = courseNamed('drawing', {
  lessons: lessons(2),
  cadence: { kind: 'at', minute: 9 * 60, zone: undefined, weekdays: [1] },
})
const catalogOf = (...courses: CourseDefinition[]) =>
  createCatalog([...learning.courses, ...courses], { zones })
const ADA = { spelling: 'ada@example.com', identity: 'ada@example.com' }
const day = (message: { key: string }) => message.key.slice(0, message.key.lastIndexOf('.'))

/** Lets time pass until the next lesson of Ada’s is due, and not a millisecond before it leaves; gives what is sent. */
async function sendsNext(it: Awaited<ReturnType<typeof courseWith>>) {
  const before = it.messages.length
  const planned = (await it.course.findPerson(ADA.identity)).map((one) => one.nextAttemptAt ?? Infinity)
  const next = Math.min(...planned)
  if (next === Infinity) return []
  if (next > it.now()) {
    it.pass(next - it.now() - 1)
    expect(await it.course.dispatch({ limit: 10 })).toMatchObject({ sent: 0 })
    it.pass(1)
  }
  await it.course.dispatch({ limit: 10 })
  return it.messages.slice(before)
}

describe.each(KEPT)('on %s', (kind) => {
  test('a person takes three courses at once, each at its own pace, and ends one of them', async () => {
    const it = await courseWith(0, { kind, catalog: catalogOf(pottery, drawing) })
    const sentAt = new Map<string, string>()
    for (const course of ['quantum', 'pottery', 'drawing']) {
      const answer = await it.course.enrol({
        ...ADA,
        course,
        timeZone: 'America/New_York',
        key: `order-${course}`,
      })
      expect(answer).toMatchObject({ enrolled: true, enrolment: 1 })
      // The same order again is the same enrolment.
      expect(await it.course.enrol({ ...ADA, course, key: `order-${course}` })).toEqual(answer)
    }
    expect(await it.course.enrol({ ...ADA, course: 'pottery' })).toEqual({
      enrolled: false,
      reason: 'already_enrolled',
    })
    for (let day = 0; day < 12; day += 1) {
      for (const message of await sendsNext(it)) {
        expect(sentAt.has(message.key)).toBe(false)
        sentAt.set(message.key, new Date(it.now()).toISOString().slice(0, 16))
      }
    }
    const times = Object.fromEntries(it.messages.map((message) => [day(message), sentAt.get(message.key)]))
    expect(it.messages).toHaveLength(7 + 3 + 2)
    // START is a Saturday; New York has summer time by then.
    expect(times).toMatchObject({
      'course-day-1': '2026-03-28T00:00',
      'course-day-7': '2026-04-03T00:00',
      'pottery-1': '2026-03-28T00:00',
      'pottery-3': '2026-04-01T00:00',
      'drawing-1': '2026-03-30T13:00',
      'drawing-2': '2026-04-06T13:00',
    })
    expect((await it.course.counts()).byCourse).toMatchObject({ drawing: { confirmed: 1 } })
    // Finished: it may begin again, in the same course alone.
    expect(await it.course.enrol({ ...ADA, course: 'pottery' })).toMatchObject({ enrolment: 2 })
    // An order that is repeated late is still the enrolment that it was.
    expect(await it.course.enrol({ ...ADA, course: 'pottery', key: 'order-pottery' })).toMatchObject({
      enrolled: true,
      enrolment: 1,
    })
    expect(await it.course.cancel({ ...ADA, course: 'pottery' })).toBe(true)
    expect(await it.course.cancel({ ...ADA, course: 'pottery' })).toBe(false)
    expect(await it.course.enrol({ ...ADA, course: 'pottery' })).toEqual({
      enrolled: false,
      reason: 'unsubscribed',
    })
    expect((await it.course.findPerson(ADA.identity)).map(({ course, state }) => [course, state])).toEqual(
      expect.arrayContaining([
        ['quantum', 'confirmed'],
        ['pottery', 'unsubscribed'],
        ['drawing', 'confirmed'],
      ]),
    )
    expect(await it.course.erase(ADA.identity)).toMatchObject({ existed: true })
    expect(await it.course.findPerson(ADA.identity)).toEqual([])
    expect(await it.course.enrol({ ...ADA, course: 'pottery' })).toEqual({
      enrolled: false,
      reason: 'erased',
    })
  })

  test('a reader who moves gets the next lesson at the same local hour, each later one in a slot of its own, in the new language', async () => {
    const it = await courseWith(0, { kind, catalog: catalogOf({ ...drawing, lessons: lessons(4) }) })
    const operator = { name: 'ops', place: 'box-1' }
    await it.course.enrol({ ...ADA, course: 'drawing', timeZone: 'America/New_York' })
    const sentAt: string[] = []
    const week = async () => {
      expect(await sendsNext(it)).toHaveLength(1)
      sentAt.push(new Date(it.now()).toISOString().slice(0, 16))
    }
    await week()
    it.pass(DAY_MS)
    const asked = { timeZone: 'Europe/Vienna', language: 'de', course: 'drawing' }
    expect(await it.course.set({ identity: ADA.identity, ...asked }, operator)).toBe(1)
    // The same again changes nothing.
    expect(await it.course.set({ identity: ADA.identity, ...asked }, operator)).toBe(1)
    await week()
    const { id = '' } = (await it.course.find(ADA.identity, 'drawing')) ?? {}
    // West of every other zone: Monday at nine comes 12 hours later than in Vienna.
    expect(await it.course.set({ id, timeZone: 'Pacific/Honolulu' })).toBe(1)
    await week()
    await week()
    expect(sentAt).toEqual(['2026-03-30T13:00', '2026-04-06T07:00', '2026-04-13T19:00', '2026-04-20T19:00'])
    expect(await it.course.findById(id)).toMatchObject({ language: 'de', timeZone: 'Pacific/Honolulu' })
    const said = (await it.course.history(id)).flatMap(({ kind, reason }) => (kind === 'set' ? [reason] : []))
    expect(said).toEqual(['language de, time zone Europe/Vienna', 'time zone Pacific/Honolulu'])
    const audited = (await it.store.audit.list(10)).map(({ action, subject, details }) => [
      action,
      subject,
      details,
    ])
    expect(audited).toEqual([['set', id, 'de, Europe/Vienna']])
    expect(await it.course.set({ identity: 'bob@example.com', language: 'de' })).toBe(0)
    // Who has not confirmed yet gets it with the confirmation.
    const eve = { spelling: 'eve@example.com', identity: 'eve@example.com', course: 'drawing' }
    await it.course.subscribe({ ...eve, timeZone: 'America/New_York' })
    expect(await it.course.find('eve@example.com')).toMatchObject({ state: 'unconfirmed', lessons: 4 })
    await it.course.set({ identity: 'eve@example.com', language: 'de', timeZone: 'Europe/Vienna' })
    await it.course.close()
    await it.course.confirm(it.token())
    // The course begins when she confirms, on the next Monday at nine in Vienna.
    expect(await it.course.find('eve@example.com')).toMatchObject({
      ...{ state: 'confirmed', language: 'de', timeZone: 'Europe/Vienna' },
      nextAttemptAt: Date.UTC(2026, 3, 27, 7),
    })
  })

  test('a row with a time zone that is not known here holds up nobody, and its lessons come by UTC', async () => {
    const it = await courseWith(0, { kind, catalog: catalogOf(drawing) })
    for (const name of ['ada', 'bob'])
      await it.course.enrol({
        spelling: `${name}@example.com`,
        identity: `${name}@example.com`,
        course: 'drawing',
      })
    const { id = '' } = (await it.store.course.find('ada@example.com')) ?? {}
    const [now, moved] = [it.now(), () => undefined]
    await it.store.course.set({ id, now, timeZone: 'PST', moved })
    for (let day = 0; day < 14; day += 1) {
      await it.course.dispatch({ limit: 10 })
      it.pass(DAY_MS)
    }
    expect(it.messages.map(({ to }) => to.address).sort()).toEqual([
      ...['ada@example.com', 'ada@example.com'],
      ...['bob@example.com', 'bob@example.com'],
    ])
  })

  test('an operator’s enrolments and cancellations enter the audit log in the same transaction, and only real changes do', async () => {
    const it = await courseWith(0, { kind, catalog: catalogOf(pottery) })
    const operator = { name: 'ops', place: 'box-1' }
    const request = { ...ADA, course: 'pottery', key: 'order-1' }
    const entries = async () =>
      (await it.store.audit.list(10)).map(({ action, who, subject }) => [action, who, subject])
    // The entry cannot be written, so nothing is.
    const broken = it.open({
      ...it.store.course,
      enrol: (input) =>
        it.store.course.enrol({
          ...input,
          audit: () => {
            throw new Error('no entry')
          },
        }),
      unsubscribe: ({ audit, ...input }) =>
        it.store.course.unsubscribe({ ...input, audit: { ...audit, at: [] as unknown } as AuditEntry }),
    })
    await expect(broken.enrol(request, operator)).rejects.toThrow()
    expect([await it.course.find(ADA.identity), await entries()]).toEqual([undefined, []])
    const answer = await it.course.enrol(request, operator)
    expect(await it.course.enrol(request, operator)).toEqual(answer)
    const id = answer.enrolled ? answer.id : ''
    expect(await entries()).toEqual([['enrol', 'ops', id]])
    await expect(broken.cancel(request, operator)).rejects.toThrow()
    expect(await it.course.find(ADA.identity, 'pottery')).toMatchObject({ state: 'confirmed' })
    it.pass(1000)
    expect(await it.course.cancel(request, operator)).toBe(true)
    expect(await it.course.cancel(request, operator)).toBe(false)
    expect(await entries()).toEqual([
      ['cancel', 'ops', id],
      ['enrol', 'ops', id],
    ])
  })

  test('a repeated confirmation keeps the language and time zone, or takes those of the newer request', async () => {
    const it = await courseWith(0, { kind, catalog: catalogOf(pottery) })
    const subscribe = (identity: string, more: { language?: string; timeZone?: string }) =>
      it.subscribe({ spelling: identity, identity, course: 'pottery', ...more })
    const confirmed = async (identity: string) => {
      expect(await it.course.confirm(it.token())).toBe('confirmed')
      const { language, timeZone } = (await it.course.find(identity, 'pottery')) ?? {}
      return { language, timeZone }
    }
    const again = 'again@example.com'
    await subscribe(again, { language: 'de', timeZone: 'Asia/Kolkata' })
    const exported = { state: 'unconfirmed', lessons: pottery.lessons.length }
    expect((await it.course.people().next()).value).toMatchObject([exported])
    it.pass(HOUR_MS + 1)
    expect(await it.course.confirmAgain(again)).toMatchObject({ kind: 'sent', queued: true })
    await it.course.close()
    expect(await confirmed(again)).toEqual({ language: 'de', timeZone: 'Asia/Kolkata' })

    const newer = 'newer@example.com'
    await subscribe(newer, { language: 'de', timeZone: 'Asia/Kolkata' })
    it.pass(HOUR_MS + 1)
    await subscribe(newer, { language: 'fr' })
    expect(await confirmed(newer)).toEqual({ language: 'fr', timeZone: 'Asia/Kolkata' })

    const failing = 'failing@example.com'
    it.answer(() => ({ kind: 'transient', scope: 'message', reason: 'busy' }))
    await subscribe(failing, { language: 'de', timeZone: 'Pacific/Chatham' })
    it.answer(({ key }) => ({ kind: 'sent', id: key }))
    it.pass(11 * 60_000)
    expect(await it.course.deliverMessages()).toBe(1)
    expect(await confirmed(failing)).toEqual({ language: 'de', timeZone: 'Pacific/Chatham' })
  })

  test('what an operator sets for a person holds in all their courses, or in the one that is named by course or id', async () => {
    const it = await courseWith(0, { kind, catalog: catalogOf(pottery, drawing) })
    const ids = ['quantum', 'pottery', 'drawing']
    for (const course of ids) await it.course.enrol({ ...ADA, course })
    const { identity } = ADA
    const languages = async () =>
      (await it.course.findPerson(identity))
        .toSorted((a, b) => (a.course < b.course ? 1 : -1))
        .map(({ language }) => language)
    expect(await it.course.set({ identity, language: 'de', timeZone: 'Asia/Kolkata' })).toBe(3)
    expect(await languages()).toEqual(['de', 'de', 'de'])
    expect(await it.course.set({ identity, course: 'pottery', language: 'fr' })).toBe(1)
    expect(await languages()).toEqual(['de', 'fr', 'de'])
    const { id = '' } = (await it.course.find(identity, 'drawing')) ?? {}
    expect(await it.course.set({ id, language: 'it' })).toBe(1)
    expect(await it.course.set({ id, course: 'pottery', language: 'es' })).toBe(0)
    expect(await languages()).toEqual(['de', 'fr', 'it'])
    for (const one of await it.course.findPerson(identity)) expect(one.timeZone).toBe('Asia/Kolkata')
    expect(await it.course.set({ identity: 'eve@example.com', language: 'de' })).toBe(0)
  })

  test.each<[string, string, string | undefined]>([
    ['an older course, beside one that is going on', 'enrol', 'quantum'],
    ['the newer of two courses', 'subscribe', 'pottery'],
    ['no course, where all are going on', 'confirm', undefined],
  ])('a confirmation that is mailed again is for %s', async (_, how, course) => {
    const it = await courseWith(0, { kind, catalog: catalogOf(pottery) })
    await it.subscribe({ ...ADA, course: 'quantum' })
    it.pass(1000)
    if (how === 'subscribe') await it.subscribe({ ...ADA, course: 'pottery' })
    else await it.course.enrol({ ...ADA, course: 'pottery' })
    if (how === 'confirm') await it.course.confirm(tokenIn(it.messages[0]))
    it.pass(HOUR_MS + 1)
    const before = it.messages.length
    const answer = await it.course.confirmAgain(ADA.identity, { wait: true })
    expect(answer.kind).toBe(course === undefined ? 'none' : 'sent')
    const courses = it.messages.slice(before).map(({ text }) => /&course=(\w+)/.exec(text)?.[1] ?? 'quantum')
    expect(courses).toEqual(course === undefined ? [] : [course])
    if (course === undefined) return
    expect(await it.course.confirm(it.token())).toBe('confirmed')
    expect((await it.course.find(ADA.identity, course))?.state).toBe('confirmed')
  })

  test.each([
    ['was sent', 5],
    ['was first tried, where an operator says that it arrived', 0],
  ])(
    'with spacing, also one that the course has lost since, the next lesson keeps its distance from when the last %s',
    async (how, hours) => {
      const it = await courseWith(0, { kind, catalog: catalogOf({ ...pottery, spacingMs: 2 * DAY_MS }) })
      await it.course.enrol({ ...ADA, course: 'pottery' })
      const course = it.open(it.store.course, { catalog: catalogOf(pottery) })
      it.answer(() => ({ kind: 'transient', scope: 'message', reason: 'greylisted' }))
      await course.dispatch({ limit: 10 })
      it.answer(({ key }) => ({ kind: 'sent', id: key }))
      const due = it.now() + hours * HOUR_MS + 2 * DAY_MS
      it.pass(5 * HOUR_MS)
      const { id = '' } = (await course.find(ADA.identity, 'pottery')) ?? {}
      if (how === 'was sent') expect(await course.dispatch({ limit: 10 })).toMatchObject({ sent: 1 })
      else expect(await course.resolve(id, 'sent')).toBe(true)
      expect(await course.findById(id)).toMatchObject({ sentDays: [1], dueAt: due })
    },
  )

  test('a reader who moves in a course whose hour has changed since keeps the hour that it began with', async () => {
    const it = await courseWith(0, { kind, catalog: catalogOf(drawing) })
    await it.course.enrol({ ...ADA, course: 'drawing', timeZone: 'America/New_York' })
    const cadence = { kind: 'at', minute: 18 * 60, zone: undefined, weekdays: [1] } as const
    const changed = it.open(it.store.course, { catalog: catalogOf({ ...drawing, cadence }) })
    await changed.set({ identity: ADA.identity, timeZone: 'Europe/Vienna' })
    expect(await changed.find(ADA.identity)).toMatchObject({ dueAt: Date.UTC(2026, 2, 30, 7) })
  })

  test('a lesson that the course has lost since links to the page of its number', async () => {
    const it = await courseWith(0, { kind, catalog: catalogOf(pottery) })
    await it.course.enrol({ ...ADA, course: 'pottery' })
    const shorter = { ...pottery, lessons: pottery.lessons.slice(1) }
    await it.open(it.store.course, { catalog: catalogOf(shorter) }).dispatch({ limit: 10 })
    expect(it.messages[0]?.text).toContain('/lessons/1?course=pottery')
  })

  test('with spacing, a backlog of days is not caught up in a minute', async () => {
    const spaced = { ...pottery, spacingMs: DAY_MS }
    const it = await courseWith(0, { kind, catalog: catalogOf(spaced) })
    await it.course.enrol({ ...ADA, course: 'pottery' })
    it.pass(20 * DAY_MS)
    for (let call = 0; call < 3; call += 1) await it.course.dispatch({ limit: 10 })
    expect(it.messages).toHaveLength(1)
    it.pass(DAY_MS - 1)
    await it.course.dispatch({ limit: 10 })
    expect(it.messages).toHaveLength(1)
    it.pass(1)
    await it.course.dispatch({ limit: 10 })
    expect(it.messages).toHaveLength(2)
  })

  test('a store is closed to earlier builds once somebody is in another course, and not before', async () => {
    const it = await courseWith(1, { kind, catalog: catalogOf(pottery) })
    const row = `WHERE name = 'readable_from'`
    const said = async () => {
      const value = String((await byHand(it.address, `SELECT value FROM meta ${row}`))[0]?.value)
      if (it.address?.kind !== 'sqlite') return value
      const database = new Database(it.address.file)
      expect(performer(database)(readSchema(13)).readable).toBe(value.endsWith(':1'))
      database.close()
      return value
    }
    await it.course.enrol({ spelling: 'cy@example.com', identity: 'cy@example.com' })
    expect(await said()).toMatch(/^\d+:1$/)
    await it.course.enrol({ ...ADA, course: 'pottery' })
    expect(await said()).toMatch(/^\d+:14$/)
    // What a newer build has said of its schema stays: older ones are not let in again.
    const newer = (await said()).replace(':14', ':20')
    await byHand(it.address, `UPDATE meta SET value = '${newer}' ${row}`)
    await it.course.enrol({ spelling: 'bob@example.com', identity: 'bob@example.com', course: 'pottery' })
    expect(await said()).toBe(newer)
  })
})
