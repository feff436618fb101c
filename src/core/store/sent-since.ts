import type { SubscriptionRecord } from '../course/subscription.ts'

type Progress = Pick<SubscriptionRecord, 'enrolment' | 'confirmedAt' | 'sentDays' | 'state'>

/** The lessons of one enrolment that the replaced store sent and a restored one, which still sends them, does not know of. */
export function sentSince(restored: Progress, replaced: Progress): readonly number[] {
  const isSame = restored.enrolment === replaced.enrolment && restored.confirmedAt === replaced.confirmedAt
  if (!isSame || restored.state !== 'confirmed') return []
  return replaced.sentDays.filter((day) => !restored.sentDays.includes(day))
}
