import type { Service } from '../service.ts'

/** `skipped` counts as ok and is never red (CONTRACT §3). */
export type ProbeState = 'ok' | 'degraded' | 'failing' | 'skipped'

export interface ProbeResult {
  readonly state: ProbeState
  /** False: nothing live was tried (provider readiness, configuration only). */
  readonly checked: boolean
  /** Free of hosts, addresses, credentials and internal error texts: it is shown to the public. */
  readonly reason?: string
  readonly latencyMs?: number
}

export interface ProbeContext {
  /** Reachability too, not configuration alone. */
  readonly deep: boolean
  /** Aborted at the probe's own limit or the request's deadline, whichever comes first. */
  readonly signal: AbortSignal
}

/** One thing a service depends on. `run` may reject: the runner turns that into `failing`. */
export interface Probe {
  readonly name: string
  /** The longest it may take; never more than half the deadline of the whole answer, which is also the default. */
  readonly deadlineMs?: number
  /** Never red: degraded where it would be failing, also when it rejects or is late. */
  readonly optional?: boolean
  readonly run: (context: ProbeContext) => Promise<ProbeResult>
}

/** The health body (CONTRACT §3). `build` is null without a build stamp; times are ISO 8601 in UTC. */
export interface HealthReport {
  readonly service: Service
  readonly state: Exclude<ProbeState, 'skipped'>
  readonly build: string | null
  readonly startedAt: string
  readonly time: string
  readonly latencyMs: number
  readonly probes: Readonly<Record<string, ProbeResult>>
}
