import { becauseOf, type RemoteState, stateOf } from '../../core/health/diagnosis.ts'
import type { Phases } from '../../core/health/get.ts'
import type { ProbeState } from '../../core/health/probe.ts'
import type { RemoteHealth } from '../../core/health/prober.ts'
import { conclusion, type Verdict } from '../../core/health/verdict.ts'
import type { Paint } from '../paint.ts'

export const SIGN: Readonly<Record<ProbeState | RemoteState, string>> = {
  ok: '●',
  degraded: '◐',
  failing: '✖',
  unreached: '✖',
  skipped: '○',
}

export const STYLE: Readonly<Record<ProbeState | RemoteState, keyof Paint>> = {
  ok: 'green',
  degraded: 'yellow',
  failing: 'red',
  unreached: 'red',
  skipped: 'dim',
}

/** Health for a person: a block for each service, a line for each probe, the root causes once, a verdict. */
export function healthText(verdict: Verdict, passed: boolean, paint: Paint): string {
  const { results, diagnosis } = verdict
  const blocks = results.map((health) => block(health, verdict, paint))
  const roots = diagnosis.rootCauses.map(({ services, probe, reason, cause, fix }) => {
    const where = `${services.join(', ')}${probe === undefined ? '' : `: ${probe}`}`
    const code = cause === undefined ? '' : paint.dim(` (${cause})`)
    return `root cause  ${paint.bold(where)}: ${reason}${code}${fix === undefined ? '' : `\n            ${fix}`}`
  })
  const last = passed
    ? paint.green(paint.bold(`✔ ${conclusion(verdict, passed)}`))
    : paint.red(paint.bold(`✖ ${conclusion(verdict, passed)}`))
  return `${[...blocks, ...(roots.length === 0 ? [] : [roots.join('\n')]), last].join('\n\n')}\n`
}

function block(health: RemoteHealth, { diagnosis }: Verdict, paint: Paint): string {
  const state = stateOf(health)
  const because = becauseOf(diagnosis, health.service)
  const head = `${paint[STYLE[state]](`${SIGN[state]} ${health.service.padEnd(6)}${state.padEnd(11)}`)}${because === undefined ? '' : `${because}  `}${health.reached ? `build ${health.report.build ?? 'unstamped'}  ` : ''}${paint.dim(health.url)}`
  const timing = paint.dim(
    `    ${[phasesText(health.phases), certificateText(health)].filter(Boolean).join(' · ')}`,
  )
  if (!health.reached) return `${head}\n${timing}`
  const entries = Object.entries(health.report.probes)
  const width = Math.max(...entries.map(([name]) => name.length)) + 2
  const probes = entries.map(([name, probe]) => {
    const how = probe.reason ?? (probe.checked ? 'checked' : 'configured; not checked live')
    const text = probe.latencyMs === undefined ? how : `${how}, ${probe.latencyMs} ms`
    return `    ${paint[STYLE[probe.state]](`${SIGN[probe.state]} ${name.padEnd(width)}${probe.state.padEnd(10)}`)}${paint.dim(text)}`
  })
  return [head, timing, ...probes].join('\n')
}

function phasesText({ total, dns, tcp, tls, firstByte }: Phases): string {
  const parts = [
    dns !== undefined && `dns ${dns}`,
    tcp !== undefined && `tcp ${tcp}`,
    tls !== undefined && `tls ${tls}`,
    firstByte !== undefined && `first byte ${firstByte}`,
  ].filter((part) => part !== false)
  return `${total} ms${parts.length === 0 ? '' : ` (${parts.join(', ')})`}`
}

function certificateText({ certificate }: RemoteHealth): string | undefined {
  return certificate && `certificate for ${certificate.daysLeft} more days`
}
