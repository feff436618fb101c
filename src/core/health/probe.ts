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

const STATUS: Readonly<Record<ProbeState, 'pass' | 'warn' | 'fail'>> = {
  ok: 'pass',
  skipped: 'pass',
  degraded: 'warn',
  failing: 'fail',
}

/**
 * The report as `application/health+json` (draft-inadarei-api-health-check-06). `output` is only for warn and
 * fail (§3.5); facts that the draft has no name for keep ours (§4.11, additional keys).
 */
export function toHealthJson(report: HealthReport): Record<string, unknown> {
  const checks = Object.entries(report.probes).map(([name, probe]) => {
    const status = STATUS[probe.state]
    const check = {
      componentId: name,
      componentType: 'component',
      status,
      state: probe.state,
      checked: probe.checked,
      time: report.time,
      ...(probe.latencyMs === undefined ? {} : { observedValue: probe.latencyMs, observedUnit: 'ms' }),
      ...(probe.reason === undefined ? {} : { [status === 'pass' ? 'reason' : 'output']: probe.reason }),
    }
    return [name, [check]]
  })
  return {
    status: STATUS[report.state],
    ...(report.build === null ? {} : { releaseId: report.build }),
    serviceId: report.service,
    description: `health of ${report.service}`,
    startedAt: report.startedAt,
    time: report.time,
    latencyMs: report.latencyMs,
    checks: Object.fromEntries(checks),
  }
}

/** The four results of a probe. `reason` is shown to the public: no host, no address, no internal text. */
export const ok = (checked: boolean): ProbeResult => ({ state: 'ok', checked })
export const skipped = (reason: string): ProbeResult => ({ state: 'skipped', checked: false, reason })
export const degraded = (reason: string, checked = false): ProbeResult => ({
  state: 'degraded',
  checked,
  reason,
})
export const failing = (reason: string): ProbeResult => ({ state: 'failing', checked: true, reason })

const RANK: Readonly<Record<ProbeState, number>> = { skipped: 0, ok: 0, degraded: 1, failing: 2 }

/** A service is the worst of its probes; skipped counts as ok (CONTRACT §3). */
export function fold(probes: Iterable<ProbeResult>): HealthReport['state'] {
  let worst = 0
  for (const { state } of probes) worst = Math.max(worst, RANK[state])
  return worst === 2 ? 'failing' : worst === 1 ? 'degraded' : 'ok'
}

/** 503 when failing, else 200: a degraded service still serves. */
export function httpStatus(state: HealthReport['state']): 200 | 503 {
  return state === 'failing' ? 503 : 200
}
