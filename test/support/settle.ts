import type { Claim, Settlement } from '../../src/core/course/subscription.ts'
import { settlementOf } from '../../src/core/course/transitions/claim.ts'
import { COURSE, type Delivery, recordOf } from '../../src/core/delivery/retries.ts'

/** What the engine writes of an attempt at a lesson. */
export function settle(
  claim: Claim,
  delivery: Delivery,
  { fraction, ...at }: Parameters<typeof settlementOf>[3] & { readonly fraction: number },
): Settlement {
  const { dueAt, failures, problem } = claim
  const unknownSince = problem?.kind === 'unknown' ? problem.since : undefined
  const job = { dueAt, failures, unknownSince, wasTried: problem !== undefined }
  return settlementOf(claim, delivery, recordOf(job, delivery, { now: at.now, fraction, stream: COURSE }), at)
}
