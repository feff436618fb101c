import type { GroupDefinition, Readers, Requirement, VariableDefinition } from './definition.ts'
import { KINDS, type KindOfValue, type Reading } from './kinds.ts'
import { type Rule, requiredRule, resolveRule } from './rule.ts'

/** A variable with everything that its definition left out filled in. */
export interface Variable extends Reading {
  readonly name: string
  readonly group: string
  readonly services: readonly string[]
  /** Never shown; a placeholder or a guessable value is warned of. */
  readonly secret: boolean
  readonly chosen: boolean
  readonly adjusts: boolean
  readonly rotates: boolean
  readonly perReplica: boolean
  readonly bearer: boolean
  readonly base: boolean
  readonly summary: string
  readonly example: string
  /** When its absence is an error. */
  readonly required?: Requirement
  readonly malformed: 'warn' | 'error'
  readonly default?: string
  readonly prefixes?: { readonly live: readonly string[]; readonly test: readonly string[] }
}

export interface Group {
  readonly name: string
  readonly unlocks: string
  readonly absent: string
  readonly visitors?: string
  readonly required?: Requirement
  /** On, whatever is set. */
  readonly always: boolean
  readonly variables: readonly Variable[]
  readonly rules: readonly Rule[]
}

/**
 * All variables that an environment may hold, and the rules between them. Everything about environments is derived from
 * this value.
 */
export interface Contract {
  /** In the order in which they are always shown. */
  readonly services: readonly string[]
  readonly groups: readonly Group[]
  readonly variables: readonly Variable[]
  readonly rules: readonly Rule[]
  readonly find: (name: string) => Variable | undefined
  readonly group: (name: string) => Group | undefined
}

interface ContractInput {
  readonly services: readonly string[]
  readonly groups: Readonly<Record<string, GroupDefinition>>
}

/**
 * Makes the contract of a platform from its groups when it is first read: a program that loads a definition
 * also gets the contracts of the presets, and never reads those. The definition is trusted here, because
 * `src/platform` has checked it.
 */
export function createContract(definition: ContractInput): Contract {
  let made: Contract | undefined
  const contract = () => {
    made ??= makeContract(definition)
    return made
  }
  return {
    services: definition.services,
    get groups() {
      return contract().groups
    },
    get variables() {
      return contract().variables
    },
    get rules() {
      return contract().rules
    },
    find: (name) => contract().find(name),
    group: (name) => contract().group(name),
  }
}

function makeContract({ services, groups: definitions }: ContractInput): Contract {
  const groups = Object.entries(definitions).map(([name, group]): Group => {
    const ids = new Map<string, number>()
    return {
      name,
      unlocks: group.unlocks,
      absent: group.absent,
      ...(group.visitors !== undefined && { visitors: group.visitors }),
      ...(group.required !== undefined && { required: group.required }),
      always: group.always ?? false,
      variables: Object.entries(group.variables).map(([variable, of]) =>
        resolveVariable(variable, { group: name, readers: group.services, services, of }),
      ),
      rules: (group.rules ?? []).map((rule) => resolveRule(rule, name, ids)),
    }
  })
  const variables = groups.flatMap((group) => group.variables)
  const byName = new Map(variables.map((variable) => [variable.name, variable]))
  const byGroup = new Map(groups.map((group) => [group.name, group]))
  const switches = (name: string) => {
    const group = byName.has(name) ? undefined : byGroup.get(name)
    return group === undefined ? [name] : group.always ? undefined : switchesOf(group)
  }
  const required = groups.flatMap((group) => [
    ...(group.required === undefined
      ? []
      : [
          requiredRule(
            group.required,
            { group: group.name, what: `The group ${group.name}`, variables: switchesOf(group) },
            switches,
          ),
        ]),
    ...group.variables.flatMap(({ name, required: when }) =>
      when === undefined
        ? []
        : [requiredRule(when, { group: group.name, what: name, variables: [name] }, switches)],
    ),
  ])
  const rules = [...required, ...groups.flatMap((group) => group.rules)]
  return {
    services,
    groups,
    variables,
    // Report what is missing before what is wrong with a value.
    rules: [
      ...rules.filter(({ kind }) => kind !== 'forbidden-value'),
      ...rules.filter(({ kind }) => kind === 'forbidden-value'),
    ],
    find: (name) => byName.get(name),
    group: (name) => byGroup.get(name),
  }
}

function resolveVariable(
  name: string,
  from: {
    readonly group: string
    readonly readers: Readers
    readonly services: readonly string[]
    readonly of: VariableDefinition
  },
): Variable {
  const { default: unset, pattern, services: own, ...rest } = from.of
  const readers = own ?? from.readers
  return {
    ...rest,
    name,
    group: from.group,
    services:
      readers === 'all' ? from.services : from.services.filter((service) => readers.includes(service)),
    secret: rest.secret === true || 'secret' in KINDS[rest.kind],
    chosen: rest.chosen ?? false,
    adjusts: rest.adjusts ?? false,
    rotates: rest.rotates ?? false,
    perReplica: rest.perReplica ?? false,
    bearer: rest.bearer ?? false,
    base: rest.base ?? false,
    malformed: rest.malformed ?? 'warn',
    summary: rest.summary ?? '',
    example: rest.example ?? exampleOf(from.of),
    ...(unset === undefined ? {} : { default: String(unset) }),
    ...(pattern === undefined ? {} : { pattern: wholly(pattern) }),
  }
}

/** The variables that switch a group on. */
export function switchesOf({ variables }: Pick<Group, 'variables'>): readonly string[] {
  return variables.flatMap(({ name, adjusts }) => (adjusts ? [] : [name]))
}

/** The same expression, anchored to match only the whole value. */
function wholly(pattern: string | RegExp): RegExp {
  const [source, flags] = typeof pattern === 'string' ? [pattern, ''] : [pattern.source, pattern.flags]
  return new RegExp(`^(?:${source})$`, flags.replace(/[gy]/g, ''))
}

function exampleOf(variable: VariableDefinition): string {
  const { kind, default: unset, of, range } = variable
  const { parse, example }: KindOfValue = KINDS[kind]
  const least = range && String(range[0])
  if (unset !== undefined) return String(unset)
  if (of?.[0] !== undefined) return of[0]
  if (least !== undefined && parse(least, variable) !== undefined) return least
  // Nobody can guess these, and an invented one might be left in place.
  return kind === 'text' || kind === 'secret' ? '' : example
}
