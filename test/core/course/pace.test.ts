import { expect, test } from 'vitest'
import { NOTICES } from '../../../src/core/course/definition.ts'
import { OUT_OF_TIME } from '../../../src/core/course/dispatch.ts'
import type { CourseStore } from '../../../src/core/course/store.ts'
import { createPacer } from '../../../src/core/mail/feedback/pacer.ts'
import type { SendingStore } from '../../../src/core/mail/feedback/sending.ts'
import { virtualTime } from '../../simulation/virtual-time.ts'
import { courseWith, START } from '../../support/course.ts'
import { during } from '../../support/virtual-work.ts'

const SECOND = 1000
const MINUTE = 60 * SECOND

/** People whose lesson is due, on SQLite and virtual time, and dispatchers that share a pace. */
async function paced(people: number, perSecond: number) {
  const time = virtualTime(START)
  const it = await courseWith(people, { time })
  const sentAt: number[] = []
  it.answer((message) => {
    sentAt.push(time.elapsed())
    return { kind: 'sent', id: message.key }
  })
  const pacer = (store: Pick<SendingStore, 'reserve'> = it.store.sending) =>
    createPacer({ perSecond, store: async () => store, timer: time.clock })
  const open = (store: CourseStore = it.store.course, pace = pacer()) => it.open(store, { more: { pace } })
  return { it, time, sentAt, open, pacer }
}

test.each([
  [0.2, 16, 20],
  [2, 1, 60],
  [9.5, 3, 150],
  [120, 16, 300],
  [500, 1, 600],
])(
  'at %d messages a second, %i dispatchers send %i lessons in the time that the pace allows and a minute, no faster',
  async (perSecond, dispatchers, people) => {
    const { it, time, sentAt, open } = await paced(people, perSecond)
    const calls = Array.from({ length: dispatchers }, () =>
      open().dispatch({ limit: Number.POSITIVE_INFINITY }),
    )
    const results = await during(time, Promise.all(calls))
    expect(results.reduce((sum, { sent }) => sum + sent, 0)).toBe(people)
    expect(new Set(it.messages.map(({ key }) => key)).size).toBe(people)
    const needed = (people / perSecond) * SECOND
    expect(sentAt.at(-1)).toBeLessThanOrEqual(needed + MINUTE)
    for (const [index, at] of sentAt.entries())
      expect(index).toBeLessThanOrEqual((at / SECOND) * perSecond + 1 + perSecond / 2)
  },
)

test.each([
  [2, 1, 1, 40],
  [1, 1, 4, 10],
  [0.5, 4, 4, 10],
])(
  'at %d a second, %i dispatchers claim lessons when their turn comes, and where one of %i goes out the others give up their turns alone',
  async (perSecond, dispatchers, oneOf, sent) => {
    const { it, time, sentAt, open, pacer } = await paced(40, perSecond)
    const claimed = new Map<string, number>()
    const held: number[] = []
    const leaving: CourseStore = {
      ...it.store.course,
      // The others leave between their claim and their turn.
      async claimDue(asked) {
        const claims = await it.store.course.claimDue(asked)
        for (const { id } of claims) {
          claimed.set(id, time.elapsed())
          if (Number(id.slice(7)) % oneOf > 0) await it.store.course.unsubscribe({ id, now: it.now() })
        }
        return claims
      },
      async settle(settlements) {
        for (const { claim } of settlements) held.push(time.elapsed() - (claimed.get(claim.id) ?? 0))
        await it.store.course.settle(settlements)
      },
    }
    const calls = Array.from({ length: dispatchers }, () => open(leaving, pacer()).dispatch({ limit: 1000 }))
    const results = await during(time, Promise.all(calls))
    expect(results.reduce((sum, result) => sum + result.sent, 0)).toBe(sent)
    expect(Math.max(...held)).toBeLessThan(SECOND)
    expect(sentAt.at(-1)).toBeLessThan(((sent + 1) / perSecond) * SECOND)
  },
)

test('a call ends when its time is over and says what is left, and the next one goes on at the pace', async () => {
  const { time, sentAt, open } = await paced(40, 0.5)
  const course = open()
  const call = () => during(time, course.dispatch({ limit: 1000, forMs: 21 * SECOND }))
  expect(await call()).toMatchObject({ sent: 11, remaining: 29, reason: OUT_OF_TIME })
  expect(time.elapsed()).toBe(21 * SECOND)
  expect(await call()).toMatchObject({ sent: 10, remaining: 19, reason: OUT_OF_TIME })
  expect(sentAt.map((at) => at / SECOND)).toEqual(Array.from({ length: 21 }, (_, n) => 2 * n))
  const all = await during(time, course.dispatch({ limit: 19, forMs: 60 * SECOND }))
  expect(all).toMatchObject({ sent: 19, remaining: 0 })
  expect(all).not.toHaveProperty('reason')
})

test('a call that is stopped while it waits for its turn ends at once, and nothing stays claimed', async () => {
  const { it, time, open } = await paced(5, 0.2)
  const stop = new AbortController()
  time.after(SECOND, () => stop.abort())
  expect(await during(time, open().dispatch({ limit: 10, signal: stop.signal }))).toMatchObject({
    sent: 1,
    remaining: 4,
  })
  expect(time.elapsed()).toBeLessThan(2 * SECOND)
  expect(await during(time, it.course.dispatch({ limit: 10 }))).toMatchObject({ sent: 4 })
})

test('at a slow pace, a turn that is given back late is not lost', async () => {
  const { time, pacer } = await paced(0, 0.5)
  const { places, giveBack } = pacer()
  const turn = () => during(time, places(1, new AbortController().signal))
  const first = await turn()
  await during(time, time.clock.sleep(SECOND))
  giveBack(first)
  expect(await turn()).toEqual(first)
})

test('notices to visitors keep to the pace as lessons do', async () => {
  const { it, time, sentAt, pacer } = await paced(0, 0.5)
  const said = { title: 'a', text: 'a', when: 'a', statusUrl: 'https://www.example.com/' }
  const notices = { isSilent: async () => false, slots: () => said }
  const course = it.open(it.store.course, { more: { pace: pacer(), notices } })
  for (const name of ['ada', 'bob', 'eve', 'fay']) {
    const address = `${name}@example.com`
    await course.enrol({ spelling: address, identity: address, course: NOTICES })
  }
  const moving = { id: 'a', text: 'We move', from: START, until: undefined, by: 'ops' }
  await it.store.incidents.announce(moving, START)
  await during(time, course.deliverMessages())
  expect(sentAt).toEqual([0, 2, 4, 6].map((seconds) => seconds * SECOND))
})
