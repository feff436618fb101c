/** The result of `subscribe`: the same for a known and an unknown address (CONTRACT §4). */
export interface SubscribeResult {
  readonly status: 'pending'
  readonly sent: boolean
  readonly reason?: string
}

export type ConfirmResult =
  | { readonly kind: 'confirmed' }
  | { readonly kind: 'invalid' }
  | { readonly kind: 'expired' }

export interface DispatchResult {
  readonly processed: number
  readonly sent: number
  readonly failed: number
  readonly unknown: number
  /** Lessons due that this call left. */
  readonly remaining: number
  readonly limit: number
  readonly reason?: string
  readonly results: readonly {
    readonly subscription: string
    readonly day: number
    readonly sent: boolean
    readonly reason?: string
  }[]
}

/** The seven-day course (CONTRACT §5) as its callers see it: routes, schedule and CLI enter here. */
export interface Course {
  /** `address` has been parsed by `parseAddress`. */
  subscribe(address: string): Promise<SubscribeResult>
  confirm(token: string): Promise<ConfirmResult>
  /** Never tells whether the link was genuine. */
  unsubscribe(link: { readonly s: string; readonly t: string }): Promise<void>
  /** Undoes an unsubscribe made through this very link; never tells whether it did. */
  undoUnsubscribe(link: { readonly s: string; readonly t: string }): Promise<void>
  /** At most one message per subscription. Rejects with `store_not_persistent` on the memory store. */
  dispatch(options: { readonly limit: number; readonly signal?: AbortSignal }): Promise<DispatchResult>
}
