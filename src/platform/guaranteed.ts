import type { Group } from '../core/env/contract.ts'
import type { Rule } from '../core/env/rule.ts'

/**
 * Names of the variables that are present whenever the group is configured, whichever variable switched it on. The
 * types of `PlatformEnvironment` compute the same names from a definition; this computes them from a contract.
 */
export function guaranteed(group: Group): ReadonlySet<string> {
  const names = group.variables.map(({ name }) => name)
  const [first, ...others] = group.variables
    .filter(({ adjusts }) => !adjusts)
    .map(({ name }) => closure(name, group.rules))
  if (first === undefined) return new Set()
  return new Set(names.filter((name) => first.has(name) && others.every((other) => other.has(name))))
}

/** All variables that the rules require, directly or indirectly, once this one is present. */
function closure(name: string, rules: readonly Rule[]): ReadonlySet<string> {
  const known = new Set([name])
  for (let size = 0; size < known.size; ) {
    size = known.size
    for (const rule of rules) for (const implied of impliedBy(rule, known)) known.add(implied)
  }
  return known
}

function impliedBy(rule: Rule, known: ReadonlySet<string>): readonly string[] {
  const has = (name: string) => known.has(name)
  if (rule.kind === 'all-or-none') return rule.variables.some(has) ? rule.variables : []
  if (rule.kind !== 'requires') return []
  return (rule.match === 'any' ? rule.when.some(has) : rule.when.every(has)) ? rule.needs : []
}
