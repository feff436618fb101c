import type { baseGroups } from '../presets/base/groups.ts'
import type { learningGroups } from '../presets/learning/groups.ts'

/** The groups of a preset, by its name. */
export type PresetGroups<Preset> = Preset extends 'base' ? typeof baseGroups : typeof learningGroups

export type PresetGroup<Preset> = keyof PresetGroups<Preset> & string

/** Names of the variables of a preset. */
export type PresetVariable<Preset> = NamesIn<PresetGroups<Preset>>

type NamesIn<Groups> = {
  [Name in keyof Groups]: Groups[Name] extends { readonly variables: infer Variables }
    ? keyof Variables & string
    : never
}[keyof Groups]

/** Names of the services of a preset. */
export type PresetService<Preset> = Preset extends 'base' ? 'web' : 'web' | 'api' | 'agent'
