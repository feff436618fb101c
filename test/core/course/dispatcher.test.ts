import { expect, test } from 'vitest'
import type { CourseStore } from '../../../src/core/course/store.ts'
import { DAY_MS, HOUR_MS, MINUTE_MS } from '../../../src/core/durations.ts'
import { systemClock, type Timer } from '../../../src/core/host.ts'
import { openMailer } from '../../../src/core/mail/open.ts'
import { virtualTime } from '../../simulation/virtual-time.ts'
import { courseWith, START } from '../../support/course.ts'
import { compiledMails } from '../../support/learning.ts'
import { keptLog } from '../../support/opened.ts'
import { during } from '../../support/virtual-work.ts'

const SECOND = 1000
const NOT_SENT = 'a lesson was not sent'
const RESOLVE = `${NOT_SENT}; it waits for: platformctl course resolve person-0 retry|sent`
const nothing = { processed: 0, sent: 0, failed: 0, unknown: 0, results: [] }

/** Two people: the lesson of one has just failed, and the other's is due. */
async function oneWaits() {
  const it = await courseWith(2, { kind: 'memory' })
  it.answer(() => ({ kind: 'transient', scope: 'message', reason: 'greylisted' }))
  await it.course.dispatch({ limit: 1 })
  const { nextTryAt } = await it.course.backlog()
  return { it, waiting: { remaining: 1, waiting: 1, nextTryAt: new Date(nextTryAt ?? 0).toISOString() } }
}

test('a call that sends nothing reports its limit, the reason, and the lessons left', async () => {
  const { it, waiting } = await oneWaits()
  const paused = it.open(it.store.course, { isPaused: async () => true })
  const says = (limit: number, reason: string) => ({ ...nothing, ...waiting, limit, reason })
  expect(await paused.dispatch({ limit: 7 })).toEqual(says(7, 'paused'))
  const mailer = openMailer({ mail: undefined, compiled: compiledMails })
  const silent = it.open(it.store.course, { more: { mailer } })
  expect(await silent.dispatch({ limit: 8 })).toEqual(says(8, 'mail is not configured'))
  const stopped = it.open(it.store.course)
  expect(await stopped.dispatch({ limit: 9, signal: AbortSignal.abort() })).toEqual(
    says(9, 'it was stopped before all that is due was sent'),
  )
  expect(it.messages).toHaveLength(1)
})

test('calls that run at the same time have each a limit and results of its own, and no lesson in common', async () => {
  const it = await courseWith(5, { kind: 'memory' })
  const limits = [1, 3]
  const calls = await Promise.all(limits.map((limit) => it.course.dispatch({ limit })))
  expect(calls.map(({ limit, sent }) => [limit, sent])).toEqual(limits.map((limit) => [limit, limit]))
  const reached = calls.flatMap(({ results }) => results.map(({ subscription }) => subscription))
  expect([new Set(reached).size, it.messages.length]).toEqual([4, 4])
})

test('a call counts, lists, logs and reports each message by what became of it', async () => {
  const it = await courseWith(4, { kind: 'memory' })
  it.answer((message) => {
    if (message.to.address === 'p1@example.com')
      return { kind: 'permanent', hardBounce: true, reason: 'no such address' }
    if (message.to.address === 'p2@example.com') return { kind: 'unknown', reason: 'the line broke' }
    return { kind: 'sent', id: message.key }
  })
  const { lines, log, told } = keptLog()
  const progress: string[] = []
  const result = await it
    .open(it.store.course, { more: { log } })
    .dispatch({ limit: 3, onProgress: (one) => void progress.push(one) })
  const counts = { processed: 3, sent: 1, failed: 1, unknown: 1, remaining: 1 }
  expect(result).toMatchObject({ ...counts, limit: 3, waiting: 1 })
  expect(result).not.toHaveProperty('reason')
  const by = (a: { subscription: string }, b: { subscription: string }) =>
    a.subscription < b.subscription ? -1 : 1
  expect([...result.results].sort(by)).toEqual([
    { subscription: 'person-0', day: 1, sent: true },
    { subscription: 'person-1', day: 1, sent: false, reason: 'no such address' },
    { subscription: 'person-2', day: 1, sent: false, reason: 'the line broke' },
  ])
  expect(progress.sort()).toEqual(['failed', 'sent', 'unknown'])
  const notSent = (subscription: string, outcome: string, reason: string) =>
    expect.objectContaining({ level: 'warn', subscription, day: 1, outcome, reason })
  expect(told('course_day_not_sent')).toEqual(
    expect.arrayContaining([
      notSent('person-1', 'failed', 'no such address'),
      notSent('person-2', 'unknown', 'the line broke'),
    ]),
  )
  expect(lines).toHaveLength(3)
  const { results: _, limit: __, ...logged } = result
  expect(lines.at(-1)).toEqual({ level: 'info', event: 'dispatched', message: expect.any(String), ...logged })
})

test.each([
  [{ kind: 'unknown', reason: 'the line broke' }, 24, RESOLVE],
  [{ kind: 'permanent', hardBounce: false, reason: 'refused' }, 0, RESOLVE],
  [{ kind: 'permanent', hardBounce: true, reason: 'no such address' }, 0, NOT_SENT],
  [{ kind: 'unknown', reason: 'the line broke' }, 12, NOT_SENT],
] as const)(
  'after %j the log of %d hours ends with whether an operator decides',
  async (outcome, hours, says) => {
    const it = await courseWith(1, { kind: 'memory' })
    it.answer(() => outcome)
    const { log, told } = keptLog()
    const course = it.open(it.store.course, { more: { log } })
    for (let hour = 0; hour <= hours; hour += 1) {
      await course.dispatch({})
      it.pass(HOUR_MS)
    }
    const messages = told('course_day_not_sent').map(({ message }) => message)
    expect(messages.pop()).toBe(says)
    expect(messages.every((one) => one === NOT_SENT)).toBe(true)
  },
)

test('when the pace cannot be kept the call fails, and what was claimed is given back', async () => {
  const it = await courseWith(3, { kind: 'memory' })
  const pace = { places: () => Promise.reject(new RangeError('no pace')), giveBack: () => {} }
  await expect(it.open(it.store.course, { more: { pace } }).dispatch({ limit: 10 })).rejects.toThrow(
    'no pace',
  )
  expect(it.messages).toEqual([])
  expect(await it.course.dispatch({ limit: 10 })).toMatchObject({ sent: 3, remaining: 0 })
})

test('a call asks every five seconds whether courses are paused, and ends when they are', async () => {
  const time = virtualTime(START)
  const it = await courseWith(4, { time, kind: 'memory' })
  const asked: number[] = []
  let line = Promise.resolve()
  const course = it.open(it.store.course, {
    isPaused: async () => {
      asked.push(time.elapsed())
      return asked.length > 2
    },
    more: {
      pace: {
        places: async () => {
          line = line.then(() => time.clock.sleep(5 * SECOND))
          await line
          return [time.elapsed()]
        },
        giveBack: () => {},
      },
    },
  })
  expect(await during(time, course.dispatch({ limit: 10 }))).toMatchObject({
    sent: 1,
    remaining: 3,
    reason: 'paused',
  })
  expect(asked).toEqual([0, 5 * SECOND, 10 * SECOND])
})

test.each([
  ['api', 20 * HOUR_MS - 1, 1],
  ['api', 20 * HOUR_MS, 0],
  ['test', 20 * HOUR_MS, 1],
])(
  'a lesson whose attempt was lost is sent again over %s after %i ms: %i times',
  async (transportKind, age, times) => {
    let lease = 0
    const it = await courseWith(1, { kind: 'memory', transportKind, leaseClock: () => lease })
    const lost = { now: it.now(), limit: 1, retries: 0, leaseMs: 90 * SECOND, call: 'lost' }
    expect(await it.store.course.claimDue(lost)).toHaveLength(1)
    lease += 90 * SECOND
    it.pass(age)
    const result = await it.course.dispatch({ limit: 1 })
    expect(it.messages).toHaveLength(times)
    if (times === 1) expect(result).toMatchObject({ sent: 1 })
    else {
      expect(result).toMatchObject({
        unknown: 1,
        results: [{ reason: 'the process that sent it ended before it knew the outcome' }],
      })
      expect((await it.rows())[0]).toMatchObject({ nextAttemptAt: undefined, problem: { kind: 'unknown' } })
    }
  },
)

test('a call fails if the store cannot record that lessons that had no turn yet are given back', async () => {
  const people = 260
  const it = await courseWith(people, { kind: 'memory' })
  it.answer(() => ({ kind: 'transient', scope: 'connection', reason: 'refused' }))
  const broken: CourseStore = {
    ...it.store.course,
    // Slots take the first 250 in the order of their claims.
    settle: (settlements) =>
      settlements.some(({ claim }) => Number(claim.id.slice(7)) >= 250)
        ? Promise.reject(new TypeError('no such column'))
        : it.store.course.settle(settlements),
  }
  await expect(it.open(broken).dispatch({ limit: people })).rejects.toThrow('no such column')
  expect(it.messages.length).toBeLessThanOrEqual(50)
})

const BUSY = { kind: 'transient', scope: 'message', reason: 'cannot take it now (503)' } as const

test.each([undefined, START + 365 * DAY_MS])(
  'a provider that takes nothing for two days parks nobody: each lesson leaves once it takes them again, with one noted as sent at %s',
  async (noted) => {
    const it = await courseWith(12)
    const course = it.open({ ...it.store.course, lastSentAt: async () => noted })
    it.answer(() => BUSY)
    for (let passed = 0; passed < 48 * HOUR_MS; passed += 5 * MINUTE_MS) {
      await course.dispatch({})
      it.pass(5 * MINUTE_MS)
    }
    expect(it.messages.length).toBeGreaterThan(12 * 12)
    it.answer(({ key }) => ({ kind: 'sent', id: key }))
    it.pass(6 * HOUR_MS)
    expect(await course.dispatch({})).toMatchObject({ sent: 12, failed: 0 })
  },
)

test.each([false, true])(
  'a lesson that fails twelve times while others are taken is parked; a process for each run: %s',
  async (alone) => {
    const it = await courseWith(3)
    const dispatch = () => (alone ? it.open(it.store.course) : it.course).dispatch({})
    const ofOne = () => it.messages.filter(({ to }) => to.address === 'p0@example.com').length
    it.answer((message) =>
      message.to.address === 'p0@example.com' ? BUSY : { kind: 'sent', id: message.key },
    )
    for (let passed = 0; passed < 60 * HOUR_MS; passed += 5 * MINUTE_MS) {
      await dispatch()
      it.pass(5 * MINUTE_MS)
    }
    expect(ofOne()).toBeGreaterThanOrEqual(12)
    const [one] = await it.rows()
    expect(one).toMatchObject({ nextAttemptAt: undefined, problem: { kind: 'parked' } })
    const before = ofOne()
    it.pass(12 * HOUR_MS)
    await dispatch()
    expect(ofOne()).toBe(before)
  },
)

test.each([1, 4, 9, 13])(
  'a lesson that becomes due %i minutes after another’s message began to hang leaves within a minute',
  async (minutes) => {
    const time = virtualTime(START)
    const it = await courseWith(1, { time, patienceMs: 14 * MINUTE_MS })
    const left = new Map<string, number>()
    it.answer(({ key, to }) => {
      left.set(to.address, time.elapsed())
      return to.address === 'p0@example.com' ? new Promise(() => {}) : { kind: 'sent', id: key }
    })
    time.after(minutes * MINUTE_MS + SECOND, () => void it.join('late@example.com'))
    const asked = { limit: Number.POSITIVE_INFINITY, forMs: 5 * MINUTE_MS }
    expect(await during(time, it.course.dispatch(asked))).toMatchObject({ sent: 1, unknown: 1 })
    expect((left.get('late@example.com') ?? 0) / MINUTE_MS).toBe(minutes + 1)
  },
)

test('a run without a limit holds the leases of what it has in hand, and none of what it has recorded', async () => {
  const it = await courseWith(1300, { kind: 'memory' })
  let [held, most] = [0, 0]
  const sleep: Timer['sleep'] = async (ms, signal) => {
    const lease = ms > 1000
    if (lease) most = Math.max(most, ++held)
    try {
      await systemClock.sleep(ms, signal)
    } finally {
      if (lease) held -= 1
    }
  }
  const course = it.open(it.store.course, { timer: { ...systemClock, sleep } })
  expect(await course.dispatch({ limit: Number.POSITIVE_INFINITY })).toMatchObject({ sent: 1300 })
  expect(held).toBe(0)
  expect(most).toBeGreaterThan(0)
  expect(most).toBeLessThanOrEqual(3)
})
