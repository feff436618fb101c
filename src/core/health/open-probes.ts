import type { ProbeDefinition, ProbeParts } from './definition.ts'
import type { Probe, ProbeResult } from './probe.ts'

/** The probes of one service, ready to run. */
export function openProbes(
  definitions: readonly ProbeDefinition[],
  service: string,
  parts: ProbeParts,
): readonly Probe[] {
  return definitions.flatMap(({ open, optional = false, ...definition }) => {
    if (definition.service !== service) return []
    const check = open(parts)
    const { name, deadlineMs } = definition
    return {
      name,
      ...(deadlineMs === undefined ? {} : { deadlineMs }),
      run: optional ? async (context) => notRed(await check(context)) : check,
    } satisfies Probe
  })
}

function notRed(result: ProbeResult): ProbeResult {
  return result.state === 'failing' ? { ...result, state: 'degraded' } : result
}
