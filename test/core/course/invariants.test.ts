import fc from 'fast-check'
import { expect, test } from 'vitest'
import { violations } from '../../../src/core/course/invariants.ts'
import { DAY_MS, HOUR_MS } from '../../../src/core/durations.ts'
import type { StoreAddress } from '../../../src/core/env/settings.ts'
import type { Outcome } from '../../../src/core/mail/mailer.ts'
import { openMaintenance, openStore } from '../../../src/core/store/open.ts'
import { begin, nextAfter, nextOf } from '../../support/learning.ts'
import { settle } from '../../support/settle.ts'
import { addressOf } from '../../support/stores.ts'

const NOW = Date.UTC(2026, 10, 21)
const kept = {
  id: 'ada',
  state: 'confirmed',
  enrolment: 1,
  confirmedAt: NOW - 2 * DAY_MS,
  unsubscribedAt: undefined,
  sentDays: '[1,2]',
  lessons: 7,
  dueAt: undefined,
  isImported: false,
  lastSentAt: NOW - DAY_MS,
  nextAttemptAt: NOW,
  problem: undefined,
} as const

test('a row in the middle of its course keeps every promise', () => {
  expect(violations(kept, NOW)).toEqual([])
})

test.each([
  { lessons: 2, nextAttemptAt: undefined },
  { state: 'unsubscribed', unsubscribedAt: NOW, nextAttemptAt: undefined },
] as const)('lessons an hour apart break no promise once there is no next one: %j', (change) => {
  const hourly = { confirmedAt: NOW - HOUR_MS, lastSentAt: NOW - HOUR_MS / 2 }
  expect(violations({ ...kept, ...hourly, ...change }, NOW)).toEqual([])
  expect(violations({ ...kept, ...hourly, ...change, lastSentAt: NOW + 1 }, NOW)).toHaveLength(1)
})

test('lessons that were sent elsewhere, before they would be due here, break no promise', () => {
  const imported = { ...kept, isImported: true, confirmedAt: NOW + DAY_MS, nextAttemptAt: NOW + 3 * DAY_MS }
  expect(violations({ ...imported, lastSentAt: undefined }, NOW)).toEqual([])
  expect(violations({ ...imported, lastSentAt: NOW + 1 }, NOW)).toHaveLength(1)
})

test.each([
  [{ sentDays: '[1,2,3]' }, NOW - 1, /day 3 was sent before it was due/],
  [{ sentDays: '[2]' }, NOW, /not in order: 2/],
  [{ sentDays: '[1,1]' }, NOW, /not in order/],
  [{ sentDays: '[8]' }, NOW, /not a list of days/],
  [{ sentDays: 'null' }, NOW, /not a list of days/],
  [{ sentDays: '[1' }, NOW, /not a list of days/],
  [{ nextAttemptAt: NOW - 1 }, NOW, /day 3 is planned before it is due/],
  [{ nextAttemptAt: undefined }, NOW, /day 3 is never going to be tried/],
  // Its course keeps lessons apart, or has a cadence of its own: the row says when the next one is due.
  [{ dueAt: NOW + 1 }, NOW, /day 3 is planned before it is due/],
  [{ dueAt: NOW, lastSentAt: NOW + 1 }, NOW, /day 2 was sent before it was due/],
  [{ lessons: 2 }, NOW, /all lessons were sent and another is planned/],
  [{ confirmedAt: undefined }, NOW, /has no time of confirmation/],
  [{ enrolment: 0 }, NOW, /was never enrolled/],
  [{ unsubscribedAt: NOW }, NOW, /confirmed and has a time of unsubscribing/],
  [{ state: 'unsubscribed' }, NOW, /unsubscribed and has no time of that/],
  [{ state: 'unsubscribed', unsubscribedAt: NOW }, NOW, /unsubscribed and a lesson is planned/],
  [
    { state: 'unconfirmed', confirmedAt: undefined, nextAttemptAt: undefined },
    NOW,
    /unconfirmed and was sent lessons/,
  ],
  [{ sentDays: '[1,2,3,4,5,6,7]' }, NOW + 9 * DAY_MS, /all lessons were sent and another is planned/],
] as const)('a row with %j breaks a promise', (change, now, sentence) => {
  expect(violations({ ...kept, ...change }, now).join('\n')).toMatch(sentence)
})

const OUTCOMES: readonly Outcome[] = [
  { kind: 'sent', id: 'x' },
  { kind: 'transient', reason: 'busy', scope: 'message' },
  { kind: 'transient', reason: 'busy', scope: 'connection' },
  { kind: 'unknown', reason: 'the line broke' },
  { kind: 'permanent', reason: 'refused', hardBounce: false },
  { kind: 'permanent', reason: 'no such user', hardBounce: true },
]

test('a store verifies after any sequence of changes to subscriptions', async () => {
  const step = fc.oneof(
    fc.record({
      do: fc.constantFrom('subscribe', 'confirm', 'unsubscribe', 'undo', 'retry', 'sent'),
      who: fc.nat(1),
    }),
    fc.record({ do: fc.constant('pass'), hours: fc.integer({ min: 1, max: 60 }) }),
    fc.record({ do: fc.constant('dispatch'), outcome: fc.nat(OUTCOMES.length - 1) }),
  )
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 60 }), async (steps) => {
      const address = (await addressOf('sqlite')) as StoreAddress
      const { course, close } = await openStore(address)
      let now = NOW
      let tokens = 0
      const newest = ['', '']
      for (const one of steps) {
        if ('hours' in one) now += one.hours * 60 * 60 * 1000
        else if ('outcome' in one) {
          const asked = { now, limit: 10, retries: 10, leaseMs: 60_000, call: `call${now}` }
          const claims = await course.claimDue(asked)
          await course.settle(
            claims.map((claim) =>
              settle(claim, OUTCOMES[one.outcome] as Outcome, { now, fraction: 0.5, next: nextOf(claim) }),
            ),
          )
        } else {
          const id = `id${one.who}`
          if (one.do === 'subscribe') {
            tokens += 1
            const asked = { course: 'quantum', identity: id, address: id, id, now }
            const { mail } = await course.requestConfirmation({ ...asked, tokenHash: `${tokens}` })
            if (mail) newest[one.who] = `${tokens}`
          } else if (one.do === 'confirm')
            await course.confirm({ begin, tokenHash: newest[one.who] ?? '', now })
          else if (one.do === 'unsubscribe') await course.unsubscribe({ id, now })
          else if (one.do === 'undo') await course.undoUnsubscribe({ id, now })
          else await course.resolve({ id, as: one.do as 'retry' | 'sent', now, next: nextAfter })
        }
      }
      await close()
      const maintenance = await openMaintenance(address)
      const { faults } = await maintenance.verify(now)
      await maintenance.close()
      expect(faults).toEqual([])
    }),
    { numRuns: 30 },
  )
}, 60_000)
