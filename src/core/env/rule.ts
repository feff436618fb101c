import type { Requirement, RuleCondition, RuleDefinition } from './definition.ts'

/** A rule over which variables of a group are present (CONTRACT §2, errors). */
export type Rule = {
  /** Stable id, explained by `platformctl env explain ID`. */
  readonly id: string
  readonly group: string
  readonly cause: string
  readonly fix: string
} & (
  | { readonly kind: 'all-or-none'; readonly variables: readonly string[] }
  /** When all (or any) of `when` are present, every one of `needs` must be. */
  | {
      readonly kind: 'requires'
      readonly when: readonly string[]
      readonly match: 'any' | 'all'
      readonly needs: readonly string[]
      readonly where?: RuleCondition
    }
  | { readonly kind: 'at-least-one'; readonly when: readonly string[]; readonly of: readonly string[] }
  | { readonly kind: 'exclusive'; readonly variables: readonly string[] }
  /** One of `variables` must be set; with `when` or `where`, only while one of those is set, or that is met. */
  | {
      readonly kind: 'required'
      readonly variables: readonly string[]
      readonly when?: readonly string[]
      readonly where?: RuleCondition
    }
  | {
      readonly kind: 'forbidden-value'
      readonly variable: string
      readonly value: string | RegExp
      readonly where?: RuleCondition
    }
)

/** ` in production`, ` while NAME is set`, or nothing. */
export function whenRequired(required: Requirement): string {
  if (required === true) return ''
  return required === 'production' ? ' in production' : ` while ${required.when} is set`
}

/** The rule that a variable or a group is required. `switches` names the variables that set a variable or a group. */
export function requiredRule(
  required: Requirement,
  of: { readonly group: string; readonly what: string; readonly variables: readonly string[] },
  switches: (name: string) => readonly string[] | undefined,
): Rule {
  const { group, what, variables } = of
  // A group that is always on is set in any case.
  const when = typeof required === 'object' ? switches(required.when) : undefined
  const instead = typeof required === 'object' ? `, or remove ${required.when}` : ''
  return {
    kind: 'required',
    id: 'required-missing',
    group,
    variables,
    ...(when && { when }),
    ...(required === 'production' && { where: { variable: 'DEPLOY_ENVIRONMENT', of: ['production'] } }),
    cause: `${what} is required${whenRequired(required)}, and it is not set.`,
    fix: `Set ${joined(variables, 'or')}${instead}.`,
  }
}

/** A group's rule with its id and its sentences; `ids` counts those that the group already has, by kind. */
export function resolveRule(definition: RuleDefinition, group: string, ids: Map<string, number>): Rule {
  const shape = shapeOf(definition)
  const said = sentences(shape)
  return {
    id: definition.id ?? madeId(group, shape.kind, ids),
    group,
    cause: definition.cause ?? said.cause,
    fix: definition.fix ?? said.fix,
    ...shape,
  }
}

type Shape<Each = Rule> = Each extends { kind: 'required' }
  ? never
  : Each extends Rule
    ? Omit<Each, 'id' | 'group' | 'cause' | 'fix'>
    : never

function shapeOf(definition: RuleDefinition): Shape {
  if ('allOrNone' in definition) return { kind: 'all-or-none', variables: definition.allOrNone }
  if ('requires' in definition) {
    const { when, match = 'any', requires, where } = definition
    return { kind: 'requires', when, match, needs: requires, ...(where && { where }) }
  }
  if ('atLeastOne' in definition)
    return { kind: 'at-least-one', when: definition.when, of: definition.atLeastOne }
  if ('exclusive' in definition) return { kind: 'exclusive', variables: definition.exclusive }
  const { forbidden: variable, value, where } = definition
  return { kind: 'forbidden-value', variable, value, ...(where && { where }) }
}

function madeId(group: string, kind: string, ids: Map<string, number>): string {
  const count = (ids.get(kind) ?? 0) + 1
  ids.set(kind, count)
  return `${group}-${kind}${count === 1 ? '' : `-${count}`}`
}

function sentences(rule: Shape): { cause: string; fix: string } {
  switch (rule.kind) {
    case 'all-or-none':
      return {
        cause: `${joined(rule.variables, 'and')} work only together.`,
        fix: rule.variables.length === 2 ? 'Set both, or neither.' : 'Set all of them, or none.',
      }
    case 'requires':
      return {
        cause: `${joined(rule.when, rule.match === 'any' ? 'or' : 'and')} is set without ${joined(rule.needs, 'and')}.`,
        fix: `Set ${joined(rule.needs, 'and')}, or remove ${joined(rule.when, 'and')}.`,
      }
    case 'at-least-one':
      return {
        cause: `${joined(rule.when, 'and')} is set without ${joined(rule.of, 'or')}.`,
        fix: `Set at least one of ${joined(rule.of, 'and')}, or remove ${joined(rule.when, 'and')}.`,
      }
    case 'exclusive':
      return {
        cause: `Only one of ${joined(rule.variables, 'and')} may be set.`,
        fix: 'Keep one, and remove the rest.',
      }
    case 'forbidden-value':
      return {
        cause: `${rule.variable} holds a value that is not allowed.`,
        fix: `Change ${rule.variable}, or remove it.`,
      }
  }
}

function joined(names: readonly string[], word: 'and' | 'or'): string {
  return names.length < 2 ? names.join('') : `${names.slice(0, -1).join(', ')} ${word} ${names.at(-1)}`
}

/** The names of all variables in a rule. */
export function variablesOf(rule: Rule): readonly string[] {
  return [...new Set(namesIn(rule))]
}

function namesIn(rule: Rule): readonly string[] {
  switch (rule.kind) {
    case 'all-or-none':
    case 'exclusive':
      return rule.variables
    case 'requires':
      return [...rule.when, ...rule.needs, ...(rule.where ? [rule.where.variable] : [])]
    case 'at-least-one':
      return [...rule.when, ...rule.of]
    case 'required':
      return [...rule.variables, ...(rule.when ?? []), ...(rule.where ? [rule.where.variable] : [])]
    case 'forbidden-value':
      return [rule.variable, ...(rule.where ? [rule.where.variable] : [])]
  }
}

/** How a rule is broken: which of its variables are present, and which are missing. */
export interface Breach {
  readonly present: readonly string[]
  readonly missing: readonly string[]
}

/** Gives how the values break a rule; undefined if the rule holds. */
export function brokenBy(rule: Rule, value: (name: string) => string | undefined): Breach | undefined {
  const has = (name: string) => value(name) !== undefined
  if ('where' in rule && rule.where && !meets(rule.where.of, value(rule.where.variable) ?? ''))
    return undefined
  switch (rule.kind) {
    case 'all-or-none': {
      const present = rule.variables.filter(has)
      const missing = rule.variables.filter((name) => !has(name))
      return present.length > 0 && missing.length > 0 ? { present, missing } : undefined
    }
    case 'requires': {
      const present = rule.when.filter(has)
      const missing = rule.needs.filter((name) => !has(name))
      const applies = rule.match === 'any' ? present.length > 0 : present.length === rule.when.length
      return applies && missing.length > 0 ? { present, missing } : undefined
    }
    case 'at-least-one':
      return rule.when.every(has) && !rule.of.some(has) ? { present: rule.when, missing: rule.of } : undefined
    case 'exclusive': {
      const present = rule.variables.filter(has)
      return present.length > 1 ? { present, missing: [] } : undefined
    }
    case 'required': {
      const { variables, when, where } = rule
      const present = [...(when ?? []).filter(has), ...(where ? [where.variable] : [])]
      const applies = when === undefined || present.length > 0
      return applies && !variables.some(has) ? { present, missing: variables } : undefined
    }
    case 'forbidden-value': {
      const { where } = rule
      const set = value(rule.variable)
      return set !== undefined && forbids(rule.value, set)
        ? {
            present: [rule.variable],
            missing: where && value(where.variable) === undefined ? [where.variable] : [],
          }
        : undefined
    }
  }
}

function meets(of: readonly string[] | RegExp, value: string): boolean {
  return of instanceof RegExp ? of.test(value) : of.includes(value)
}

function forbids(forbidden: string | RegExp, value: string): boolean {
  return typeof forbidden === 'string' ? value === forbidden : value.search(forbidden) !== -1
}
