import type { ProbeState } from '../../core/health/probe.ts'
import type { RemoteHealth } from '../../core/health/prober.ts'
import type { Paint } from '../paint.ts'

const SIGN: Readonly<Record<ProbeState, string>> = { ok: '●', degraded: '◐', failing: '✖', skipped: '○' }

/** Health for a person: a block for each service, a line for each probe, a verdict. */
export function healthText(
  results: readonly RemoteHealth[],
  verdict: { readonly passed: boolean; readonly sentence: string },
  paint: Paint,
): string {
  const colour: Readonly<Record<ProbeState, (text: string) => string>> = {
    ok: paint.green,
    degraded: paint.yellow,
    failing: paint.red,
    skipped: paint.dim,
  }
  const blocks = results.map((result) => {
    const head = (state: ProbeState, word: string) =>
      `${colour[state](`${SIGN[state]} ${result.service.padEnd(6)}${word.padEnd(10)}`)}${paint.dim(`${result.latencyMs} ms  ${result.url}`)}`
    if (!result.reached)
      return `${head('failing', 'unreached')}\n    ${result.reason} ${paint.dim(`(${result.fault})`)}`
    const { report } = result
    const width = Math.max(...Object.keys(report.probes).map((name) => name.length)) + 2
    const probes = Object.entries(report.probes).map(([name, probe]) => {
      const how = probe.reason ?? (probe.checked ? 'checked' : 'configured; not checked live')
      return `    ${colour[probe.state](`${SIGN[probe.state]} ${name.padEnd(width)}${probe.state.padEnd(10)}`)}${paint.dim(probe.latencyMs === undefined ? how : `${how}, ${probe.latencyMs} ms`)}`
    })
    return [
      head(report.state, report.state) + paint.dim(`  build ${report.build ?? 'unstamped'}`),
      ...probes,
    ].join('\n')
  })
  const last = verdict.passed
    ? paint.green(paint.bold(`✔ ${verdict.sentence}`))
    : paint.red(paint.bold(`✖ ${verdict.sentence}`))
  return `${[...blocks, last].join('\n\n')}\n`
}
