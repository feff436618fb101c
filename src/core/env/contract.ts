import { perObject } from '../calls.ts'
import type { GroupDefinition, Readers, Requirement, VariableDefinition } from './definition.ts'
import { KINDS, type KindOfValue, rangeText } from './kinds.ts'
import { type Rule, requiredRule, resolveRule } from './rule.ts'

/** A variable with what its definition left out filled in. */
export interface Variable extends Omit<VariableDefinition, 'default' | 'pattern'> {
  readonly name: string
  readonly group: string
  readonly services: readonly string[]
  readonly secret: boolean
  readonly perReplica: boolean
  readonly summary: string
  readonly example: string
  readonly malformed: 'warn' | 'error'
  readonly default?: string
  readonly pattern?: RegExp
}

export interface Group extends Omit<GroupDefinition, 'services' | 'always' | 'variables' | 'rules'> {
  readonly name: string
  readonly always: boolean
  readonly variables: readonly Variable[]
  readonly rules: readonly Rule[]
}

/** All variables that an environment may hold, and the rules between them. */
export interface Contract {
  /** In the order in which they are always shown. */
  readonly services: readonly string[]
  readonly groups: readonly Group[]
  readonly variables: readonly Variable[]
  readonly rules: readonly Rule[]
  readonly find: (name: string) => Variable | undefined
  readonly group: (name: string) => Group | undefined
}

interface ContractDefinition {
  readonly services: readonly string[]
  readonly groups: Readonly<Record<string, GroupDefinition>>
}

/** Makes a contract when it is first read: those of the presets mostly are not. The definition is checked before. */
export function createContract(definition: ContractDefinition): Contract {
  const contract = () => contractOf(definition)
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

const contractOf = perObject(({ services, groups: definitions }: ContractDefinition): Contract => {
  const groups = Object.entries(definitions).map(([name, group]): Group => {
    const ids = new Map<string, number>()
    return {
      ...group,
      name,
      always: group.always ?? false,
      variables: Object.entries(group.variables).map(([variable, of]) =>
        resolveVariable(variable, name, of, of.services ?? group.services, services),
      ),
      rules: (group.rules ?? []).map((rule) => resolveRule(rule, name, ids)),
    }
  })
  const variables = groups.flatMap((group) => group.variables)
  const byName = new Map(variables.map((variable) => [variable.name, variable]))
  const byGroup = new Map(groups.map((group) => [group.name, group]))
  const isVariable = (name: string) => byName.has(name)
  const switches = (name: string) => {
    const group = byGroup.get(name)
    return group === undefined || group.always ? undefined : switchesOf(group)
  }
  const required = groups.flatMap((group) => {
    const needs = (when: Requirement | undefined, what: string, names: readonly string[]) =>
      when === undefined ? [] : [requiredRule(when, group.name, what, names, isVariable, switches)]
    return [
      ...needs(group.required, `The group ${group.name}`, switchesOf(group)),
      ...group.variables.flatMap((one) => needs(one.required, one.name, [one.name])),
    ]
  })
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
})

function resolveVariable(
  name: string,
  group: string,
  { default: unset, pattern, ...of }: VariableDefinition,
  readers: Readers,
  services: readonly string[],
): Variable {
  return {
    ...of,
    name,
    group,
    services: readers === 'all' ? services : services.filter((service) => readers.includes(service)),
    secret: of.secret === true || 'secret' in KINDS[of.kind],
    perReplica: of.perReplica ?? false,
    malformed: of.malformed ?? 'warn',
    summary: of.summary ?? '',
    example: of.example ?? exampleOf(of, unset),
    ...(unset !== undefined && { default: String(unset) }),
    ...(pattern !== undefined && { pattern: wholly(pattern) }),
  }
}

export function switchesOf({ variables }: Pick<Group, 'variables'>): readonly string[] {
  return variables.flatMap(({ name, adjusts }) => (adjusts ? [] : [name]))
}

/** The same expression, anchored to match only the whole value. */
export function wholly(pattern: string | RegExp): RegExp {
  const [source, flags] = typeof pattern === 'string' ? [pattern, ''] : [pattern.source, pattern.flags]
  return new RegExp(`^(?:${source})$`, flags.replace(/[gy]/g, ''))
}

function exampleOf(of: Omit<VariableDefinition, 'pattern'>, unset: VariableDefinition['default']): string {
  const { parse, example }: KindOfValue = KINDS[of.kind]
  const range = of.range && (of.kind === 'duration' ? rangeText(of.kind, of.range) : `${of.range[0]}`)
  const least = range?.split(' ')[0]
  if (unset !== undefined) return String(unset)
  if (of.of?.[0] !== undefined) return of.of[0]
  if (least !== undefined && parse(least, of) !== undefined) return least
  // Nobody can guess these, and an invented one might be left in place.
  return of.kind === 'text' || of.kind === 'secret' ? '' : example
}
