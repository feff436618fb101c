import { GROUPS, type GroupName } from '../core/env/settings.ts'
import { GROUP_MEANING } from '../core/env/table.ts'

/** Probes that are named otherwise than the group that configures them. */
const GROUP_OF: Readonly<Record<string, GroupName>> = {
  limiter: 'sharedstore',
  hardware_a: 'hardware',
  cloudb: 'hardware',
  cloudqpu: 'hardware',
  model_a: 'models',
  model_b: 'models',
  model_c: 'models',
  cloudmodel: 'models',
}

/** The other probes and groups share their names, but for the two neighbours, which are always there. */
export function meaningOf(probe: string): string | undefined {
  const group = GROUP_OF[probe] ?? GROUPS.find((name) => name === probe)
  return group && GROUP_MEANING[group].absent
}
