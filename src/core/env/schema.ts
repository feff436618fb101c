import type { Contract } from './contract.ts'
import type { Rule } from './rule.ts'

type Schema = Readonly<Record<string, unknown>>

/** The contract as a JSON Schema (2020-12) of an environment; a variable that is empty or white space is absent. */
export function environmentSchema(contract: Contract): Schema {
  const forbidden = new Map(
    contract.rules.flatMap((rule) => (rule.kind === 'forbidden-value' ? [[rule.variable, rule.value]] : [])),
  )
  return {
    $schema: 'https://json-schema.org/draft/2020-12/schema',
    title: 'Environment of the platform',
    description: 'None of these is required; the conditions say what is half-configured.',
    type: 'object',
    properties: Object.fromEntries(
      contract.variables.map(({ name, kind, summary, secret, range }) => [
        name,
        {
          type: 'string',
          description: summary,
          ...(secret ? { writeOnly: true } : {}),
          ...(range && kind === 'integer' ? { pattern: '^\\s*([0-9]+\\s*)?$' } : {}),
          ...refused(forbidden.get(name)),
        },
      ]),
    ),
    allOf: contract.rules.flatMap((rule) =>
      conditions(rule).map((condition) => ({ $comment: `${rule.id}: ${rule.cause}`, ...condition })),
    ),
  }
}

/** Present, and not just white space. */
const has = (name: string): Schema => ({ required: [name], properties: { [name]: { pattern: '\\S' } } })
const anyOf = (names: readonly string[]): Schema => ({ anyOf: names.map(has) })
const allOf = (names: readonly string[]): Schema => ({ allOf: names.map(has) })

/** Material implication: `if`/`then` without a property called then, which would make the object look like a promise. */
const implies = (condition: Schema, consequence: Schema): Schema => ({
  anyOf: [{ not: condition }, consequence],
})

function conditions(rule: Rule): Schema[] {
  switch (rule.kind) {
    case 'all-or-none':
      return [implies(anyOf(rule.variables), allOf(rule.variables))]
    case 'requires':
      return [implies(rule.match === 'any' ? anyOf(rule.when) : allOf(rule.when), allOf(rule.needs))]
    case 'at-least-one':
      return [implies(allOf(rule.when), anyOf(rule.of))]
    case 'exclusive':
      return pairs(rule.variables).map((pair) => ({ not: allOf(pair) }))
    case 'forbidden-value':
      // Stands with its property.
      return []
  }
}

function pairs(names: readonly string[]): string[][] {
  return names.flatMap((one, index) => names.slice(index + 1).map((other) => [one, other]))
}

function refused(value: string | RegExp | undefined): Schema {
  if (value === undefined) return {}
  return { not: typeof value === 'string' ? { const: value } : { pattern: value.source } }
}
