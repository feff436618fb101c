import { RULES, type Rule } from './rules.ts'
import { VARIABLES } from './table.ts'

type Schema = Readonly<Record<string, unknown>>

/** The contract as a JSON Schema (2020-12) of an environment; a variable that is empty or white space is absent. */
export function environmentSchema(): Schema {
  return {
    $schema: 'https://json-schema.org/draft/2020-12/schema',
    title: 'Environment of the platform',
    description: 'None of these is required; the conditions say what is half-configured.',
    type: 'object',
    properties: Object.fromEntries(
      VARIABLES.map(({ name, summary, secret, range }) => [
        name,
        {
          type: 'string',
          description: summary,
          ...(secret ? { writeOnly: true } : {}),
          ...(range ? { pattern: '^\\s*([0-9]+\\s*)?$' } : {}),
          ...(name === 'CORS_ALLOWED_ORIGINS' ? { not: { pattern: '\\*' } } : {}),
        },
      ]),
    ),
    allOf: RULES.flatMap((rule) =>
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
      return [{ not: allOf(rule.variables) }]
    case 'forbidden-value':
      // Stands with its property.
      return []
  }
}
