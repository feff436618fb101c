import type { Log } from '../log.ts'
import { WEB } from '../service.ts'
import type { HealthReport } from './probe.ts'
import { type Health, LIFECYCLE } from './runner.ts'

/**
 * Logs each change of a service's state with the probes that are to blame, and a first state that is not ok: no
 * degradation is silent, and a poll a second does not fill the log. Deep and shallow health are followed apart.
 */
export function logChanges(health: Health, log: Log): Health {
  const before = { deep: 'ok', shallow: 'ok' }
  return {
    async check(options) {
      const report = await health.check(options)
      // A stopping daemon logs that by itself, and no probe is at fault.
      if (Object.hasOwn(report.probes, LIFECYCLE)) return report
      // Only web has two kinds of health.
      const depth = options.deep && report.service === WEB ? 'deep' : 'shallow'
      if (report.state !== before[depth]) announce(report, depth, before[depth], log)
      before[depth] = report.state
      return report
    },
  }
}

const WORDS = {
  ok: ['info', 'the service is well again'],
  degraded: ['warn', 'the service works with limits'],
  failing: ['error', 'the service is failing'],
} as const

function announce(report: HealthReport, depth: string, from: string, log: Log): void {
  const { service, state } = report
  const [level, sentence] = WORDS[state]
  const bad = Object.entries(report.probes).filter(([, probe]) => probe.state === state && state !== 'ok')
  log[level]('health_changed', sentence, {
    service,
    depth,
    from,
    to: state,
    ...(bad.length === 0
      ? {}
      : { probes: bad.map(([name, { reason }]) => `${name}: ${reason ?? state}`).join('; ') }),
  })
}
