import type { LiveFindingId } from '../env/explanations.ts'
import type { Service } from '../service.ts'

/**
 * What is looked at, under the names of the groups and services; `sender` is the domain that mail comes from. Of the
 * services all but the first, which asks the others.
 */
export function liveTargetNames(services: readonly Service[]): readonly string[] {
  return ['datastore', 'payments', 'sharedstore', 'mail', 'sender', ...services.slice(1), 'store', 'site']
}

export const LIVE_CHECKS = [
  'configuration',
  'name resolution',
  'domain',
  'reachability',
  'certificate',
  'health',
  'authorisation',
  'service role',
  'published keys',
  'SPF',
  'DKIM',
  'DMARC',
  'migrations',
] as const
export type LiveCheck = (typeof LIVE_CHECKS)[number]

/** `skipped` was not tried, and says why: it is never counted or shown as passed. */
export const LIVE_STATES = ['passed', 'warning', 'failed', 'skipped'] as const
export type LiveState = (typeof LIVE_STATES)[number]

/** What one look at the outside gave. `detail` is a predicate ("does not resolve") and holds no value, host or address. */
export type StepOutcome =
  | { readonly state: 'passed' | 'skipped'; readonly detail: string }
  | { readonly state: 'warning' | 'failed'; readonly id: LiveFindingId; readonly detail: string }

export type LiveResult = StepOutcome & {
  readonly target: string
  readonly check: LiveCheck
  readonly services: readonly Service[]
  /** The variables that say what was checked. */
  readonly variables: readonly string[]
  /** Of the step. It may name a host, so it is left out of every report. */
  readonly place?: string
  /** Milliseconds; absent when nothing was tried. */
  readonly latencyMs?: number
}

export interface Step {
  readonly check: LiveCheck
  /** Names what it looks at, where other targets may look at the same: their faults become one finding. Never shown. */
  readonly place?: string
  readonly variables: readonly string[]
  /** Rejects with a NetworkFault when the other side cannot be asked. */
  readonly run: (signal: AbortSignal) => Promise<StepOutcome>
}

/**
 * One integration. In a chain a step is tried only if those before it did not fail: one cause, one message. `fan` runs
 * the first step, then the others side by side.
 */
export interface Target {
  readonly name: string
  readonly services: readonly Service[]
  readonly variables: readonly string[]
  readonly order: 'chain' | 'fan'
  /** A sentence's end instead of steps: why there is nothing to check. */
  readonly steps: readonly Step[] | string
}
