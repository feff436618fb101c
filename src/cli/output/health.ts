import type { HealthReport, ProbeState } from '../../core/health/probe.ts'
import type { RemoteHealth } from '../../core/health/prober.ts'
import {
  becauseOf,
  conclusion,
  isRefused,
  reasonOf,
  stateOf,
  type Verdict,
} from '../../core/health/verdict.ts'
import type { Phases } from '../../core/network/get.ts'
import type { Paint } from '../context.ts'
import { beside, compact, iso, plural } from './text.ts'

type Shown = ProbeState | ReturnType<typeof shownState> | 'not checked'

export const LOOK: Readonly<Record<Shown, readonly [sign: string, style: keyof Paint]>> = {
  ok: ['●', 'green'],
  degraded: ['◐', 'yellow'],
  failing: ['✖', 'red'],
  unreached: ['✖', 'red'],
  refused: ['✖', 'red'],
  'token missing': ['✖', 'red'],
  skipped: ['○', 'dim'],
  'not checked': ['·', 'dim'],
}

/** The state of a service as a person reads it: a service that refused the token was reached. */
export function shownState(health: RemoteHealth) {
  if (!health.reached && health.cause === 'token_missing') return 'token missing'
  return isRefused(health) ? 'refused' : stateOf(health)
}

/** Health for a person: a block for each service, a line for each probe, the root causes once, a verdict. */
export function healthText(verdict: Verdict, passed: boolean, paint: Paint, columns: number): string {
  const { results, diagnosis, warnings } = verdict
  const blocks = results.map((health) => block(health, verdict, paint, columns))
  const roots = diagnosis.rootCauses.map(({ services, probe, reason, cause, fix }) => {
    const where = `${services.join(', ')}${probe === undefined ? '' : `: ${probe}`}`
    const code = cause === undefined ? '' : paint.dim(` (${cause})`)
    const said = beside('root cause  ', `${paint.bold(where)}: ${reason}${code}`, columns)
    return fix === undefined ? said : `${said}\n${beside(' '.repeat(12), fix, columns)}`
  })
  const isWell = warnings.length + roots.length === 0
  const [sign, style] = !passed ? LOOK.failing : isWell ? (['✔', 'green'] as const) : LOOK.degraded
  const colour = (text: string) => paint[style](paint.bold(text))
  const last = beside(colour(`${sign} `), colour(conclusion(verdict, passed)), columns)
  return `${[...blocks, ...(roots.length === 0 ? [] : [roots.join('\n')]), last].join('\n\n')}\n`
}

/** The name of a service, as wide as the longest, and the space behind it. */
export const nameCell = ({ service }: RemoteHealth, { results }: Verdict) =>
  service.padEnd(Math.max(6, ...results.map(({ service: other }) => other.length + 1)))

function block(health: RemoteHealth, verdict: Verdict, paint: Paint, columns: number): string {
  const state = shownState(health)
  const [sign, style] = LOOK[state]
  const because = becauseOf(verdict.diagnosis, health.service)
  const words = compact(
    because,
    health.reached &&
      !(health.foreign && health.report.build === null) &&
      `build ${health.report.build ?? 'unstamped'}`,
    paint.dim(health.url),
  ).join('  ')
  const { daysLeft } = health.certificate ?? {}
  const certificate =
    daysLeft !== undefined && daysLeft < 0 ? 'expired' : `valid for ${plural(daysLeft ?? 0, 'more day')}`
  const timing = compact(phasesText(health.phases), daysLeft !== undefined && `certificate ${certificate}`)
  return [
    beside(paint[style](`${sign} ${nameCell(health, verdict)}${state.padEnd(10)} `), words, columns),
    paint.dim(beside('    ', timing.join(' · '), columns)),
    ...(health.reached ? probeLines(health.report, verdict, paint, columns) : []),
  ].join('\n')
}

/** A line for each probe that ran or is read from the configuration; those that were skipped share one, last. */
function probeLines({ probes }: HealthReport, { diagnosis }: Verdict, paint: Paint, columns: number) {
  const entries = Object.entries(probes)
  const width = Math.max('skipped'.length, ...entries.map(([name]) => name.length)) + 2
  const line = (state: Shown, name: string, rest: string, text: string) => {
    const [sign, style] = LOOK[state]
    return beside(`    ${paint[style](`${sign} ${name.padEnd(width)}${rest}`)}`, paint.dim(text), columns)
  }
  const ran = entries.flatMap(([name, probe]) => {
    if (probe.state === 'skipped') return []
    const state = probe.state === 'ok' && !probe.checked ? 'not checked' : probe.state
    const how = reasonOf(diagnosis, probe, probe.checked ? 'checked' : 'configured')
    const text = probe.latencyMs === undefined ? how : `${how}, ${probe.latencyMs} ms`
    return [line(state, name, state.padEnd(13), text)]
  })
  const reasons = Map.groupBy(
    entries.filter(([, { state }]) => state === 'skipped'),
    ([, { reason }]) => reason ?? 'not configured',
  )
  const skipped = [...reasons].map(([reason, group]) =>
    line('skipped', 'skipped', '', `${reason}: ${group.map(([name]) => name).join(', ')}`),
  )
  return [...ran, ...skipped]
}

function phasesText({ total, dns, tcp, tls, firstByte }: Phases): string {
  const phases = Object.entries({ dns, tcp, tls, 'first byte': firstByte })
  const parts = phases.flatMap(([name, ms]) => (ms === undefined ? [] : [`${name} ${ms}`]))
  return `${total} ms${parts.length === 0 ? '' : ` (${parts.join(', ')})`}`
}

/** `platformctl health --format json`, version 1: phases in milliseconds, times in ISO 8601 (UTC). */
export function healthJson(verdict: Verdict, passed: boolean, now: number): Record<string, unknown> {
  const { results, diagnosis, outcome, sentence, warnings } = verdict
  const { rootCauses, followers, builds, skew } = diagnosis
  const services = results.map((health) => ({
    state: stateOf(health),
    because: followers.get(health.service) ?? [],
    ...health,
  }))
  return {
    version: 1,
    passed,
    outcome,
    sentence,
    time: iso(now),
    services,
    rootCauses,
    builds: Object.fromEntries(builds),
    skew,
    warnings,
  }
}

type Sample = readonly [labels: Readonly<Record<string, string>>, value: number]

/** Prometheus text for a textfile collector: what was seen from here, apart from what each service says of itself. */
export function healthProm({ results, diagnosis }: Verdict, passed: boolean): string {
  const reached = results.filter((health) => health.reached)
  const probes = reached.flatMap(({ service, report }) =>
    Object.entries(report.probes).map(([probe, result]) => ({ labels: { service, probe }, result })),
  )
  const ups = results.map((health): Sample => {
    const isUp = health.reached && health.report.state !== 'failing'
    return [{ service: health.service }, isUp ? 1 : 0]
  })
  const states = results.map((health): Sample => [{ service: health.service, state: stateOf(health) }, 1])
  const causes = results.flatMap((health): Sample[] =>
    health.reached ? [] : [[{ service: health.service, cause: health.cause }, 1]],
  )
  const phases = results.flatMap(({ service, phases }) =>
    Object.entries(phases).map(([name, ms]: [string, number]): Sample => {
      const phase = name === 'firstByte' ? 'first_byte' : name
      // To the microsecond: a quotient of binary fractions has a tail of nines.
      return [{ service, phase }, Math.round(ms * 1000) / 1e6]
    }),
  )
  const ends = results.flatMap(({ service, certificate }): Sample[] =>
    certificate ? [[{ service }, Date.parse(certificate.validTo) / 1000]] : [],
  )
  const builds = [...diagnosis.builds].map(([service, build]): Sample => [{ service, build: build ?? '' }, 1])
  const probed = probes.map(({ labels, result }): Sample => [{ ...labels, state: result.state }, 1])
  const took = probes.flatMap(({ labels, result: { latencyMs } }): Sample[] =>
    latencyMs === undefined ? [] : [[labels, latencyMs / 1000]],
  )
  return [
    metric('passed', '1 if the whole check passed, 0 otherwise.', [[{}, passed ? 1 : 0]]),
    metric('service_up', '1 if the service answered and is not failing, 0 otherwise.', ups),
    metric('service_state', 'The state of the service: ok, degraded, failing or unreached.', states),
    metric('unreached', 'Why the service could not be asked.', causes),
    metric('phase_seconds', 'How long each phase of the request took.', phases),
    metric('certificate_end_timestamp_seconds', 'When the certificate expires, in Unix time.', ends),
    metric('build_info', 'The build that the service runs.', builds),
    metric('build_skew', 'Do the services run different builds.', [[{}, diagnosis.skew ? 1 : 0]]),
    metric('probe_state', 'The state of each probe of the service.', probed),
    metric('probe_seconds', 'How long the probe took, where it was live.', took),
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

const escapeLabel = (text: string) =>
  text.replaceAll('\\', '\\\\').replaceAll('"', '\\"').replaceAll('\n', '\\n')
