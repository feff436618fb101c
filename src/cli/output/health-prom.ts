import { stateOf } from '../../core/health/diagnosis.ts'
import type { Verdict } from '../../core/health/verdict.ts'

type Sample = readonly [labels: Readonly<Record<string, string>>, value: number]

/** Prometheus text for a textfile collector: what was seen from here, apart from what each service says of itself. */
export function healthProm(verdict: Verdict, passed: boolean): string {
  const { results, diagnosis } = verdict
  const reached = results.flatMap((health) => (health.reached ? [health] : []))
  const probes = reached.flatMap(({ service, report }) =>
    Object.entries(report.probes).map(([probe, result]) => ({ service, probe, result })),
  )
  return [
    metric('passed', '1 if the whole check passed, 0 otherwise.', [[{}, passed ? 1 : 0]]),
    metric(
      'service_up',
      '1 if the service answered and is not failing, 0 otherwise.',
      results.map(({ service, ...health }) => [
        { service },
        health.reached && health.report.state !== 'failing' ? 1 : 0,
      ]),
    ),
    metric(
      'service_state',
      'The state of the service: ok, degraded, failing or unreached.',
      results.map((health) => [{ service: health.service, state: stateOf(health) }, 1]),
    ),
    metric(
      'unreached',
      'Why the service could not be asked.',
      results.flatMap((health): Sample[] =>
        health.reached ? [] : [[{ service: health.service, cause: health.cause }, 1]],
      ),
    ),
    metric(
      'phase_seconds',
      'How long each phase of the request took.',
      results.flatMap(({ service, phases }) =>
        Object.entries(phases).map(
          ([phase, ms]: [string, number]): Sample => [
            { service, phase: phase === 'firstByte' ? 'first_byte' : phase },
            // To the microsecond: a quotient of binary fractions has a tail of nines.
            Math.round(ms * 1000) / 1e6,
          ],
        ),
      ),
    ),
    metric(
      'certificate_end_timestamp_seconds',
      'When the certificate expires, in Unix time.',
      results.flatMap(({ service, certificate }): Sample[] =>
        certificate ? [[{ service }, Date.parse(certificate.validTo) / 1000]] : [],
      ),
    ),
    metric(
      'build_info',
      'The build that the service runs.',
      [...diagnosis.builds].map(([service, build]) => [{ service, build: build ?? '' }, 1]),
    ),
    metric('build_skew', 'Do the services run different builds.', [[{}, diagnosis.skew ? 1 : 0]]),
    metric(
      'probe_state',
      'The state of each probe of the service.',
      probes.map(({ service, probe, result }) => [{ service, probe, state: result.state }, 1]),
    ),
    metric(
      'probe_seconds',
      'How long the probe took, where it was live.',
      probes.flatMap(({ service, probe, result }): Sample[] =>
        result.latencyMs === undefined ? [] : [[{ service, probe }, result.latencyMs / 1000]],
      ),
    ),
  ].join('')
}

function metric(name: string, help: string, samples: readonly Sample[]): string {
  if (samples.length === 0) return ''
  const full = `platformctl_remote_${name}`
  const rows = samples.map(([labels, value]) => {
    const pairs = Object.entries(labels).map(([label, text]) => `${label}="${escapeLabel(text)}"`)
    return `${full}${pairs.length === 0 ? '' : `{${pairs.join(',')}}`} ${value}\n`
  })
  return `# HELP ${full} ${help}\n# TYPE ${full} gauge\n${rows.join('')}`
}

function escapeLabel(text: string): string {
  return text.replaceAll('\\', '\\\\').replaceAll('"', '\\"').replaceAll('\n', '\\n')
}
