/** `quota` requests of one client in `windowSeconds`, all at once or spread. */
export interface Policy {
  /** As the RateLimit fields name it: letters and hyphens. */
  readonly name: string
  readonly quota: number
  readonly windowSeconds: number
}

const MINUTE = 60
const DAY = 24 * 3600
/** One client may request a tenth of a day's confirmations, or ten of a small budget. */
const CLIENTS_TO_EXHAUST = 10
const LEAST_SHARE = 10
/**
 * For routes that mail providers call, from a few addresses and for all subscribers: a report of each message of a
 * dispatch, a one-click unsubscription of each reader who wants no more.
 */
const PROVIDER_PER_MINUTE = 6000

/**
 * The policies for a configured threshold (RATE_LIMIT_PER_MINUTE), above which the stricter ones of a minute never
 * rise, and a configured budget (EMAIL_CONFIRMATIONS_PER_DAY), of which one client gets a share.
 */
export function policiesOf(perMinute = 300, confirmationsPerDay = 10_000) {
  const policy = (name: string, quota: number): Policy => ({
    name,
    quota: Math.min(quota, perMinute),
    windowSeconds: MINUTE,
  })
  const provider = (name: string): Policy => ({ name, quota: PROVIDER_PER_MINUTE, windowSeconds: MINUTE })
  const share = Math.max(LEAST_SHARE, Math.ceil(confirmationsPerDay / CLIENTS_TO_EXHAUST))
  return {
    default: policy('default', perMinute),
    subscribe: policy('subscribe', 30),
    confirmations: { name: 'confirmations', quota: share, windowSeconds: DAY },
    unsubscribe: provider('unsubscribe'),
    feedback: provider('feedback'),
    /** Wrong secrets and tokens, always counted in this process. */
    authFailure: policy('auth-failure', 20),
    /** The same, for all clients together behind a proxy that TRUST_PROXY does not name. */
    authFailureOfProxy: policy('auth-failure-proxy', 200),
  } as const satisfies Record<string, Policy>
}

export type Policies = ReturnType<typeof policiesOf>
export type PolicyName = keyof Policies
