/**
 * Which events were handled, so that each is handled once however often it is delivered. A claim is a lease: what a
 * crash left behind is claimed again by a later delivery.
 */
export interface PaymentEventStore {
  claim(input: {
    readonly id: string
    readonly type: string
    readonly now: number
    readonly leaseMs: number
  }): Promise<'claimed' | 'handled' | 'busy'>
  settle(input: { readonly id: string; readonly handled: boolean; readonly now: number }): Promise<void>
}
