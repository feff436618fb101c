import { describe, expect, test } from 'vitest'
import { createCatalog } from '../../../src/core/course/catalog.ts'
import { HOUR_MS } from '../../../src/core/durations.ts'
import { followRound, type Streaks } from '../../../src/core/incidents/causes.ts'
import { conditionsReport, lateBefore } from '../../../src/core/incidents/conditions.ts'
import type { LessonTexts } from '../../../src/core/mail/definition.ts'
import type { Outcome } from '../../../src/core/mail/mailer.ts'
import { learning } from '../../../src/presets/learning/platform.ts'
import { courseNamed, courseWith } from '../../support/course.ts'
import { KEPT } from '../../support/stores.ts'

const LATER: Outcome = { kind: 'transient', scope: 'message', reason: '451 try again later' }

/** The file of the second lesson is gone. */
const withoutDay2 = async (): Promise<LessonTexts> => ({
  of: (lesson) => (lesson === 'course-day-2' ? undefined : {}),
  compile: () => Promise.reject(new Error('no text is kept')),
})

describe.each(KEPT)('on %s', (kind) => {
  /** Three people, a call each hour, and what the daemon says after each: the hours in which lessons are late. */
  async function threePeople() {
    const it = await courseWith(3, { kind })
    let streaks: Streaks = new Map()
    let open: readonly string[] = []
    const round = async () => {
      const now = it.now()
      const lessonsLate = await it.store.course.late({ now, before: lateBefore(now) })
      const report = conditionsReport(
        { certificates: [], builds: new Map(), halfConfigured: [], mailRefused: undefined, lessonsLate },
        now,
      )
      const followed = followRound({ streaks, reports: [report], open })
      streaks = followed.streaks
      open = [...open, ...followed.opens.map(({ cause }) => cause)].filter(
        (cause) => !followed.closes.includes(cause),
      )
    }
    const hours = async (
      count: number,
      calls: readonly Pick<typeof it.course, 'dispatch'>[] = [it.course],
    ) => {
      const late: boolean[] = []
      for (let n = 0; n < count; n += 1) {
        it.pass(HOUR_MS)
        for (const course of calls) await course.dispatch({ limit: Number.POSITIVE_INFINITY, gentle: true })
        for (let twice = 0; twice < 2; twice += 1) await round()
        late.push(open.includes('lessons_late'))
      }
      return late
    }
    return { it, hours }
  }

  test('a server that defers everything for days makes lessons late within two hours, until one is sent', async () => {
    const { it, hours } = await threePeople()
    it.answer(() => LATER)
    await it.course.dispatch({ limit: 10 })
    expect(new Set((await hours(80)).slice(1))).toEqual(new Set([true]))
    it.answer((message) => ({ kind: 'sent', id: message.key }))
    // Within the longest pause; the lessons that fell due meanwhile follow, one an hour.
    expect((await hours(11)).at(-1)).toBe(false)
  })

  test('one mailbox that defers its mail makes nothing late while the others get theirs', async () => {
    const { it, hours } = await threePeople()
    it.answer((message) =>
      message.to.address === 'p1@example.com' ? LATER : { kind: 'sent', id: message.key },
    )
    expect(new Set(await hours(30))).toEqual(new Set([false]))
    expect((await it.rows()).map((row) => row?.sentDays.length)).toEqual([2, 0, 2])
  })

  test('overdue lessons of somebody who comes back leave one an hour, and are late where no call sends them', async () => {
    const { it, hours } = await threePeople()
    await hours(1)
    const link = it.link()
    await it.course.unsubscribe(link)
    await hours(6 * 24)
    await it.course.undoUnsubscribe(link)
    await it.course.dispatch({ limit: 10, gentle: true })
    expect(new Set(await hours(3))).toEqual(new Set([false]))
    expect(await hours(2, [])).toEqual([false, true])
  })

  test.each([
    ['lesson', createCatalog(learning.courses, { texts: withoutDay2 }), true],
    ['course', createCatalog([courseNamed('pottery')]), false],
  ])(
    'people who wait for a %s that the platform no longer has, while others are sent theirs',
    async (_, catalog, isLate) => {
      const { it, hours } = await threePeople()
      await hours(1)
      const course = it.open(it.store.course, { catalog })
      const late: boolean[] = []
      for (let hour = 0; hour < 27; hour += 1) {
        const address = `q${hour}@example.com`
        await course.enrol({ spelling: address, identity: address, course: catalog.courses[0]?.id })
        late.push(...(await hours(1, [course])))
      }
      expect(late).toEqual(late.map((_, hour) => isLate && hour >= 23))
    },
  )

  test('a removed course is paused also where nobody is sent anything else, and a lesson without a file is named', async () => {
    const { it, hours } = await threePeople()
    await hours(1)
    const removed = it.open(it.store.course, { catalog: createCatalog([courseNamed('pottery')]) })
    expect(new Set(await hours(48, [removed]))).toEqual(new Set([false]))
    const missing = it.open(it.store.course, {
      catalog: createCatalog(learning.courses, { texts: withoutDay2 }),
    })
    expect((await hours(27, [missing])).at(-1)).toBe(true)
    const now = it.now()
    expect(await it.store.course.late({ now, before: lateBefore(now) })).toMatchObject({
      stalledAt: undefined,
      why: expect.stringMatching(/no lesson course-day-2/),
    })
  })

  test('a lesson sent under a clock that was ahead hides no standstill', async () => {
    const { it, hours } = await threePeople()
    it.pass(30 * 24 * HOUR_MS)
    await it.course.dispatch({ limit: 1 })
    it.pass(-30 * 24 * HOUR_MS)
    it.answer(() => LATER)
    expect((await hours(3)).at(-1)).toBe(true)
  })
})
