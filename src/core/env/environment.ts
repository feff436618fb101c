import type { Contract } from './contract.ts'
import { parseValue } from './kinds.ts'
import { brokenBy } from './rule.ts'

/** An environment as a program sees it. Unset, empty and whitespace-only mean the same: absent. */
export type Environment = Readonly<Record<string, string | undefined>>

export type GroupState = 'absent' | 'configured' | 'half-configured'

/** The value as the platform uses it: trimmed, undefined when absent. */
export function rawValue(env: Environment, name: string): string | undefined {
  const value = env[name]?.trim()
  return value === '' ? undefined : value
}

export type Evaluation = Readonly<ReturnType<typeof evaluateGroups>>

/** Parses each value once and applies every rule. */
export function evaluateGroups(contract: Contract, env: Environment) {
  /** The values that are set and well-formed, by name. */
  const usable = new Map<string, { readonly text: string; readonly value: unknown }>()
  /** What each malformed value should be, by name. */
  const malformed = new Map<string, string>()
  const touched = new Set<string>()
  /** Half-configured if a rule is broken or a malformed value is an error. With nothing set, a group stays absent. */
  const states = new Map<string, GroupState>(
    contract.groups.map(({ name, always }) => [name, always ? 'configured' : 'absent']),
  )
  for (const variable of contract.variables) {
    const { name, group, adjusts } = variable
    const text = rawValue(env, name)
    if (text === undefined) continue
    touched.add(group)
    const parsed = parseValue(variable, text)
    if (!parsed.ok) {
      malformed.set(name, parsed.expected)
      continue
    }
    usable.set(name, parsed)
    if (!adjusts) states.set(group, 'configured')
  }
  const broken = contract.rules.flatMap((rule) => {
    const breach = brokenBy(rule, (name) =>
      rule.kind === 'forbidden-value' ? rawValue(env, name) : usable.get(name)?.text,
    )
    return breach ? [{ rule, ...breach }] : []
  })
  for (const { rule } of broken)
    if (rule.kind !== 'required' || touched.has(rule.group)) states.set(rule.group, 'half-configured')
  for (const name of malformed.keys()) {
    const variable = contract.find(name)
    if (variable?.malformed === 'error') states.set(variable.group, 'half-configured')
  }
  return { broken, states, usable, malformed }
}
