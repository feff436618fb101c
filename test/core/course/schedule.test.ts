import fc from 'fast-check'
import { expect, test } from 'vitest'
import { DAY_MS, dueAt, LESSONS, nextDay, release, settle } from '../../../src/core/course/schedule.ts'
import type { Claim } from '../../../src/core/course/store.ts'

const MINUTE_MS = 60_000
const time = fc.integer({ min: 0, max: 4_102_444_800_000 })
const fraction = fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true })
const claimOf = (parts: Partial<Claim> = {}): Claim => ({
  subscription: 'sub',
  address: 'a@example.com',
  enrolment: 1,
  day: 1,
  confirmedAt: 0,
  fence: 1,
  firstAttemptAt: 0,
  failures: 0,
  problem: undefined,
  ...parts,
})

test('day N is due N − 1 times 24 hours after the confirmation, whatever the calendar does', () => {
  fc.assert(
    fc.property(time, fc.integer({ min: 1, max: LESSONS }), (confirmedAt, day) => {
      expect(dueAt(confirmedAt, day) - confirmedAt).toBe((day - 1) * DAY_MS)
    }),
  )
})

test('the lowest unsent day is next, in whatever order days were recorded', () => {
  fc.assert(
    fc.property(fc.uniqueArray(fc.integer({ min: 1, max: LESSONS })), (sent) => {
      const day = nextDay(sent)
      if (day === undefined) expect(sent).toHaveLength(LESSONS)
      else {
        expect(sent).not.toContain(day)
        for (let lower = 1; lower < day; lower += 1) expect(sent).toContain(lower)
      }
    }),
  )
})

test('no retry comes within five minutes, and none later than six hours', () => {
  fc.assert(
    fc.property(time, fc.integer({ min: 0, max: 10 }), fraction, (now, failures, jitter) => {
      const { nextAttemptAt } = settle(
        claimOf({ failures }),
        { kind: 'transient', scope: 'message', reason: 'x' },
        now,
        jitter,
      )
      expect(nextAttemptAt).toBeGreaterThanOrEqual(now + 5 * MINUTE_MS)
      expect(nextAttemptAt).toBeLessThanOrEqual(now + 6 * 60 * MINUTE_MS)
    }),
  )
})

test('a provider’s own waiting time is respected', () => {
  const { nextAttemptAt } = settle(
    claimOf(),
    { kind: 'transient', scope: 'connection', reason: 'x', retryAfterMs: 3_600_000 },
    1000,
    0,
  )
  expect(nextAttemptAt).toBe(3_601_000)
})

test('faults of the connection burn no attempt; faults of the message park it after twelve', () => {
  let claim = claimOf()
  for (let attempt = 0; attempt < 100; attempt += 1) {
    const { failures, problem } = settle(
      claim,
      { kind: 'transient', scope: 'connection', reason: 'x' },
      attempt,
      0,
    )
    expect(problem?.kind).toBe('failed')
    claim = claimOf({ failures })
  }
  expect(claim.failures).toBe(0)
  for (let attempt = 1; attempt <= 12; attempt += 1) {
    const settled = settle(claim, { kind: 'transient', scope: 'message', reason: 'x' }, attempt, 0)
    expect(settled.problem?.kind).toBe(attempt < 12 ? 'failed' : 'parked')
    claim = claimOf({ failures: settled.failures })
  }
})

test('once unknown, a lesson stays unknown through later faults and through being given back, until it is sent', () => {
  const unknown = claimOf({ problem: { kind: 'unknown', reason: 'the line broke', since: 5 } })
  expect(release(unknown, 10, false).problem).toEqual(unknown.problem)
  expect(settle(unknown, { kind: 'transient', scope: 'message', reason: 'x' }, 10, 0).problem).toMatchObject({
    kind: 'unknown',
    since: 5,
  })
  expect(settle(unknown, { kind: 'sent', id: 'x' }, 10, 0).problem).toBeUndefined()
})

test('an unknown outcome is never retried 20 hours after it arose', () => {
  fc.assert(
    fc.property(
      time,
      fc.integer({ min: 0, max: 30 * 60 * MINUTE_MS }),
      fc.integer({ min: 0, max: 11 }),
      fraction,
      (since, later, failures, jitter) => {
        const claim = claimOf({ failures, problem: { kind: 'unknown', reason: 'x', since } })
        for (const outcome of [
          { kind: 'unknown', reason: 'x' } as const,
          { kind: 'transient', scope: 'message', reason: 'x' } as const,
        ]) {
          const { nextAttemptAt } = settle(claim, outcome, since + later, jitter)
          if (nextAttemptAt !== undefined) expect(nextAttemptAt - since).toBeLessThan(20 * 60 * MINUTE_MS)
        }
      },
    ),
  )
})
