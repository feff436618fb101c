import { settle } from '../../src/core/course/schedule.ts'
import type { Outcome } from '../../src/core/mail/transport.ts'
import { openStore } from '../../src/core/store/open.ts'
import { begin } from '../../test/support/learning.ts'

/**
 * `seed.ts FILE PERSON=OUTCOME …`: a store with people in the middle of their course, so that the runbooks of alarms
 * have something to show. OUTCOME is what became of the last attempt: due (none yet), sent, unknown, parked, bounced.
 */
const OUTCOMES: Record<string, Outcome> = {
  sent: { kind: 'sent', id: 'kept' },
  unknown: { kind: 'unknown', reason: 'the connection broke after the message was handed over' },
  parked: { kind: 'permanent', reason: '554 5.7.1 message refused', hardBounce: false },
  bounced: { kind: 'permanent', reason: '550 5.1.1 no such user', hardBounce: true },
}
const [file, ...people] = process.argv.slice(2)
if (file === undefined) throw new Error('usage: seed.ts FILE PERSON=OUTCOME …')
const store = await openStore({ kind: 'sqlite', file })
const now = Date.now()
for (const person of people) {
  const [name = '', outcome = ''] = person.split('=')
  const address = `${name}@example.com`
  // Confirmed an hour and a bit ago: day 1 is due, day 2 is not.
  const then = now - 65 * 60 * 1000
  await store.course.requestConfirmation({
    course: 'quantum',
    identity: address,
    address,
    id: `${name}-8f3kQ2vX`,
    tokenHash: name,
    now: then,
  })
  await store.course.confirm({ begin, tokenHash: name, now: then })
  const ended = OUTCOMES[outcome]
  if (ended === undefined) continue
  const claims = await store.course.claimDue({
    now: then,
    limit: 100,
    retries: 100,
    leaseMs: 60_000,
    call: name,
  })
  const mine = claims.filter((claim) => claim.address === address)
  await store.course.settle(
    mine.map((claim) => settle(claim, ended, { now: now - 60_000, fraction: 0.5, next: undefined })),
  )
}
await store.close()
