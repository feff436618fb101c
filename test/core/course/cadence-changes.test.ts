import { describe, expect, test } from 'vitest'
import { createCatalog, openCatalog } from '../../../src/core/course/catalog.ts'
import type { Cadence } from '../../../src/core/course/definition.ts'
import { zones } from '../../../src/core/course/zones.ts'
import { DAY_MS, HOUR_MS } from '../../../src/core/durations.ts'
import { courseNamed, courseWith, lessons } from '../../support/course.ts'
import { KEPT } from '../../support/stores.ts'

const ADA = { spelling: 'ada@example.com', identity: 'ada@example.com', course: 'pottery' }
const LESSONS = lessons(7)

interface Timing {
  readonly cadence: Cadence
  readonly spacingMs: number
}

const every = (days: number, spacingHours = 0): Timing => ({
  cadence: { kind: 'every', ms: days * DAY_MS },
  spacingMs: spacingHours * HOUR_MS,
})
const at = (hour: number, weekdays: readonly number[] = [], zone?: string, spacingHours = 0): Timing => ({
  cadence: { kind: 'at', minute: hour * 60, zone, weekdays },
  spacingMs: spacingHours * HOUR_MS,
})
const followed = (timing: Timing, all: readonly string[] = LESSONS) =>
  createCatalog([courseNamed('pottery', { ...timing, lessons: all, follow: 'latest' })], { zones })

const TIMINGS = {
  '1d': every(1),
  '7d': every(7),
  '1d, spaced': every(1, 20),
  '7d, spaced': every(7, 20),
  daily: at(9),
  'daily at 18': at(18),
  'daily in Berlin': at(9, [], 'Europe/Berlin'),
  'daily, spaced': at(9, [], undefined, 20),
  Mondays: at(9, [1]),
  'Mondays in Berlin': at(9, [1], 'Europe/Berlin'),
  'Mondays, spaced': at(9, [1], undefined, 20),
}
/** When the first three lessons leave. */
const FIRST_THREE: Readonly<Record<string, string>> = {
  '1d': '28/03 01:00, 29/03 01:00, 30/03 02:00',
  '7d': '28/03 01:00, 04/04 02:00, 11/04 02:00',
  daily: '28/03 09:00, 29/03 09:00, 30/03 09:00',
  Mondays: '30/03 09:00, 06/04 09:00, 13/04 09:00',
}

const inBerlin = new Intl.DateTimeFormat('en-GB', {
  timeZone: 'Europe/Berlin',
  day: 'numeric',
  month: 'numeric',
  hour: '2-digit',
  minute: '2-digit',
})

describe.each(KEPT)('on %s', (kind) => {
  /** Ada, who confirmed in the night to Saturday, 28 March 2026, a day before summer time. */
  async function begun(timing: Timing) {
    const it = await courseWith(0, { kind, catalog: followed(timing), leaseClock: 'standing' })
    let { course } = it
    await course.enrol({ ...ADA, timeZone: 'Europe/Berlin' })
    const ada = async () => {
      const found = await course.find(ADA.identity, 'pottery')
      if (found === undefined) throw new TypeError('Ada is enrolled')
      return found
    }
    return {
      ...it,
      ada,
      deploy(next: Timing, all?: readonly string[]) {
        course = it.open(it.store.course, { catalog: followed(next, all) })
        return course
      },
      /** When the daemon sends the next lessons, in Berlin. */
      async leave(most: number) {
        const times: string[] = []
        while (times.length < most) {
          const { nextAttemptAt } = await ada()
          if (nextAttemptAt === undefined) break
          it.pass(Math.max(0, nextAttemptAt - it.now()))
          while ((await course.dispatch({ limit: 1, gentle: true })).sent === 0) it.pass(HOUR_MS)
          times.push(inBerlin.format(it.now()).replace(',', ''))
        }
        return times
      },
    }
  }

  test.each([
    ['7d', '1d', '18/04 02:00, 19/04 02:00, 20/04 02:00, 21/04 02:00'],
    ['1d', '7d', '31/03 02:00, 07/04 02:00, 14/04 02:00, 21/04 02:00'],
    ['7d, spaced', '1d, spaced', '18/04 02:00, 19/04 02:00, 20/04 02:00, 21/04 02:00'],
    ['1d, spaced', '7d, spaced', '31/03 02:00, 07/04 02:00, 14/04 02:00, 21/04 02:00'],
    ['daily', 'Mondays', '31/03 09:00, 06/04 09:00, 13/04 09:00, 20/04 09:00'],
    ['Mondays in Berlin', 'daily in Berlin', '20/04 09:00, 21/04 09:00, 22/04 09:00, 23/04 09:00'],
    ['Mondays, spaced', 'daily, spaced', '20/04 09:00, 21/04 09:00, 22/04 09:00, 23/04 09:00'],
    ['daily', 'daily at 18', '31/03 09:00, 01/04 18:00, 02/04 18:00, 03/04 18:00'],
    ['7d', 'daily', '18/04 02:00, 19/04 09:00, 20/04 09:00, 21/04 09:00'],
    ['Mondays', '1d', '20/04 09:00, 21/04 09:00, 22/04 09:00, 23/04 09:00'],
  ] as const)(
    'a course changed from %s to %s counts from the next lesson on',
    async (before, after, gets) => {
      const it = await begun(TIMINGS[before])
      expect((await it.leave(3)).join(', ')).toBe(FIRST_THREE[before.replace(/[, ].*/, '')])
      it.deploy(TIMINGS[after])
      expect((await it.leave(9)).join(', ')).toBe(gets)
    },
  )

  test('people finish a course at a local hour as they began it, also once no course of the platform has an hour', async () => {
    const opened = (timing: Timing) => openCatalog([courseNamed('pottery', timing)], {})
    const it = await courseWith(0, { kind, catalog: await opened(at(9)), leaseClock: 'standing' })
    await it.course.enrol({ ...ADA, timeZone: 'Europe/Berlin' })
    const course = it.open(it.store.course, { catalog: await opened(every(7)) })
    const times: string[] = []
    for (let day = 0; day < 3; day += 1) {
      const { nextAttemptAt = 0 } = (await course.find(ADA.identity, 'pottery')) ?? {}
      it.pass(nextAttemptAt - it.now())
      expect(await course.dispatch({ limit: 10 })).toMatchObject({ sent: 1 })
      times.push(inBerlin.format(it.now()).replace(',', ''))
    }
    expect(times.join(', ')).toBe(FIRST_THREE.daily)
  })

  test('lessons that are added for somebody who had all come at the hour of their own zone', async () => {
    const it = await begun(at(9))
    await it.leave(1)
    it.deploy(at(9), LESSONS.slice(0, 2))
    expect(await it.leave(9)).toEqual(['29/03 09:00'])
    await it.deploy(at(9)).dispatch({ limit: 1, gentle: true })
    expect(await it.leave(2)).toEqual(['30/03 09:00', '31/03 09:00'])
  })

  test('after a change and an outage, overdue lessons catch up, and the schedule goes on where the change put it', async () => {
    const it = await begun(every(7))
    await it.leave(3)
    it.deploy(every(1))
    await it.leave(1)
    it.pass(2.5 * DAY_MS)
    expect(await it.leave(9)).toEqual(['20/04 14:00', '20/04 15:00', '21/04 02:00'])
  })

  test('after a change, a lesson that a spacing put off changes the times of no more than the next', async () => {
    const it = await begun(at(9, [1], undefined, 20))
    await it.leave(1)
    it.deploy(at(9, [], undefined, 20))
    await it.leave(1)
    it.pass(DAY_MS + 7 * HOUR_MS)
    expect(await it.leave(9)).toEqual([
      '07/04 16:00',
      '08/04 12:00',
      '09/04 09:00',
      '10/04 09:00',
      '11/04 09:00',
    ])
  })

  test('an operator who decides that a lesson was sent after a change lets the next follow in its turn', async () => {
    const it = await begun(every(7))
    await it.leave(2)
    it.answer(() => ({ kind: 'permanent', hardBounce: false, reason: 'refused' }))
    it.pass(7 * DAY_MS)
    await it.course.dispatch({ limit: 1 })
    it.answer(({ key }) => ({ kind: 'sent', id: key }))
    const course = it.deploy(every(1))
    expect(await course.resolve((await it.ada()).id, 'sent')).toBe(true)
    expect(await it.leave(9)).toEqual(['12/04 02:00', '13/04 02:00', '14/04 02:00', '15/04 02:00'])
  })

  test.each([
    ['slower', every(1), every(7), ['06/04 02:00', '13/04 02:00']],
    ['faster', every(7), every(1), ['12/04 02:00', '13/04 02:00']],
  ])('a course that was short for a while goes on %s', async (_, before, after, expected) => {
    const it = await begun(before)
    await it.leave(2)
    it.deploy(before, LESSONS.slice(0, 3))
    expect(await it.leave(9)).toHaveLength(1)
    const course = it.deploy(after)
    await course.dispatch({ limit: 1 })
    expect(await it.leave(2)).toEqual(expected)
  })

  test('a course that was short for a while keeps its spacing when it goes on', async () => {
    const it = await begun(every(1, 20))
    await it.leave(2)
    it.deploy(every(1, 20), LESSONS.slice(0, 3))
    it.pass(DAY_MS + 22 * HOUR_MS)
    expect(await it.leave(9)).toEqual(['31/03 00:00'])
    await it.deploy(every(1, 20)).dispatch({ limit: 1 })
    expect(await it.leave(1)).toEqual(['31/03 20:00'])
  })

  test('a clock that was ahead brings neither a burst nor a long wait to a course that was changed', async () => {
    for (const [before, after] of [
      [every(7), every(1)],
      [every(1), every(7)],
      [every(7, 20), every(1, 20)],
    ] as const) {
      const it = await begun(before)
      await it.leave(3)
      const course = it.deploy(after)
      await it.leave(1)
      const due = (await it.ada()).dueAt ?? 0
      const ahead = it.open(it.store.course, {
        catalog: followed(after),
        aheadMs: due - it.now() + 3 * DAY_MS,
      })
      await ahead.dispatch({ limit: 1 })
      await course.redate()
      const { nextAttemptAt = 0 } = await it.ada()
      const interval = after.cadence.kind === 'every' ? after.cadence.ms : 0
      expect(nextAttemptAt - it.now()).toBeGreaterThanOrEqual(interval)
      expect(nextAttemptAt - it.now()).toBeLessThanOrEqual(2 * interval)
    }
  })
})
