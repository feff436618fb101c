import { expect, test } from 'vitest'
import type { RuleDefinition } from '../../../src/core/env/definition.ts'
import { brokenBy, resolveRule, variablesOf } from '../../../src/core/env/rule.ts'

const rule = (definition: RuleDefinition) => resolveRule(definition, 'kiln', new Map())
/** A rule's finding for an environment of these variables. */
const breach = (definition: RuleDefinition, env: Record<string, string>) =>
  brokenBy(rule(definition), (name) => env[name])

/** Which sets break a rule at all: schema.test.ts. */
test.each<[RuleDefinition, present: string[], missing: string[], beside?: string]>([
  [{ allOrNone: ['A', 'B', 'C'] }, ['B'], ['A', 'C']],
  [{ allOrNone: ['A', 'B', 'C'] }, ['A', 'C'], ['B']],
  [{ when: ['A', 'B'], requires: ['C', 'D'] }, ['B'], ['D'], 'C'],
  [{ when: ['A', 'B'], requires: ['C', 'D'], match: 'all' }, ['A', 'B'], ['C'], 'D'],
  [{ when: ['A', 'B'], atLeastOne: ['C', 'D'] }, ['A', 'B'], ['C', 'D']],
  [{ exclusive: ['A', 'B', 'C'] }, ['A', 'C'], []],
])(
  'a breach of %j names %j as set and %j as missing, and no other',
  (definition, present, missing, beside) => {
    const set = [...present, ...(beside === undefined ? [] : [beside])]
    const env = Object.fromEntries(set.map((name) => [name, 'x']))
    expect(breach(definition, env)).toEqual({ present, missing })
  },
)

test('a forbidden text is the whole value, and a forbidden pattern any part of it, wherever it was matched before', () => {
  const text: RuleDefinition = { forbidden: 'A', value: 'no' }
  for (const A of [undefined, 'not', 'No']) expect(breach(text, { ...(A && { A }) })).toBeUndefined()
  expect(breach(text, { A: 'no' })).toEqual({ present: ['A'], missing: [] })
  const pattern: RuleDefinition = { forbidden: 'A', value: /no/g }
  const broken = rule(pattern)
  for (let again = 0; again < 2; again += 1) expect(brokenBy(broken, () => 'a no')).toBeDefined()
  expect(breach(pattern, { A: 'yes' })).toBeUndefined()
})

test.each<[RuleDefinition, readonly string[]]>([
  [{ allOrNone: ['A', 'B'] }, ['A', 'B']],
  [{ when: ['A'], requires: ['B', 'C'] }, ['A', 'B', 'C']],
  [{ when: ['A', 'B'], atLeastOne: ['C'] }, ['A', 'B', 'C']],
  [{ exclusive: ['A', 'B'] }, ['A', 'B']],
  [{ forbidden: 'A', value: 'no' }, ['A']],
])('a rule %j is found by each of its variables', (definition, variables) => {
  expect(variablesOf(rule(definition))).toEqual(variables)
})
