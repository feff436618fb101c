import type { FeedbackEvent } from '../../src/core/mail/feedback/event.ts'
import { applyFeedback } from '../../src/core/mail/feedback/store.ts'
import type { Outcome } from '../../src/core/mail/mailer.ts'
import { openStore } from '../../src/core/store/open.ts'
import { begin } from '../../test/support/learning.ts'
import { settle } from '../../test/support/settle.ts'

/**
 * `seed.ts FILE PERSON=OUTCOME …`: a store with people in the middle of their course, so that the runbooks of alerts
 * have something to show. OUTCOME is what became of the last attempt: due (none yet), sent, unknown, parked, bounced; or
 * what the provider reported after it was sent: complained, returned. `mail=N` counts N messages more as sent.
 */
const REPORTS: Record<string, Pick<FeedbackEvent, 'kind' | 'reason'>> = {
  complained: { kind: 'complaint', reason: 'the recipient reported the message as spam' },
  returned: { kind: 'hard-bounce', reason: 'the address does not exist (5.1.1)' },
}
const SENT: Outcome = { kind: 'sent', id: 'kept' }
const OUTCOMES: Record<string, Outcome> = {
  complained: SENT,
  returned: SENT,
  sent: SENT,
  unknown: { kind: 'unknown', reason: 'the connection broke after the message was handed over' },
  parked: { kind: 'permanent', reason: '554 5.7.1 message refused', hardBounce: false },
  bounced: { kind: 'permanent', reason: '550 5.1.1 no such user', hardBounce: true },
}
const [file, ...people] = process.argv.slice(2)
if (file === undefined) throw new Error('usage: seed.ts FILE PERSON=OUTCOME …')
const store = await openStore({ kind: 'sqlite', file })
const now = Date.now()
const events: FeedbackEvent[] = []
for (const person of people) {
  const [name = '', outcome = ''] = person.split('=')
  if (name === 'mail') {
    const counted = { at: now, kind: 'sent', source: 'api', domain: 'other', count: Number(outcome) } as const
    await store.sending.count([counted])
    continue
  }
  const address = `${name}@example.com`
  const report = REPORTS[outcome]
  if (report) events.push({ id: name, address, messageId: undefined, at: now, ...report })
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
await applyFeedback({
  feedback: { events, ignored: 0 },
  source: 'postmark',
  store: store.feedback,
  sending: store.sending,
  erasureHashes: () => [],
  now,
})
await store.close()
