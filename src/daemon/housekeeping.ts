import { UNCONFIRMED_KEPT_MS } from '../core/course/schedule.ts'
import { INCIDENTS_KEPT } from '../core/incidents/incident.ts'
import { COUNTED_MINUTES_KEPT_MS } from '../core/mail/feedback/sending.ts'
import { FEEDBACK_EVENTS_KEPT_MS } from '../core/mail/feedback/store.ts'
import { PAYMENT_EVENTS_KEPT_MS } from '../core/payments/webhook.ts'
import type { Store } from '../core/store/store.ts'
import type { OpenedPlatform } from './platform.ts'

/** Deletes everything in the store that is past its retention time. */
export async function forgetOld(
  { ingest, course }: Pick<OpenedPlatform, 'ingest' | 'course'>,
  store: Store,
  now: () => number,
): Promise<void> {
  await ingest.prune()
  await store.paymentEvents.prune(now() - PAYMENT_EVENTS_KEPT_MS)
  await store.sending.prune(now() - COUNTED_MINUTES_KEPT_MS)
  await store.feedback.prune(now() - FEEDBACK_EVENTS_KEPT_MS)
  await store.incidents.prune({ before: now() - INCIDENTS_KEPT.ms, keep: INCIDENTS_KEPT.most })
  await (await course()).prunePlans()
  await store.notices.prune(now() - INCIDENTS_KEPT.ms)
  await store.course.pruneUnconfirmed(now() - UNCONFIRMED_KEPT_MS)
}
