import type { Contract, Variable } from './contract.ts'
import type { Requirement, RuleCondition } from './definition.ts'
import { rangeText } from './kinds.ts'
import { type Rule, whenRequired } from './rule.ts'
import { fileNameOf } from './secret-files.ts'

type Schema = Readonly<Record<string, unknown>>

/** The contract as a JSON Schema (2020-12) of an environment; a variable that is empty or white space is absent. */
export function environmentSchema(contract: Contract): Schema {
  const forbidden = new Map(
    contract.rules.flatMap((rule) =>
      rule.kind === 'forbidden-value' && rule.where === undefined ? [[rule.variable, rule.value]] : [],
    ),
  )
  return {
    $schema: 'https://json-schema.org/draft/2020-12/schema',
    title: 'Environment of the platform',
    description: contract.rules.some(({ kind }) => kind === 'required')
      ? 'The conditions say what is required, and what is half-configured.'
      : 'None of these is required; the conditions say what is half-configured.',
    type: 'object',
    // A secret may be in a file instead, which a condition says.
    required: contract.variables.flatMap(({ name, required, secret }) =>
      required === true && !secret ? [name] : [],
    ),
    properties: Object.fromEntries(
      contract.variables.flatMap(({ name, kind, summary, secret, range }) => [
        [
          name,
          {
            type: 'string',
            description: summary,
            ...(secret ? { writeOnly: true } : {}),
            ...(range && kind === 'integer' && { pattern: `^\\s*(${range[0] < 0 ? '-?' : ''}[0-9]+\\s*)?$` }),
            ...refused(forbidden.get(name)),
          },
        ],
        ...(secret
          ? [[fileNameOf(name), { type: 'string', description: `Path of a file that holds ${name}.` }]]
          : []),
      ]),
    ),
    allOf: contract.rules.flatMap((rule) =>
      conditionsOf(contract, rule).map((condition) => ({
        $comment: `${rule.id}: ${rule.cause}`,
        ...condition,
      })),
    ),
  }
}

/** Material implication: `if`/`then` without a property called then, which would make the object look like a promise. */
const implies = (condition: Schema, consequence: Schema): Schema => ({
  anyOf: [{ not: condition }, consequence],
})

function conditionsOf(contract: Contract, rule: Rule): Schema[] {
  const holds = (name: string): Schema => ({
    required: [name],
    properties: { [name]: { pattern: '\\S' } },
  })
  /** Present, and not just white space; a secret may be in a file. */
  const has = (name: string): Schema =>
    contract.find(name)?.secret ? { anyOf: [holds(name), holds(fileNameOf(name))] } : holds(name)
  const meets = ({ variable, of }: RuleCondition): Schema => {
    if (of instanceof RegExp) {
      const other = { required: [variable], properties: { [variable]: { not: { pattern: of.source } } } }
      // What is in a file is not known, so a rule that depends on it is not applied.
      return { not: { anyOf: [other, holds(fileNameOf(variable))] } }
    }
    return of.includes('')
      ? { not: has(variable) }
      : { required: [variable], properties: { [variable]: { enum: of } } }
  }
  const of = (names: readonly string[], how: 'any' | 'all'): Schema => ({ [`${how}Of`]: names.map(has) })
  if (rule.kind === 'exclusive')
    return rule.variables.flatMap((one, index) =>
      rule.variables.slice(index + 1).map((other) => ({ not: of([one, other], 'all') })),
    )
  const condition = rule.where ? [meets(rule.where)] : []
  if (rule.kind === 'forbidden-value')
    // Without a condition, the schema of the property says this.
    return condition.length === 0
      ? []
      : [
          implies(
            { allOf: [has(rule.variable), ...condition] },
            { properties: { [rule.variable]: { anyOf: [{ pattern: '^\\s*$' }, refused(rule.value)] } } },
          ),
        ]
  const { when, match, needs, enough } = rule
  if (when === undefined) return [of(needs, enough)]
  return when.length === 0 ? [] : [implies({ allOf: [of(when, match), ...condition] }, of(needs, enough))]
}

function refused(value: string | RegExp | undefined): Schema {
  if (value === undefined) return {}
  return { not: typeof value === 'string' ? { const: value } : { pattern: value.source } }
}

/** A `.env.example`: every variable commented out, with what it is for and when it is required. */
export function exampleFile(contract: Contract): string {
  /** `Required in production.`, or nothing. */
  const needed = (required: Requirement | undefined) =>
    required && `Required${whenRequired(required, (name) => contract.find(name) !== undefined)}.`
  const block = (variable: Variable) => {
    const { name, kind, summary, example, required, services, range, of, default: unset } = variable
    const sentences = [
      // It may be written with its full stop or without.
      summary?.replace(/[^.!?]$/, '$&.'),
      needed(required),
      `Read by ${services.join(', ')}.`,
      range && `From ${rangeText(kind, range)}.`,
      of && `One of ${of.join(', ')}.`,
      unset !== undefined && `Default: ${unset}.`,
    ]
    const quote = example.includes('"') ? "'" : '"'
    return `# ${sentences.filter(Boolean).join(' ')}\n# ${name}=${/[\s<>#]/.test(example) ? `${quote}${example}${quote}` : example}`
  }
  const groups = contract.groups.map(({ name, unlocks, absent, required, always, variables }) => {
    const off = [always ? 'Always on.' : `When absent: ${absent}.`, needed(required)].filter(Boolean)
    return `# --- ${name}: unlocks ${unlocks}.\n# ${off.join(' ')}\n\n${variables.map(block).join('\n')}\n`
  })
  const isFree = contract.rules.every(({ kind }) => kind !== 'required')
  return `# ${isFree ? 'Every variable is optional' : 'Every variable is optional, unless it says that it is required'}; an error is given only for a half-configured group.\n# Check this file with: platformctl preflight --env-file .env\n\n${groups.join('\n')}`
}
