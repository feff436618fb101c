import { Ajv2020 } from 'ajv/dist/2020.js'
import { expect, test } from 'vitest'
import { environmentSchema } from '../../../src/core/env/schema.ts'
import { validate as checkEnvironment } from '../../../src/core/env/validate.ts'
import { contractOf } from '../../../src/platform/contract.ts'
import type { GroupInput } from '../../../src/platform/definition.ts'
import { contract } from '../../support/learning.ts'
import { brokenRules, GROUP_VARIABLES } from './oracle.ts'

const validate = new Ajv2020({ strict: false }).compile(environmentSchema(contract))

test.each(Object.entries(GROUP_VARIABLES))(
  'the JSON Schema accepts exactly the subsets of %s that the oracle accepts',
  (_, names) => {
    for (let subset = 0; subset < 2 ** names.length; subset += 1) {
      const present = names.filter((_name, bit) => subset & (1 << bit))
      const accepted = brokenRules(new Set(present)).length === 0
      const blank = Object.fromEntries(names.map((name, index) => [name, index % 2 ? '' : ' \t']))
      const set = Object.fromEntries(present.map((name) => [name, '7']))
      expect(validate(set), present.join(' ')).toBe(accepted)
      expect(validate({ ...blank, ...set }), `${present.join(' ')}, the others blank`).toBe(accepted)
    }
  },
)

const NAMES = ['KILN_A', 'KILN_B', 'KILN_C'] as const
const [A, B, C] = NAMES

/** For each kind of rule of a definition the sets of these names that keep it, in the order of their letters. */
test.each<[string, NonNullable<GroupInput['rules']>[number], string]>([
  ['allOrNone', { allOrNone: NAMES }, '- ABC'],
  ['exclusive', { exclusive: NAMES }, '- A B C'],
  ['requires', { requires: [B, C], when: [A] }, '- B C BC ABC'],
  ['requires of any', { requires: [C], when: [A, B] }, '- C AC BC ABC'],
  ['requires of all', { requires: [C], when: [A, B], match: 'all' }, '- A B C AC BC ABC'],
  ['atLeastOne', { atLeastOne: [B, C], when: [A] }, '- B C AB AC BC ABC'],
  ['atLeastOne of two', { atLeastOne: [C], when: [A, B] }, '- A B C AC BC ABC'],
])('the JSON Schema and validation accept the same sets of three under %s', (_, rule, kept) => {
  const text = { kind: 'text' } as const
  const kiln = {
    unlocks: 'kilns',
    absent: 'no kilns',
    variables: { KILN_A: text, KILN_B: text, KILN_C: text },
  }
  const own = contractOf({
    preset: 'base',
    services: { web: {} },
    groups: { kiln: { ...kiln, rules: [rule] } },
  })
  const accepts = new Ajv2020({ strict: false }).compile(environmentSchema(own))
  const setsOf = (isFine: (env: Record<string, string>) => boolean) =>
    ['-', 'A', 'B', 'C', 'AB', 'AC', 'BC', 'ABC']
      .filter((set) =>
        isFine(
          Object.fromEntries(NAMES.filter((name) => set.includes(name.slice(-1))).map((name) => [name, 'x'])),
        ),
      )
      .join(' ')
  expect(setsOf((env) => accepts(env))).toBe(kept)
  expect(setsOf((env) => checkEnvironment(own, env).ok)).toBe(kept)
})

test('the JSON Schema accepts an empty environment and refuses a wildcard origin', () => {
  expect(validate({})).toBe(true)
  expect(validate({ CORS_ALLOWED_ORIGINS: 'https://*.example.com' })).toBe(false)
  expect(validate({ RATE_LIMIT_PER_MINUTE: 'many' })).toBe(false)
})
