import { expect, test } from 'vitest'
import type { Claim } from '../../src/core/course/subscription.ts'
import { createLease } from '../../src/core/lease.ts'
import { virtualTime } from '../simulation/virtual-time.ts'

const SECOND = 1000
/** A lease asks nothing of a claim but that it is the same one. */
const CLAIM = { id: 'ada' } as Claim

type Time = ReturnType<typeof virtualTime>

function leaseOf({ patienceMs = 30 * SECOND, keep = async (_: Time) => {} } = {}) {
  const time = virtualTime(0)
  const kept: number[] = []
  let expiredAt: number | undefined
  const lease = createLease<Claim>({
    timer: time.clock,
    since: 0,
    claims: 1,
    onEnded: () => {},
    patienceMs,
    keep: async () => {
      kept.push(time.elapsed())
      await keep(time)
    },
  })
  void lease.expired.then(() => {
    expiredAt = time.elapsed()
  })
  const pass = (ms: number) => {
    time.after(ms - time.elapsed(), () => {})
    return time.passUntil(ms, () => false)
  }
  return { time, lease, kept, pass, expiredAt: () => expiredAt }
}

test('an attempt begins within 25 seconds of asking for its claim, or not at all', async () => {
  const { lease, pass } = leaseOf()
  await pass(25 * SECOND)
  expect(lease.mayBegin()).toBe(true)
  await pass(25 * SECOND + 1)
  expect(lease.mayBegin()).toBe(false)
})

test('a message in flight is given up after its patience, and at most 80 seconds after the claim', async () => {
  for (const [patienceMs, at] of [
    [30 * SECOND, 55 * SECOND],
    [54 * SECOND, 79 * SECOND],
    [600 * SECOND, 80 * SECOND],
  ] as const) {
    const { lease, pass, expiredAt } = leaseOf({ patienceMs })
    // Without a claim in flight, nothing is held longer.
    await pass(at - 1)
    expect([expiredAt(), lease.signal.aborted]).toEqual([undefined, false])
    await pass(at)
    expect([expiredAt(), lease.signal.aborted]).toEqual([at, true])
    expect(lease.heldUntil()).toBe(90 * SECOND)
  }
})

test('while a message is out its claim is held anew 30 seconds before the end, and no longer than the patience', async () => {
  const { lease, kept, pass, expiredAt } = leaseOf({ patienceMs: 150 * SECOND })
  lease.begin(CLAIM)
  await pass(174 * SECOND)
  expect(kept).toEqual([50 * SECOND, 100 * SECOND])
  expect(lease.heldUntil()).toBe(190 * SECOND)
  expect(expiredAt()).toBeUndefined()
  await pass(175 * SECOND)
  expect(expiredAt()).toBe(175 * SECOND)
})

test('a claim that a slow store has renewed is held from when the store was asked', async () => {
  const keep = ({ clock }: Time) => clock.sleep(4 * SECOND)
  const { lease, kept, pass } = leaseOf({ patienceMs: 600 * SECOND, keep })
  lease.begin(CLAIM)
  await pass(54 * SECOND)
  expect([kept, lease.heldUntil()]).toEqual([[50 * SECOND], 140 * SECOND])
})

test('retries an unreachable store every five seconds, and ends the claim on time', async () => {
  const { lease, kept, pass, expiredAt } = leaseOf({
    patienceMs: 600 * SECOND,
    keep: () => Promise.reject(new Error('gone')),
  })
  lease.begin(CLAIM)
  await pass(80 * SECOND)
  expect(kept).toEqual([50, 55, 60, 65, 70, 75].map((at) => at * SECOND))
  expect(expiredAt()).toBe(80 * SECOND)
})

test('a message that has ended is not held any longer, and the last of all that are held says so once', async () => {
  const time = virtualTime(0)
  const kept: (readonly Claim[])[] = []
  let ended = 0
  const lease = createLease<Claim>({
    timer: time.clock,
    since: 0,
    claims: 2,
    onEnded: () => {
      ended += 1
    },
    patienceMs: 600 * SECOND,
    keep: async (claims) => void kept.push(claims),
  })
  const other = { id: 'bob' } as Claim
  for (const claim of [CLAIM, other]) lease.begin(claim)
  lease.end(CLAIM)
  expect(ended).toBe(0)
  time.after(50 * SECOND, () => {})
  await time.passUntil(50 * SECOND, () => false)
  expect(kept).toEqual([[other]])
  lease.end(other)
  expect(ended).toBe(1)
  lease.cancel()
  // Nothing is left that could be held: no timer keeps the process waiting.
  await time.passUntil(1000 * SECOND, () => false)
  expect([kept.length, lease.signal.aborted]).toEqual([1, false])
})

test('hundreds of messages listen to the end of one lease without a warning', async () => {
  const warnings: Error[] = []
  const listen = (warning: Error) => void warnings.push(warning)
  process.on('warning', listen)
  const { lease } = leaseOf()
  for (let n = 0; n < 500; n += 1) lease.signal.addEventListener('abort', () => {})
  await new Promise((resolve) => setImmediate(resolve))
  process.off('warning', listen)
  expect(warnings).toEqual([])
})
