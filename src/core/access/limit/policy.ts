import type { RouteName } from '../../routes.ts'

/** `quota` requests of one client in `windowSeconds`, all at once or spread. */
export interface Policy {
  /** As the RateLimit fields name it: letters and hyphens. */
  readonly name: string
  readonly quota: number
  readonly windowSeconds: number
}

/** Health must answer while everything else is refused. */
export type PolicyName = 'default' | 'subscribe' | 'unsubscribe' | 'feedback' | 'unlimited'

/** The limit of each route; a route that is not named has the default one. */
const ROUTE_POLICY: Readonly<Partial<Record<RouteName, PolicyName>>> = {
  webHealth: 'unlimited',
  serviceHealth: 'unlimited',
  metrics: 'unlimited',
  subscribe: 'subscribe',
  unsubscribe: 'unsubscribe',
  feedback: 'feedback',
}

const MINUTE = 60
const DAY = 24 * 3600
/** One client may request a tenth of a day's confirmations, or ten of a small budget. */
const CLIENTS_TO_EXHAUST = 10
const LEAST_SHARE = 10
const DEFAULT_PER_MINUTE = 300
/**
 * For routes that mail providers call, from a few addresses and for all subscribers: a report of each message of a
 * dispatch, a one-click unsubscription of each reader who wants no more.
 */
const PROVIDER_PER_MINUTE = 6000

/** The policies for a configured threshold (RATE_LIMIT_PER_MINUTE); the stricter ones of a minute never rise above it. */
export function policiesOf(
  perMinute: number | undefined,
  /** EMAIL_CONFIRMATIONS_PER_DAY. */
  confirmationsPerDay = 10_000,
): {
  readonly policyOf: (route: RouteName) => Policy | undefined
  /** A client's share of a budget of all clients. */
  readonly shareOf: (route: RouteName) => Policy | undefined
  /** Wrong secrets and tokens, always counted in this process. */
  readonly authFailure: Policy
  /** The same, for all clients together behind a proxy that TRUST_PROXY does not name. */
  readonly authFailureOfProxy: Policy
} {
  const most = perMinute ?? DEFAULT_PER_MINUTE
  const policy = (name: string, quota: number): Policy => ({
    name,
    quota: Math.min(quota, most),
    windowSeconds: MINUTE,
  })
  const provider = (name: string): Policy => ({
    name,
    quota: PROVIDER_PER_MINUTE,
    windowSeconds: MINUTE,
  })
  const policies: Readonly<Record<PolicyName, Policy | undefined>> = {
    default: policy('default', most),
    subscribe: policy('subscribe', 30),
    unsubscribe: provider('unsubscribe'),
    feedback: provider('feedback'),
    unlimited: undefined,
  }
  const confirmations: Policy = {
    name: 'confirmations',
    quota: Math.max(LEAST_SHARE, Math.ceil(confirmationsPerDay / CLIENTS_TO_EXHAUST)),
    windowSeconds: DAY,
  }
  return {
    shareOf: (route) => (route === 'subscribe' ? confirmations : undefined),
    policyOf: (route) => policies[ROUTE_POLICY[route] ?? 'default'],
    authFailure: policy('auth-failure', 20),
    authFailureOfProxy: policy('auth-failure-proxy', 200),
  }
}
