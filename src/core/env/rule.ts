import type { Finding } from '../finding.ts'
import { and, or } from '../sentences.ts'
import type { Requirement, RuleCondition, RuleDefinition } from './definition.ts'

type Form =
  | {
      /** `required`: the definition says so of a variable or a group, and no rule between variables does. */
      readonly kind: 'implication' | 'required'
      /** The rule applies when any (or all) of these are set; in any case when left out. */
      readonly when?: readonly string[]
      readonly match: 'any' | 'all'
      /** Then any (or all) of these have to be. */
      readonly needs: readonly string[]
      readonly enough: 'any' | 'all'
    }
  | { readonly kind: 'exclusive'; readonly variables: readonly string[] }
  | { readonly kind: 'forbidden-value'; readonly variable: string; readonly value: string | RegExp }

/** A rule over which variables of a group are present (CONTRACT §2, errors). */
export type Rule = Form & Pick<Finding, 'id' | 'group' | 'cause' | 'fix'> & { readonly where?: RuleCondition }

/** ` in production`, ` while NAME is set`, ` while the group NAME is on`, or nothing. */
export function whenRequired(required: Requirement, isVariable: (name: string) => boolean): string {
  if (required === true) return ''
  if (required === 'production') return ' in production'
  const { when } = required
  return isVariable(when) ? ` while ${when} is set` : ` while the group ${when} is on`
}

/** The rule that a variable or a group is required. `switches` names the variables that turn a group on; always on: none. */
export function requiredRule(
  required: Requirement,
  group: string,
  what: string,
  variables: readonly string[],
  isVariable: (name: string) => boolean,
  switches: (group: string) => readonly string[] | undefined,
): Rule {
  const production = { variable: 'DEPLOY_ENVIRONMENT', of: ['production'] }
  const isConditional = typeof required === 'object'
  const turnsOn = isConditional && (isVariable(required.when) ? [required.when] : switches(required.when))
  const when = required === 'production' ? [production.variable] : turnsOn
  return {
    kind: 'required',
    id: 'required-missing',
    group,
    ...(when && { when }),
    match: 'any',
    needs: variables,
    enough: 'any',
    ...(required === 'production' && { where: production }),
    cause: `${what} is required${whenRequired(required, isVariable)}, and it is not set.`,
    fix: `Set ${or(variables)}${turnsOn ? `, or remove ${and(turnsOn)}` : ''}.`,
  }
}

/** A group's rule with its id and its sentences; `ids` counts those that the group already has, by form. */
export function resolveRule(definition: RuleDefinition, group: string, ids: Map<string, number>): Rule {
  const { name, form, cause, fix } = formOf(definition)
  const count = (ids.get(name) ?? 0) + 1
  if (definition.id === undefined) ids.set(name, count)
  return {
    id: definition.id ?? `${group}-${name}${count === 1 ? '' : `-${count}`}`,
    group,
    cause: definition.cause ?? cause,
    fix: definition.fix ?? fix,
    ...form,
    ...('where' in definition && definition.where && { where: definition.where }),
  }
}

/** What a rule says if its definition does not; `name` is for the ids of rules that have none of their own. */
function formOf(definition: RuleDefinition): Pick<Rule, 'cause' | 'fix'> & { name: string; form: Form } {
  if ('allOrNone' in definition) {
    const { allOrNone: names } = definition
    return {
      name: 'all-or-none',
      form: { kind: 'implication', when: names, match: 'any', needs: names, enough: 'all' },
      cause: `${and(names)} work only together.`,
      fix: names.length === 2 ? 'Set both, or neither.' : 'Set all of them, or none.',
    }
  }
  if ('requires' in definition) {
    const { when, match = 'any', requires: needs } = definition
    return {
      name: 'requires',
      form: { kind: 'implication', when, match, needs, enough: 'all' },
      cause: `${match === 'any' ? or(when) : and(when)} is set without ${and(needs)}.`,
      fix: `Set ${and(needs)}, or remove ${and(when)}.`,
    }
  }
  if ('atLeastOne' in definition) {
    const { when, atLeastOne: needs } = definition
    return {
      name: 'at-least-one',
      form: { kind: 'implication', when, match: 'all', needs, enough: 'any' },
      cause: `${and(when)} is set without ${or(needs)}.`,
      fix: `Set ${or(needs)}, or remove ${and(when)}.`,
    }
  }
  if ('exclusive' in definition) {
    const { exclusive: variables } = definition
    return {
      name: 'exclusive',
      form: { kind: 'exclusive', variables },
      cause: `Only one of ${and(variables)} may be set.`,
      fix: 'Keep one, and remove the rest.',
    }
  }
  const { forbidden: variable, value } = definition
  return {
    name: 'forbidden-value',
    form: { kind: 'forbidden-value', variable, value },
    cause: `${variable} holds a value that is not allowed.`,
    fix: `Change ${variable}, or remove it.`,
  }
}

export function variablesOf(rule: Rule): readonly string[] {
  const names =
    rule.kind === 'exclusive'
      ? rule.variables
      : rule.kind === 'forbidden-value'
        ? [rule.variable]
        : [...(rule.when ?? []), ...rule.needs]
  return [...new Set([...names, ...(rule.where ? [rule.where.variable] : [])])]
}

/** How the values break a rule: which of its variables are present, and which are missing. Undefined if it holds. */
export function brokenBy(rule: Rule, value: (name: string) => string | undefined) {
  const has = (name: string) => value(name) !== undefined
  const { where } = rule
  if (where && !isOneOf(value(where.variable) ?? '', where.of)) return undefined
  if (rule.kind === 'exclusive') {
    const present = rule.variables.filter(has)
    return present.length > 1 ? { present, missing: [] } : undefined
  }
  if (rule.kind === 'forbidden-value') {
    const set = value(rule.variable)
    if (set === undefined || !isOneOf(set, rule.value)) return undefined
    return { present: [rule.variable], missing: where && !has(where.variable) ? [where.variable] : [] }
  }
  const { when, match, needs, enough } = rule
  const present = (when ?? []).filter(has)
  const applies = when === undefined || (match === 'any' ? present.length > 0 : when.every(has))
  if (!applies || (enough === 'any' ? needs.some(has) : needs.every(has))) return undefined
  return { present, missing: needs.filter((name) => !has(name)) }
}

const isOneOf = (value: string, of: string | readonly string[] | RegExp) =>
  of instanceof RegExp ? value.search(of) !== -1 : [of].flat().includes(value)
