import type { LiveFindingId } from '../env/explanations.ts'
import type { Service } from '../service.ts'

/**
 * The names of the targets: groups, services, and `sender` for the domain that mail comes from. The first
 * service is left out, because it is the one that asks the others.
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

/**
 * The result of one live check. `detail` is a predicate ("does not resolve") and holds no value, host or
 * address.
 */
export type StepOutcome =
  | { readonly state: 'passed' | 'skipped'; readonly detail: string }
  | { readonly state: 'warning' | 'failed'; readonly id: LiveFindingId; readonly detail: string }

export type LiveResult = StepOutcome & {
  readonly target: string
  readonly check: LiveCheck
  readonly services: readonly Service[]
  /** The variables that say what was checked. */
  readonly variables: readonly string[]
  /** The step's place. It may name a host, so it is left out of every report. */
  readonly place?: string
  /** Milliseconds; absent when nothing was tried. */
  readonly latencyMs?: number
}

export interface Step {
  readonly check: LiveCheck
  /**
   * Names what the step looks at. Other targets may look at the same, and their faults become one finding.
   * Never shown.
   */
  readonly place?: string
  readonly variables: readonly string[]
  /** Rejects with a NetworkFault when the other side cannot be asked. */
  readonly run: (signal: AbortSignal) => Promise<StepOutcome>
}

/**
 * One integration. In a `chain`, a step is tried only if those before it did not fail, so that one cause
 * gives one message. A `fan` runs the first step, then the others side by side.
 */
export interface Target {
  readonly name: string
  readonly services: readonly Service[]
  readonly variables: readonly string[]
  readonly order: 'chain' | 'fan'
  /** The steps, or the end of a sentence that says why there is nothing to check. */
  readonly steps: readonly Step[] | string
}
