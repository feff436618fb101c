import { DAY_MS } from '../durations.ts'
/** Providers deliver an event again for days, and let an operator do so for a month: three times that. */
export const PAYMENT_EVENTS_KEPT_MS = 90 * DAY_MS

/**
 * Records which events were handled, so that each is handled once however often it is delivered. A claim is a
 * lease: an event that a crash left behind is claimed again by a later delivery.
 */
export interface PaymentEventStore {
  claim(input: {
    readonly id: string
    readonly type: string
    readonly now: number
    readonly leaseMs: number
  }): Promise<'claimed' | 'handled' | 'busy'>
  settle(input: { readonly id: string; readonly handled: boolean; readonly now: number }): Promise<void>
  /** Forgets the events that came before that moment, a few hundred a transaction. */
  prune(before: number): Promise<void>
}
