import { expect, test } from 'vitest'
import type { RuleDefinition } from '../../../src/core/env/definition.ts'
import { brokenBy, resolveRule, variablesOf } from '../../../src/core/env/rule.ts'

const rule = (definition: RuleDefinition) => resolveRule(definition, 'kiln', new Map())
/** A rule's finding for an environment with these variables, each set to `x` or to the text after its equals sign. */
function breach(definition: RuleDefinition, ...set: readonly string[]) {
  const env = new Map(set.map((one) => [one.split('=')[0], one.split('=')[1] ?? 'x']))
  return brokenBy(rule(definition), (name) => env.get(name))
}
const missing = (definition: RuleDefinition, ...set: readonly string[]) => breach(definition, ...set)?.missing

test('a partial set of variables that only work together is a breach', () => {
  const together = { allOrNone: ['A', 'B', 'C'] }
  expect([breach(together), breach(together, 'A', 'B', 'C')]).toEqual([undefined, undefined])
  expect(breach(together, 'B')).toEqual({ present: ['B'], missing: ['A', 'C'] })
  expect(breach(together, 'A', 'C')).toEqual({ present: ['A', 'C'], missing: ['B'] })
})

test('a requirement applies when any of its variables is set, or only when all are, and names what is missing', () => {
  const any: RuleDefinition = { when: ['A', 'B'], requires: ['C', 'D'] }
  expect(breach(any)).toBeUndefined()
  expect(breach(any, 'B', 'C')).toEqual({ present: ['B'], missing: ['D'] })
  expect(breach(any, 'A', 'B', 'C', 'D')).toBeUndefined()
  const all: RuleDefinition = { ...any, match: 'all' }
  expect(breach(all, 'A')).toBeUndefined()
  expect(breach(all, 'A', 'B', 'D')).toEqual({ present: ['A', 'B'], missing: ['C'] })
})

test('an at-least-one rule needs one of its variables, and only once all variables that trigger it are set', () => {
  const one: RuleDefinition = { when: ['A', 'B'], atLeastOne: ['C', 'D'] }
  expect([missing(one), missing(one, 'A'), missing(one, 'A', 'B', 'D')]).toEqual([
    undefined,
    undefined,
    undefined,
  ])
  expect(breach(one, 'A', 'B')).toEqual({ present: ['A', 'B'], missing: ['C', 'D'] })
})

test('two set variables that exclude each other are a breach, and one is not', () => {
  const exclusive: RuleDefinition = { exclusive: ['A', 'B', 'C'] }
  expect([breach(exclusive), breach(exclusive, 'B')]).toEqual([undefined, undefined])
  expect(breach(exclusive, 'A', 'C')).toEqual({ present: ['A', 'C'], missing: [] })
})

test('a forbidden text is the whole value, and a forbidden pattern any part of it, wherever it was matched before', () => {
  const text: RuleDefinition = { forbidden: 'A', value: 'no' }
  expect([breach(text), breach(text, 'A=not'), breach(text, 'A=No')]).toEqual([
    undefined,
    undefined,
    undefined,
  ])
  expect(breach(text, 'A=no')).toEqual({ present: ['A'], missing: [] })
  const pattern: RuleDefinition = { forbidden: 'A', value: /no/g }
  const broken = rule(pattern)
  for (let again = 0; again < 2; again += 1) expect(brokenBy(broken, () => 'a no')).toBeDefined()
  expect(breach(pattern, 'A=yes')).toBeUndefined()
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
