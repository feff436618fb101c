import type { HealthReport, ProbeState } from './probe.ts'

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
