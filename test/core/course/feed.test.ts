import { expect, test } from 'vitest'
import { createFeed, type Taken } from '../../../src/core/course/feed.ts'
import type { Claim, CourseStore } from '../../../src/core/course/store.ts'
import { virtualTime } from '../../simulation/virtual-time.ts'

const SECOND = 1000
type Asked = Parameters<CourseStore['claimDue']>[0]

/** A feed over a store in which this many lessons are due, and all that the store was asked for. */
function feedOf({
  due = 0,
  limit = 1000,
  ahead = 2,
  fraction = 0,
  run,
  before = async () => {},
}: {
  due?: number
  limit?: number
  ahead?: number
  fraction?: number
  run?: string
  /** What the store does before its answer to a call, counted from 1. */
  before?: (call: number) => Promise<void>
} = {}) {
  const time = virtualTime(5 * SECOND)
  const asked: Asked[] = []
  const kept: Parameters<CourseStore['keep']>[0][] = []
  let left = due
  const feed = createFeed({
    store: {
      claimDue: async (one) => {
        asked.push(one)
        await before(asked.length)
        const many = Math.min(left, one.limit)
        left -= many
        // A feed asks nothing of a claim but that it is the same one.
        return Array.from({ length: many }, (_, at) => ({ subscription: `${asked.length}.${at}` }) as Claim)
      },
      keep: async (one) => void kept.push(one),
      listDue: async () => [],
    },
    clock: time.clock,
    timer: time.clock,
    random: { bytes: (count) => new Uint8Array(count).fill(255), fraction: () => fraction },
    limit,
    run,
    notices: undefined,
    gentle: undefined,
    patienceMs: 600 * SECOND,
    ahead,
    pace: undefined,
    signal: new AbortController().signal,
  })
  const next = async (count: number) => {
    const taken: Taken[] = []
    for (let n = 0; n < count; n += 1) {
      const one = await feed.next()
      if (one) taken.push(one)
    }
    // What was begun meanwhile ends.
    await new Promise((resolve) => setImmediate(resolve))
    return taken
  }
  const pass = (seconds: number) => {
    time.after(seconds * SECOND - time.elapsed(), () => {})
    return time.passUntil(seconds * SECOND, () => false)
  }
  const limits = () => asked.map((one) => one.limit)
  return { feed, asked, kept, next, pass, limits, time }
}

test('a call claims 400 lessons at once, or as many as it may still send, under one name and for 90 seconds', async () => {
  const it = feedOf({ due: 1000, limit: 450, run: 'the run' })
  expect(await it.next(500)).toHaveLength(450)
  const both = { now: 5 * SECOND, leaseMs: 90 * SECOND, call: 'the run', notices: undefined }
  expect(it.asked).toEqual([
    { ...both, limit: 400, retries: 20 },
    { ...both, limit: 50, retries: 2 },
  ])
  const unnamed = feedOf({ due: 1 })
  await unnamed.next(1)
  // Nine random bytes.
  expect(unnamed.asked[0]?.call).toBe('____________')
})

test.each([
  [19, 0, 0],
  [20, 0, 1],
  [10, 0.49, 0],
  [10, 0.5, 1],
  [399, 0.05, 20],
])('of %i claims, when chance says %d, %i may be retries', async (limit, fraction, retries) => {
  const it = feedOf({ limit, fraction })
  await it.next(1)
  expect(it.asked).toMatchObject([{ limit, retries }])
})

test('more is claimed as soon as fewer are ready than the transport has lines, and not before', async () => {
  const it = feedOf({ due: 800, limit: 800, ahead: 2 })
  await it.next(398)
  expect(it.limits()).toEqual([400])
  await it.next(1)
  expect(it.limits()).toEqual([400, 400])
  // The last of the limit: there is no more to claim.
  await it.next(400)
  expect(await it.next(2)).toHaveLength(1)
  expect(it.limits()).toEqual([400, 400])
})

test('once nothing more is due the store is not asked again, until a claim is given back', async () => {
  const it = feedOf({ due: 1, limit: 10, ahead: 0 })
  expect(await it.next(3)).toHaveLength(1)
  expect(it.limits()).toEqual([10, 9])
  it.feed.giveBack({ stale: false })
  expect(await it.next(1)).toEqual([])
  expect(it.limits()).toEqual([10, 9, 10])
})

test('when claims grew old before their turn, as few are claimed as there are lines, then twice as many each time', async () => {
  const it = feedOf({ due: 2000, limit: 2000, ahead: 150 })
  await it.next(1)
  it.feed.giveBack({ stale: true })
  await it.next(250)
  await it.next(150)
  await it.next(300)
  expect(it.limits()).toEqual([400, 150, 300, 400])
})

test('what was claimed before a fault is handed out first, and the fault is then every slot’s', async () => {
  const it = feedOf({
    due: 500,
    limit: 500,
    before: async (call) => {
      if (call === 2) throw new TypeError('no such column')
    },
  })
  expect(await it.next(400)).toHaveLength(400)
  await expect(it.feed.next()).rejects.toThrow('no such column')
  await expect(it.feed.next()).rejects.toThrow('no such column')
  expect(it.limits()).toEqual([400, 100])
})

test('claims that came too late to be sent are handed out with their lease, and no more are claimed', async () => {
  const it = feedOf({ due: 3, limit: 3, before: () => it.time.clock.sleep(25 * SECOND + 1) })
  const taken = it.next(3)
  await it.pass(26)
  expect((await taken).map(({ lease }) => lease.mayBegin())).toEqual([false, false, false])
  it.feed.giveBack({ stale: true })
  await expect(it.feed.next()).rejects.toMatchObject({ code: 'store_unavailable' })
  expect(it.limits()).toEqual([3])
})

test('a feed that is stopped waits for what it asked for, gives what was not handed out, and claims no more', async () => {
  const it = feedOf({
    due: 500,
    before: (call) => (call === 1 ? it.time.clock.sleep(SECOND) : Promise.resolve()),
  })
  const first = it.feed.next()
  const rest = it.feed.stop()
  await it.pass(1)
  expect([await first, ...(await rest)]).toHaveLength(400)
  it.feed.giveBack({ stale: false })
  expect([await it.feed.next(), await it.feed.stop()]).toEqual([undefined, []])
  expect(it.limits()).toEqual([400])
})

test('a lease is renewed by the name of the call while messages are out, and ends when all of it have ended', async () => {
  const it = feedOf({ due: 2, limit: 2, run: 'the run' })
  const [one, two] = await it.next(2)
  if (!one || !two) throw new Error('two are due')
  for (const { claim, lease } of [one, two]) lease.begin(claim)
  one.lease.end(one.claim)
  await it.pass(50)
  expect(it.kept).toEqual([{ claims: [two.claim], call: 'the run', now: 55 * SECOND, leaseMs: 90 * SECOND }])
  two.lease.end(two.claim)
  await it.pass(1000)
  expect(it.kept).toHaveLength(1)
  expect(one.lease.signal.aborted).toBe(false)
})

test('at the end of a call no lease of it is renewed any more, and none runs out', async () => {
  const it = feedOf({ due: 2, limit: 2 })
  const [one] = await it.next(2)
  one?.lease.begin(one.claim)
  it.feed.end()
  await it.pass(1000)
  expect([it.kept, one?.lease.signal.aborted]).toEqual([[], false])
})
