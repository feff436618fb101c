import { describe, expect, onTestFinished, test } from 'vitest'
import { createCatalog } from '../../../src/core/course/catalog.ts'
import type { CourseStore } from '../../../src/core/course/store.ts'
import { DAY_MS, HOUR_MS } from '../../../src/core/durations.ts'
import type { StoreAddress } from '../../../src/core/env/settings.ts'
import { systemRandom } from '../../../src/core/host.ts'
import { learning } from '../../../src/presets/learning/platform.ts'
import { byHand } from '../../support/by-hand.ts'
import { courseNamed, courseWith, START } from '../../support/course.ts'
import { compiledMails } from '../../support/learning.ts'
import { olderBuild } from '../../support/older-builds.ts'
import { KEPT } from '../../support/stores.ts'

const [A, B, C, D] = ['course-day-1', 'course-day-2', 'course-day-3', 'course-day-4'] as const
const ADA = { spelling: 'ada@example.com', identity: 'ada@example.com', course: 'pottery' }

/** The courses of the default platform, which pin their lessons, and two that follow their newest; `lessons` are of the last. */
const following = (...lessons: string[]) =>
  createCatalog([
    ...learning.courses.map((course) => ({ ...course, follow: 'start' as const })),
    courseNamed('chess', { follow: 'latest' }),
    courseNamed('pottery', { lessons, follow: 'latest' }),
  ])

describe.each(KEPT)('on %s', (kind) => {
  /** Ada, in a course that is deployed again and again. */
  async function deployed(...lessons: string[]) {
    const it = await courseWith(0, { kind, catalog: following(...lessons), leaseClock: 'standing' })
    const subjects = new Map(
      Object.entries(await compiledMails()).map(([name, { subject }]) => [subject.join(''), name]),
    )
    let course = it.course
    await course.enrol(ADA)
    return {
      ...it,
      /** Changes her row by hand. */
      change: (sql: string) => byHand(it.address, `UPDATE subscription SET ${sql} WHERE course = 'pottery'`),
      /** The oldest schema whose builds may read this store. */
      readableFrom: async () => {
        const [row] = await byHand(it.address, `SELECT value FROM meta WHERE name = 'readable_from'`)
        return Number(String(row?.value).split(':')[1])
      },
      /** A deployment: the process of before ends. */
      deploy(...next: string[]) {
        course = it.open(it.store.course, { catalog: following(...next) })
        return course
      },
      /** One dispatch call; gives the lessons that went out. */
      async sends() {
        const before = it.messages.length
        await course.dispatch({ limit: 10 })
        return it.messages.slice(before).map(({ subject }) => subjects.get(subject))
      },
      ada: async () => {
        const found = await course.find(ADA.identity, 'pottery')
        if (found === undefined) throw new TypeError('Ada is enrolled')
        return found
      },
    }
  }

  // Each step: the hours that pass, the lessons that are deployed then, and the one that is sent.
  test.each([
    [
      'after the lesson that a reader had last is deleted, the next one follows',
      ['0 ABC A', '0 BC -', '24 BC B', '24 BC C', '24 BC -'],
    ],
    [
      'a lesson that is put before those that somebody had comes next, and none comes twice',
      ['0 ABC A', '24 ABC B', '24 DABC D', '24 DABC C', '24 DABC -'],
    ],
    [
      'a rollback to a shorter course ends nobody: when it is long again, they go on where they were',
      ['0 ABCD A', '24 ABCD B', '24 AB -', '1 ABCD C', '24 ABCD D'],
    ],
    ['a rollback that sends several lessons ends nobody either', ['0 AB A', '24 AB B', '25 ABC C']],
  ])('%s', async (_, steps) => {
    const named: Record<string, string> = { A, B, C, D }
    const lessonsIn = (letters = '') => [...letters].flatMap((letter) => named[letter] ?? [])
    const all = steps.map((step) => step.split(' '))
    const longest = all.map(([, lessons = '']) => lessons).toSorted((a, b) => b.length - a.length)[0]
    const it = await deployed(...lessonsIn(longest))
    let running = longest
    const sent: string[] = []
    for (const [hours, lessons, sends] of all) {
      it.pass(Number(hours) * HOUR_MS)
      if (lessons !== running) it.deploy(...lessonsIn(lessons))
      running = lessons
      expect(await it.sends()).toEqual(lessonsIn(sends))
      sent.push(...lessonsIn(sends))
    }
    expect(await it.ada()).toMatchObject({
      ...{ sentLessons: sent, sentDays: sent.map((_, at) => at + 1), lessons: sent.length },
      ...{ nextAttemptAt: undefined, promised: undefined },
    })
  })

  test('a lesson links to its page in the course as it is now', async () => {
    const it = await deployed(A, B, C)
    await it.sends()
    it.deploy(B, C)
    it.pass(DAY_MS)
    await it.sends()
    expect(it.messages.at(-1)?.text).toContain('/lessons/1?course=pottery')
  })

  test('the last lesson of a shorter course ends nobody either, and a running process notices within an hour', async () => {
    const it = await deployed(A, B, C)
    await it.sends()
    const long = it.deploy(A, B, C)
    await long.dispatch({ limit: 10 })
    it.deploy(A, B)
    it.pass(DAY_MS)
    expect(await it.sends()).toEqual([B])
    expect(await it.ada()).toMatchObject({ lessons: 2, nextAttemptAt: undefined })
    it.pass(DAY_MS)
    const again = it.deploy(A, B, C)
    await again.dispatch({ limit: 10 })
    expect(await it.ada()).toMatchObject({ sentLessons: [A, B, C] })
  })

  test('who was cancelled after the last lesson of a shorter course gets no more when it is long again', async () => {
    const it = await deployed(A, B, C)
    await it.sends()
    const short = it.deploy(A, B)
    it.pass(DAY_MS)
    expect(await it.sends()).toEqual([B])
    expect([await short.cancel(ADA), await short.cancel(ADA)]).toEqual([true, false])
    it.pass(DAY_MS)
    await it.deploy(A, B, C).dispatch({ limit: 10 })
    expect(await it.ada()).toMatchObject({ state: 'unsubscribed', sentLessons: [A, B] })
  })

  test('a subscriber who left and came back while the last lesson of a shorter course was being sent goes on when it is long again', async () => {
    const it = await deployed(A, B, C)
    await it.sends()
    it.pass(DAY_MS)
    const { id } = await it.ada()
    const leaving: CourseStore = {
      ...it.store.course,
      async settle(settlements) {
        await it.store.course.unsubscribe({ id, now: it.now() })
        return it.store.course.settle(settlements)
      },
    }
    await it.open(leaving, { catalog: following(A, B) }).dispatch({ limit: 10 })
    await it.store.course.undoUnsubscribe({ id, now: it.now() })
    expect(await it.ada()).toMatchObject({ state: 'confirmed', sentLessons: [A, B] })
    it.deploy(A, B, C)
    it.pass(DAY_MS)
    expect(await it.sends()).toEqual([C])
  })

  test('a changed course is taken to its followers at the next call, where the store failed at this one', async () => {
    const it = await deployed(A, B, C)
    await it.sends()
    const failing = { ...it.store.course, review: () => Promise.reject(new Error('gone')) }
    const course = it.open(failing, { catalog: following(B, C) })
    await expect(course.dispatch({ limit: 10 })).rejects.toThrow('gone')
    Object.assign(failing, it.store.course)
    await course.dispatch({ limit: 10 })
    const needs = await byHand(it.address, `SELECT needs FROM subscription WHERE course = 'pottery'`)
    expect(needs).toMatchObject([{ needs: 2 }])
  })

  test('a course that grows goes on for nobody who had finished it, or whose next lesson was due a month ago', async () => {
    const it = await deployed(A, B)
    await it.sends()
    it.pass(DAY_MS)
    await it.sends()
    it.deploy(A, B, C)
    it.pass(DAY_MS)
    expect(await it.sends()).toEqual([])
    await it.change(`promised = 3`)
    it.pass(32 * DAY_MS)
    it.deploy(A, B, C)
    expect(await it.sends()).toEqual([])
    expect((await it.ada()).lessons).toBe(2)
  })

  test('what an older build sent is known by the name that its number had at the upgrade', async () => {
    const it = await deployed(A, B, C)
    await it.sends()
    await it.change(`sent_lessons = NULL`)
    it.deploy(A, B, C)
    expect(await it.sends()).toEqual([])
    expect((await it.ada()).sentLessons).toEqual([A])
    it.deploy(B, C)
    it.pass(DAY_MS)
    expect(await it.sends()).toEqual([B])
  })

  test('an older build leaves somebody alone whose next lesson it would take for another, and does not start again', async () => {
    const it = await deployed(A, B, C)
    await it.sends()
    const old = olderBuild(it.address as StoreAddress, '0.2.0')
    onTestFinished(() => old.close())
    const before = await it.readableFrom()
    it.deploy(B, C)
    await it.sends()
    it.pass(DAY_MS)
    expect(await old.dispatch('old call', it.now())).toEqual([])
    expect(await it.readableFrom()).toBeGreaterThan(before)
    expect(await it.sends()).toEqual([B])
  })

  test('a course that an older build begins anew begins with its first lesson', async () => {
    const it = await deployed(A, B, C)
    await it.sends()
    it.deploy(B, C)
    await it.sends()
    const anew = `enrolment = 2, sent_days = '[]', next_attempt_at = ${START}, fence = fence + 1`
    await it.change(anew)
    expect(await it.sends()).toEqual([B])
    expect(await it.ada()).toMatchObject({ sentLessons: [B] })
  })

  test('a lesson that may have been delivered is repeated as it was tried, whatever was done to the course, and counts by its name', async () => {
    const it = await deployed(A, B, C)
    await it.sends()
    it.deploy(B, A, C)
    it.pass(DAY_MS)
    it.answer(() => ({ kind: 'unknown', reason: 'the line broke' }))
    expect(await it.sends()).toEqual([B])
    it.answer(({ key }) => ({ kind: 'sent', id: key }))
    it.deploy(D, A, C)
    it.pass(HOUR_MS)
    expect(await it.sends()).toEqual([B])
    expect(it.messages.at(-1)).toEqual(it.messages.at(-2))
    it.pass(DAY_MS)
    expect(await it.sends()).toEqual([D])
    it.pass(DAY_MS)
    expect(await it.sends()).toEqual([C])
    expect(await it.ada()).toMatchObject({ sentLessons: [A, B, D, C] })
  })

  test('a lesson that a killed process had in hand is repeated, whatever was done to the course, and counts by its name', async () => {
    const it = await deployed(A, B, C)
    await it.sends()
    it.pass(DAY_MS)
    // The provider takes it, and the process is gone before it hears so.
    const killed = Promise.withResolvers<never>()
    it.answer(() => killed.promise)
    const dying = it.course.dispatch({ limit: 10 })
    await expect.poll(() => it.messages.length).toBe(2)
    it.answer(({ key }) => ({ kind: 'sent', id: key }))
    it.deploy(D, C)
    it.pass(HOUR_MS)
    expect(await it.sends()).toEqual([B])
    expect(it.messages.at(-1)?.key).toBe(it.messages.at(-2)?.key)
    it.pass(DAY_MS)
    expect(await it.sends()).toEqual([D])
    expect(await it.ada()).toMatchObject({ sentLessons: [A, B, D] })
    killed.reject(new Error('killed'))
    await dying.catch(() => {})
  })

  test('an operator who decides about a lesson that may have been delivered decides about the one that was tried', async () => {
    const it = await deployed(A, B, C)
    it.answer(() => ({ kind: 'unknown', reason: 'the line broke' }))
    expect(await it.sends()).toEqual([A])
    it.answer(({ key }) => ({ kind: 'sent', id: key }))
    const course = it.deploy(D, B, C)
    const { id } = await it.ada()
    it.pass(HOUR_MS)
    expect(await course.resolve(id, 'retry')).toBe(true)
    expect(await it.sends()).toEqual([A])
    it.pass(DAY_MS)
    it.answer(() => ({ kind: 'unknown', reason: 'the line broke' }))
    expect(await it.sends()).toEqual([D])
    it.answer(({ key }) => ({ kind: 'sent', id: key }))
    expect(await it.deploy(B, C, D).resolve(id, 'sent')).toBe(true)
    expect(await it.ada()).toMatchObject({ sentLessons: [A, D] })
    it.pass(2 * DAY_MS)
    expect(await it.sends()).toEqual([B])
  })

  test('nobody decides that a lesson was sent whose course the platform does not have now: the person would get no other', async () => {
    const it = await deployed(A, B)
    it.answer(() => ({ kind: 'unknown', reason: 'the line broke' }))
    await it.sends()
    it.answer(({ key }) => ({ kind: 'sent', id: key }))
    const { id } = await it.ada()
    const without = it.open(it.store.course, { catalog: createCatalog(learning.courses) })
    expect(await without.resolve(id, 'sent')).toBe(false)
    expect(await without.resolveAll('sent')).toBe(0)
    expect(await it.deploy(A, B).resolve(id, 'sent')).toBe(true)
    it.pass(2 * DAY_MS)
    expect(await it.sends()).toEqual([B])
  })

  test('an operator reads which deleted lessons people in the middle of a course had', async () => {
    const it = await deployed(A, B, C)
    await it.sends()
    expect(await it.course.deletedLessons('pottery')).toEqual([])
    const course = it.deploy(B, C)
    await it.sends()
    expect(await course.deletedLessons('pottery')).toEqual([{ lesson: A, people: 1 }])
  })

  test('an operator reads which courses people are in the middle of and the definition does not have', async () => {
    const it = await deployed(A, B)
    const removed = () => it.store.course.removedCourses(['quantum'])
    expect(await it.store.course.removedCourses(['quantum', 'pottery'])).toEqual([])
    await it.sends()
    expect(await removed()).toEqual([{ course: 'pottery', people: 1 }])
    it.pass(DAY_MS)
    // Who has had all of it misses nothing.
    expect(await it.sends()).toEqual([B])
    expect(await removed()).toEqual([])
  })
})

test('a course that is long again reaches who follows it also behind a page of people in other courses', async () => {
  const it = await courseWith(500, { kind: 'memory', catalog: following(A, B, C) })
  // An id behind all of theirs.
  const random = { ...systemRandom, bytes: (length: number) => new Uint8Array(length).fill(0xcf) }
  await it.open(it.store.course, { more: { random } }).enrol(ADA)
  const toAda = async (...lessons: string[]) => {
    const before = it.messages.length
    await it.open(it.store.course, { catalog: following(...lessons) }).dispatch({ limit: 1000 })
    return it.messages
      .slice(before)
      .flatMap(({ to, subject }) => (to.address === ADA.identity ? subject : []))
  }
  const subjects = await compiledMails()
  expect(await toAda(A, B, C)).toEqual([subjects[A]?.subject.join('')])
  it.pass(DAY_MS)
  expect(await toAda(A)).toEqual([])
  expect(await toAda(A, B, C)).toEqual([subjects[B]?.subject.join('')])
})
