import { VARIABLES } from './contract.ts'
import { RULES, type Rule } from './rules.ts'

type Schema = Readonly<Record<string, unknown>>

/** The contract as a JSON Schema (2020-12) of an environment whose absent variables are left out, not empty. */
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
          ...(range ? { pattern: '^[0-9]+$' } : {}),
          ...(name === 'CORS_ALLOWED_ORIGINS' ? { not: { pattern: '\\*' } } : {}),
        },
      ]),
    ),
    allOf: RULES.flatMap((rule) =>
      conditions(rule).map((condition) => ({ $comment: `${rule.id}: ${rule.cause}`, ...condition })),
    ),
  }
}

const anyOf = (names: readonly string[]): Schema => ({ anyOf: names.map((name) => ({ required: [name] })) })

/** Material implication: `if`/`then` without a property called then, which would make the object look like a promise. */
const implies = (condition: Schema, consequence: Schema): Schema => ({
  anyOf: [{ not: condition }, consequence],
})

function conditions(rule: Rule): Schema[] {
  switch (rule.kind) {
    case 'all-or-none':
      return [implies(anyOf(rule.variables), { required: rule.variables })]
    case 'requires':
      return [
        implies(rule.match === 'any' ? anyOf(rule.when) : { required: rule.when }, { required: rule.needs }),
      ]
    case 'at-least-one':
      return [implies({ required: rule.when }, anyOf(rule.of))]
    case 'exclusive':
      return [{ not: { required: rule.variables } }]
    case 'forbidden-value':
      // Stands with its property.
      return []
  }
}
