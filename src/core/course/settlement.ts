import { type Delivery, isOutcome, type JobRecord } from '../delivery/retries.ts'
import { outcomeFields } from './history.ts'
import type { Claim, Next, Settlement } from './subscription.ts'

/** What is written of a claim. Pure, so that the simulation and every store share it. */
export function settlementOf(
  claim: Claim,
  delivery: Delivery,
  { result, untried, nextAttemptAt, failures, problem: met }: JobRecord,
  at: Pick<Settlement, 'now' | 'progress'> & {
    /** The lesson after this one; undefined: there is none. */
    readonly next?: Next | undefined
    readonly messageId?: string | undefined
  },
): Settlement {
  const { now, next, progress, messageId } = at
  const attempt = attemptOf(delivery, messageId)
  const problem = met ?? claim.problem
  const settled = { claim, now, untried, end: false, ...(attempt && { attempt }) }
  const over = { nextAttemptAt: undefined, failures: 0, problem: undefined }
  switch (result) {
    case 'sent':
    case 'skipped':
      return {
        ...settled,
        ...over,
        sent: true,
        lessons: next?.lessons ?? claim.day,
        nextAttemptAt: next?.dueAt,
        ...(result === 'sent' && progress && { progress }),
      }
    case 'finished':
      // All lessons that the course still has were sent.
      return { ...settled, ...over, sent: false, lessons: claim.day - 1 }
    case 'waits':
      return { ...settled, sent: false, nextAttemptAt, failures, problem }
    case 'over':
      return { ...settled, ...over, sent: false, failures, problem, end: problem?.kind === 'bounced' }
  }
}

/** What the history says of an attempt; undefined: there was none. */
function attemptOf(delivery: Delivery, messageId: string | undefined): Settlement['attempt'] {
  if (delivery.kind === 'over') return { outcome: 'permanent', reason: delivery.reason }
  if (!isOutcome(delivery)) return undefined
  return { ...outcomeFields(delivery), ...(messageId === undefined ? {} : { messageId }) }
}
