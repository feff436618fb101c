import type { baseGroups } from '../core/env/groups.ts'
import type { learningGroups } from '../presets/learning/groups.ts'
import type {
  DefinedPlatform,
  GroupInput,
  PlatformDefinition,
  ProbeInput,
  Resolve,
  ServiceInput,
  TemplateInput,
  VariableInput,
} from './definition.ts'

type Groups<Definition> = Definition extends { readonly groups: infer Found } ? Found : Record<never, never>
type Services<Definition> = Definition extends { readonly services: infer Found }
  ? keyof Found & string
  : PresetService<Preset<Definition>>
export type Preset<Definition> = Definition extends { readonly preset: infer Name extends string }
  ? Name
  : 'learning'

/** Names of every variable: the definition's own and its preset's. */
export type VariableName<Definition> = OwnVariable<Groups<Definition>> | PresetVariable<Preset<Definition>>

type OwnVariable<Found> = {
  [Group in keyof Found]: Found[Group] extends { readonly variables: infer Variables }
    ? keyof Variables & string
    : never
}[keyof Found]

type GroupName<Definition> = (keyof Groups<Definition> & string) | PresetGroup<Preset<Definition>>

/** The same rule, with declared names only. */
type CheckedRule<Name extends string> =
  | { readonly allOrNone: readonly Name[] }
  | { readonly requires: readonly Name[]; readonly when: readonly Name[] }
  | { readonly atLeastOne: readonly Name[]; readonly when: readonly Name[] }
  | { readonly exclusive: readonly Name[] }
  | { readonly forbidden: Name }

/** What a definition has to be: its shape, with declared names only. */
type Sound<Definition> = Omit<PlatformDefinition, keyof Checked<Definition>> & Checked<Definition>

/** The constraint that the shape alone cannot express: a definition may use only declared names. */
interface Checked<Definition> {
  readonly without?: readonly PresetGroup<Preset<Definition>>[]
  readonly services?: { readonly [Name in keyof ServicesOf<Definition>]: CheckedService<Definition> }
  readonly groups?: { readonly [Name in keyof Groups<Definition>]: CheckedGroup<Definition> }
  readonly probes?: { readonly [Name in keyof Probes<Definition>]: CheckedProbe<Definition> }
  readonly templates?: {
    readonly [Name in keyof Templates<Definition>]: CheckedTemplate<Templates<Definition>[Name]>
  }
}

type ServicesOf<Definition> = Definition extends { readonly services: infer Found } ? Found : unknown
type Probes<Definition> = Definition extends { readonly probes: infer Found } ? Found : unknown
type Templates<Definition> = Definition extends { readonly templates: infer Found } ? Found : unknown

type CheckedService<Definition> = Omit<ServiceInput, 'address'> & {
  readonly address?: VariableName<Definition> | readonly VariableName<Definition>[]
}
type CheckedGroup<Definition> = Omit<GroupInput, 'services' | 'required' | 'variables' | 'rules'> & {
  readonly variables: Readonly<Record<string, CheckedVariable<Definition>>>
  readonly required?: CheckedRequirement<Definition>
  readonly services?: readonly Services<Definition>[] | 'all'
  readonly rules?: readonly CheckedRule<VariableName<Definition>>[]
}
type CheckedVariable<Definition> = Omit<VariableInput, 'services' | 'required'> & {
  readonly services?: readonly Services<Definition>[] | 'all'
  readonly required?: CheckedRequirement<Definition>
}
type CheckedRequirement<Definition> =
  | true
  | 'production'
  | { readonly when: VariableName<Definition> | GroupName<Definition> }
type CheckedProbe<Definition> = Omit<ProbeInput, 'service' | 'group'> & {
  readonly service: Services<Definition>
  readonly group?: GroupName<Definition>
}
type CheckedTemplate<Template> = Omit<TemplateInput, 'resolve'> & {
  readonly resolve?: Resolve<Filled<Template>>
}
type Filled<Template> = Template extends { readonly slots: infer Slots }
  ? { readonly [Name in keyof Slots]: string }
  : Record<never, never>

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

/**
 * Gives the definition back, typed: a field that does not exist, or a name that is not declared in it (of a variable in a
 * rule, of a service, of a group, of a slot), is a compile error at that place, and all other types stay. Nothing is
 * checked when it runs; whatever loads the definition checks it.
 */
export function definePlatform<const Definition>(
  // The condition never holds: it lets the type be inferred from the value, and the value be held to what is sound.
  definition: [Definition] extends [never] ? Definition : Sound<Definition>,
): Definition & DefinedPlatform {
  // What is sound is what was given.
  return definition as Definition & DefinedPlatform
}
