import type { Rule } from './rule.ts'

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
