import type { HealthReport, ProbeState } from './probe.ts'

const STATUS: Readonly<Record<ProbeState, 'pass' | 'warn' | 'fail'>> = {
  ok: 'pass',
  skipped: 'pass',
  degraded: 'warn',
  failing: 'fail',
}

/** The same facts as `application/health+json` (draft-inadarei-api-health-check-06). */
export function toHealthJson(report: HealthReport): Record<string, unknown> {
  return {
    status: STATUS[report.state],
    ...(report.build === null ? {} : { releaseId: report.build }),
    serviceId: report.service,
    checks: Object.fromEntries(
      Object.entries(report.probes).map(([name, probe]) => [
        name,
        [
          {
            status: STATUS[probe.state],
            time: report.time,
            ...(probe.latencyMs === undefined ? {} : { observedValue: probe.latencyMs, observedUnit: 'ms' }),
            ...(probe.reason === undefined ? {} : { output: probe.reason }),
          },
        ],
      ]),
    ),
  }
}
