import type { RuleDefinition } from '../core/env/definition.ts'
import type { baseGroups } from '../core/env/groups.ts'
import type { Kind, SecretKind, ValueOfKind } from '../core/env/kinds.ts'
import type { Secret } from '../core/secret.ts'
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

/** The field of a type; `Else` where it has none. */
type Field<Of, Name extends string, Else = never> = Of extends { readonly [Field in Name]: infer Found }
  ? Found
  : Else

type Groups<Definition> = Field<Definition, 'groups', Record<never, never>>
type Services<Definition> = Definition extends { readonly services: infer Found }
  ? keyof Found & string
  : PresetService<Preset<Definition>>
type Preset<Definition> = Definition extends { readonly preset: infer Name extends string }
  ? Name
  : 'learning'

/** Names of every variable: the definition's own and its preset's. */
type VariableName<Definition> = NamesIn<Groups<Definition>> | NamesIn<PresetGroups<Preset<Definition>>>

type NamesIn<Groups> = { [Name in keyof Groups]: keyof Variables<Groups[Name]> & string }[keyof Groups]

type GroupName<Definition> = (keyof Groups<Definition> & string) | PresetGroup<Preset<Definition>>

type CheckedRule<Name extends string, Rule = RuleDefinition> = Rule extends unknown
  ? { readonly [Field in keyof Rule as Exclude<Field, 'where'>]: CheckedNames<Rule[Field], Field, Name> }
  : never
type CheckedNames<Value, Field, Name> = Value extends readonly string[]
  ? readonly Name[]
  : Field extends 'forbidden'
    ? Name
    : Value

/** What a definition has to be: its shape, with declared names only. */
type Sound<Definition> = Omit<PlatformDefinition, keyof Checked<Definition>> & Checked<Definition>

/** The constraint that the shape alone cannot express: a definition may use only declared names. */
interface Checked<Definition> {
  readonly without?: readonly PresetGroup<Preset<Definition>>[]
  readonly services?: {
    readonly [Name in keyof Field<Definition, 'services', unknown>]: CheckedService<Definition>
  }
  readonly groups?: { readonly [Name in keyof Groups<Definition>]: CheckedGroup<Definition> }
  readonly probes?: {
    readonly [Name in keyof Field<Definition, 'probes', unknown>]: CheckedProbe<Definition>
  }
  readonly templates?: {
    readonly [Name in keyof Templates<Definition>]: CheckedTemplate<Templates<Definition>[Name]>
  }
}

type Templates<Definition> = Field<Definition, 'templates', unknown>

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
  readonly resolve?: Resolve<{
    readonly [Name in keyof Field<Template, 'slots', Record<never, never>>]: string
  }>
}

type PresetGroups<Preset> = Preset extends 'base' ? typeof baseGroups : typeof learningGroups
export type PresetGroup<Preset> = keyof PresetGroups<Preset> & string
type PresetService<Preset> = Preset extends 'base' ? 'web' : 'web' | 'api' | 'agent'

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

type ValueOf<Variable> = Variable extends { readonly kind: SecretKind } | { readonly secret: true }
  ? Secret
  : Variable extends { readonly schema: infer Schema }
    ? OutputOf<Schema>
    : Variable extends { readonly kind: 'enum'; readonly of: readonly (infer Value)[] }
      ? Value
      : Variable extends { readonly kind: infer Name extends Kind }
        ? ValueOfKind<Name>
        : Variable extends { readonly kind: unknown }
          ? // biome-ignore lint/suspicious/noExplicitAny: the kind is a compile error, and a second one here would hide it.
            any
          : string

type OutputOf<Schema> = Schema extends {
  readonly '~standard': { readonly types?: { readonly output: infer Output } | undefined }
}
  ? Output
  : unknown

type Variables<Group> = Field<Group, 'variables'>
type Rules<Group> = Group extends { readonly rules: readonly (infer Rule)[] } ? Rule : never

/** Variables of which the field is as given. */
type Where<Found, Field> = { [Name in keyof Found]: Found[Name] extends Field ? Name : never }[keyof Found]

/** Variables without a default that switch their group on when set alone. */
type Switching<Found> = Exclude<
  keyof Found,
  Where<Found, { readonly adjusts: true } | { readonly default: unknown; readonly adjusts?: never }>
>

type Required<Group> = Where<Variables<Group>, { readonly required: true }>

/** Variables that one rule guarantees while all of `Known` are present. */
type Implied<Rule, Known> = Rule extends { readonly allOrNone: readonly (infer Name)[] }
  ? [Extract<Name, Known>] extends [never]
    ? never
    : Name
  : Rule extends { readonly where: unknown }
    ? never
    : Rule extends { readonly requires: readonly (infer Name)[]; readonly when: readonly (infer When)[] }
      ? Rule extends { readonly match: 'all' }
        ? [When] extends [Known]
          ? Name
          : never
        : [Extract<When, Known>] extends [never]
          ? never
          : Name
      : never

type Closure<Rule, Known> = [Implied<Rule, Known>] extends [Known]
  ? Known
  : Closure<Rule, Known | Implied<Rule, Known>>

/** Names that are present whichever variable has switched the group on. */
type Guaranteed<Group> = Group extends { readonly always: true }
  ? Closure<Rules<Group>, Required<Group>>
  : [Switching<Variables<Group>>] extends [never]
    ? Required<Group>
    : {
        [Name in keyof Variables<Group>]: {
          [First in Switching<Variables<Group>>]: Name extends Closure<Rules<Group>, First | Required<Group>>
            ? never
            : First
        }[Switching<Variables<Group>>] extends never
          ? Name
          : never
      }[keyof Variables<Group>]

type GroupEnvironment<Group> = {
  readonly [Name in keyof Variables<Group>]:
    | ValueOf<Variables<Group>[Name]>
    | (Name extends Guaranteed<Group> | Where<Variables<Group>, { readonly default: unknown }>
        ? never
        : undefined)
}

type Without<Definition> = Definition extends { readonly without: readonly (infer Name)[] } ? Name : never
type Kept<Definition> = Omit<PresetGroups<Preset<Definition>>, Without<Definition> & string>

type Optional<Group> = GroupEnvironment<Group> | (Group extends { readonly always: true } ? never : undefined)

/** The environment of a platform: a group is undefined unless it is configured, or always on. */
export type PlatformEnvironment<Definition> = [keyof Definition, keyof DefinedPlatform] extends [
  keyof DefinedPlatform,
  keyof Definition,
]
  ? // Nothing could be inferred beside the fault.
    // biome-ignore lint/suspicious/noExplicitAny: the fault is a compile error, and a second one here would hide it.
    any
  : {
      readonly [Name in keyof Kept<Definition>]: GroupEnvironment<Kept<Definition>[Name]> | undefined
    } & {
      readonly [Name in keyof Groups<Definition>]: Optional<Groups<Definition>[Name]>
    }
