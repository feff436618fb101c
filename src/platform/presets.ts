import type { GroupDefinition } from '../core/env/definition.ts'
import type { ResolvedPlatform } from '../core/platform.ts'
import { baseGroups } from '../presets/base/groups.ts'
import { base } from '../presets/base/platform.ts'
import { learningGroups } from '../presets/learning/groups.ts'
import { learning } from '../presets/learning/platform.ts'
import type { PresetParts } from './check/names.ts'

export interface PresetSource {
  readonly platform: ResolvedPlatform
  readonly groups: Readonly<Record<string, GroupDefinition>>
}

/** The platforms that a definition can start from. */
export const PRESETS: Readonly<Record<'base' | 'learning', PresetSource>> = {
  base: { platform: base, groups: baseGroups },
  learning: { platform: learning, groups: learningGroups },
}

/** Parts of each preset that the checks need. */
export const PRESET_PARTS: Readonly<Record<string, PresetParts>> = Object.fromEntries(
  Object.entries(PRESETS).map(([name, { platform, groups }]) => [
    name,
    {
      groups,
      services: platform.services,
      probes: platform.probes,
      events: platform.events.map((event) => event.name),
      courses: platform.courses.map(({ id }) => id),
    },
  ]),
)
