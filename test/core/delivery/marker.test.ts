import { expect, test } from 'vitest'
import type { Claim, Settlement } from '../../../src/core/course/subscription.ts'
import { createMarker } from '../../../src/core/delivery/marker.ts'
import { PlatformError } from '../../../src/core/errors.ts'
import { virtualTime } from '../../simulation/virtual-time.ts'
import { during } from '../../support/virtual-work.ts'

/** A marker hands outcomes on without a look at them. */
const OUTCOME = {} as Settlement

function markerOver(settle: () => Promise<void>, time = virtualTime(0), full?: number) {
  const commits: { readonly at: number; readonly size: number }[] = []
  const marker = createMarker(
    {
      settle: async (outcomes) => {
        commits.push({ at: time.elapsed(), size: outcomes.length })
        await settle()
      },
    },
    time.clock,
    full,
  )
  return { time, commits, marker, mark: marker.mark }
}

test('outcomes that are learnt within six milliseconds share a commit', async () => {
  const { time, commits, mark } = markerOver(async () => {})
  const marks = [mark(OUTCOME, 90_000)]
  for (const at of [2, 7]) time.after(at, () => marks.push(mark(OUTCOME, 90_000)))
  await time.passUntil(20, () => false)
  expect(await Promise.all(marks)).toHaveLength(3)
  expect(commits).toEqual([
    { at: 6, size: 2 },
    { at: 13, size: 1 },
  ])
})

test('a group that is full waits too while the store cannot be written, and no longer', async () => {
  let locked = true
  const { time, commits, mark } = markerOver(
    async () => {
      if (locked) throw new PlatformError('store_unavailable', 'locked')
    },
    virtualTime(0),
    2,
  )
  const marks = [mark(OUTCOME, 90_000), mark(OUTCOME, 90_000)]
  time.after(10, () => {
    locked = false
    marks.push(mark(OUTCOME, 90_000))
  })
  await time.passUntil(300, () => false)
  await Promise.all(marks)
  expect(commits).toEqual([
    { at: 0, size: 2 },
    { at: 250, size: 3 },
  ])
  // Once the store is back it is as fast as before.
  const from = time.elapsed()
  await during(time, Promise.all([mark(OUTCOME, 90_000), mark(OUTCOME, 90_000)]))
  await during(time, mark(OUTCOME, 90_000))
  expect(commits.slice(2)).toEqual([
    { at: from, size: 2 },
    { at: from + 6, size: 1 },
  ])
})

test('when every message that is out is held until another is recorded, the group is committed at once', async () => {
  const { time, commits, marker } = markerOver(async () => {})
  // Only their identity counts here.
  const [first, second, third] = [0, 1, 2].map(() => ({ claim: {} }) as Settlement) as [
    Settlement,
    Settlement,
    Settlement,
  ]
  const [one, two] = [marker.begin(first.claim), marker.begin(second.claim)]
  one.answered()
  const marks = [marker.mark(first, 90_000)]
  // The third is held until the first is recorded, and the second is not answered: its mark may still join.
  const three = marker.begin(third.claim)
  marks.push(one.recorded().then(three.answered))
  time.after(1, () => {
    two.answered()
    marks.push(marker.mark(second, 90_000))
  })
  await time.passUntil(2, () => false)
  await Promise.all(marks)
  expect(commits).toEqual([{ at: 1, size: 2 }])
})

test('tells a message that the previous outcome could not be recorded', async () => {
  const { time, marker } = markerOver(() => Promise.reject(new TypeError('no such column')))
  const settlement = { claim: {} } as Settlement
  const { recorded, answered } = marker.begin(settlement.claim)
  answered()
  const marked = marker.mark(settlement, 90_000)
  const waits = recorded()
  await Promise.all([
    expect(during(time, marked)).rejects.toThrow('no such column'),
    expect(waits).rejects.toThrow('no such column'),
  ])
})

test('retries an unwritable store four times a second until the claim ends', async () => {
  const { time, commits, mark } = markerOver(() =>
    Promise.reject(new PlatformError('store_unavailable', 'locked')),
  )
  await expect(during(time, mark(OUTCOME, 1003))).rejects.toThrow('locked')
  expect(commits.map(({ at }) => at)).toEqual([6, 256, 506, 756])
  await expect(during(time, mark(OUTCOME, time.elapsed() + 501))).rejects.toThrow('locked')
  expect(commits).toHaveLength(6)
})

test('an outcome whose claim ends while the store cannot be written does not take others with it', async () => {
  let locked = true
  const { time, mark } = markerOver(async () => {
    if (locked) throw new PlatformError('store_unavailable', 'locked')
  })
  time.after(600, () => {
    locked = false
  })
  const marks = Promise.allSettled([mark(OUTCOME, 300), mark(OUTCOME, 90_000)])
  expect((await during(time, marks)).map(({ status }) => status)).toEqual(['rejected', 'fulfilled'])
})

test.each([
  ['a store that is closed for good', new PlatformError('store_unavailable', 'closed', { final: true })],
  ['a fault of ours', new TypeError('no such column')],
])('%s is not asked again', async (_, fault) => {
  const { time, commits, mark } = markerOver(() => Promise.reject(fault))
  await expect(during(time, mark(OUTCOME, 90_000))).rejects.toBe(fault)
  await time.passUntil(5000, () => false)
  expect(commits).toHaveLength(1)
})

test.each([
  [0, 6],
  [1, 12],
  [2, 24],
  [3, 24],
])('after a commit that took %i ms, outcomes wait %i ms for others', async (tookMs, waitMs) => {
  const time = virtualTime(0)
  const { commits, mark } = markerOver(() => time.clock.sleep(tookMs), time)
  await during(time, mark(OUTCOME, 90_000))
  const marked = time.elapsed()
  await during(time, mark(OUTCOME, 90_000))
  expect(commits.map(({ at }) => at)).toEqual([6, marked + waitMs])
})

test('one outcome that every message in flight waits for is committed at once, and nothing is when there is none', async () => {
  const { time, commits, marker } = markerOver(async () => {})
  // Only their identity counts here.
  const settlement = { claim: {} } as Settlement
  const one = marker.begin(settlement.claim)
  // It waits for itself, as its outcome is not known yet.
  const waits = one.recorded()
  expect(commits).toEqual([])
  one.answered()
  const marks = [marker.mark(settlement, 90_000)]
  expect(commits).toEqual([{ at: 0, size: 1 }])
  await during(time, Promise.all([waits, ...marks]))
  await time.passUntil(1000, () => false)
  // Nobody is held any more: the next waits for others.
  await during(time, marker.mark({ claim: {} } as Settlement, 90_000))
  expect(commits).toEqual([
    { at: 0, size: 1 },
    { at: 6, size: 1 },
  ])
})

test('an outcome that waits for others is committed as soon as a message waits for it', async () => {
  const { time, commits, marker } = markerOver(async () => {})
  // Only its identity counts here.
  const settlement = { claim: {} } as Settlement
  const first = marker.begin(settlement.claim)
  first.answered()
  const marked = marker.mark(settlement, 90_000)
  expect(commits).toEqual([])
  const waits = first.recorded()
  await during(time, Promise.all([marked, waits]))
  expect(commits).toEqual([{ at: 0, size: 1 }])
})

test('a message that waits does not make a store that cannot be written be asked more often', async () => {
  const { time, commits, marker } = markerOver(() =>
    Promise.reject(new PlatformError('store_unavailable', 'locked')),
  )
  const first = marker.mark(OUTCOME, 600)
  time.after(100, () => {
    marker
      .begin({} as Claim)
      .recorded()
      .catch(() => {})
  })
  await expect(during(time, first)).rejects.toThrow('locked')
  await time.passUntil(5000, () => false)
  expect(commits.map(({ at }) => at)).toEqual([6, 256, 506])
})
