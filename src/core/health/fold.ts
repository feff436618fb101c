import type { HealthReport, ProbeResult, ProbeState } from './probe.ts'

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
