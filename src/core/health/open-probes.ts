import type { ProbeDefinition, ProbeParts } from './definition.ts'
import type { Probe } from './probe.ts'

/** The probes of one service, ready to run. */
export function openProbes(
  definitions: readonly ProbeDefinition[],
  service: string,
  parts: ProbeParts,
): readonly Probe[] {
  return definitions.flatMap(({ open, name, deadlineMs, optional, service: of }) =>
    of === service
      ? {
          name,
          ...(deadlineMs === undefined ? {} : { deadlineMs }),
          ...(optional === undefined ? {} : { optional }),
          run: open(parts),
        }
      : [],
  )
}
