import type { Kind, SecretKind, ValueOfKind } from '../core/env/kinds.ts'
import type { Secret } from '../core/secret.ts'
import type { Preset, PresetGroups } from './checked.ts'
import type { DefinedPlatform } from './definition.ts'

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

type Fields<Group, Name extends string> = Group extends { readonly [Field in Name]: infer Found }
  ? Found
  : never
type Variables<Group> = Fields<Group, 'variables'>
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

type IsSure<Group, Name extends keyof Variables<Group>> =
  Name extends Guaranteed<Group>
    ? true
    : Variables<Group>[Name] extends { readonly default: unknown }
      ? true
      : false

type GroupEnvironment<Group> = {
  readonly [Name in keyof Variables<Group>]: IsSure<Group, Name> extends true
    ? ValueOf<Variables<Group>[Name]>
    : ValueOf<Variables<Group>[Name]> | undefined
}

type Own<Definition> = Definition extends { readonly groups: infer Groups } ? Groups : Record<never, never>
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
      readonly [Name in keyof Own<Definition>]: Optional<Own<Definition>[Name]>
    }
