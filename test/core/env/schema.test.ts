import fc from 'fast-check'
import { expect, test } from 'vitest'
import { environmentSchema } from '../../../src/core/env/schema.ts'
import { validate as checkEnvironment } from '../../../src/core/env/validate.ts'
import { contractOf } from '../../../src/platform/contract.ts'
import type { GroupInput } from '../../../src/platform/definition.ts'
import { contract } from '../../support/learning.ts'
import { schemaFaults } from '../../support/schemas.ts'
import { brokenRules, GROUP_VARIABLES, subsetsOf } from './oracle.ts'

/** Whether a schema accepts an environment, or a value. */
const by = (schema: Readonly<Record<string, unknown>>) => (value: unknown) =>
  schemaFaults(schema, value).length === 0

const validate = by(environmentSchema(contract))

test.each(Object.entries(GROUP_VARIABLES))(
  'the JSON Schema accepts exactly the subsets of %s that the oracle accepts',
  (_, names) => {
    for (const present of subsetsOf(names)) {
      const accepted = brokenRules(new Set(present)).length === 0
      const blank = Object.fromEntries(names.map((name, index) => [name, index % 2 ? '' : ' \t']))
      const set = Object.fromEntries(present.map((name) => [name, '7']))
      expect(validate(set), present.join(' ')).toBe(accepted)
      expect(validate({ ...blank, ...set }), `${present.join(' ')}, the others blank`).toBe(accepted)
    }
  },
)

type Rule = (names: [string, string, string]) => NonNullable<GroupInput['rules']>[number]

/** For each kind of rule of a definition the sets of three names that keep it, in the order of their letters. */
const RULES: readonly (readonly [kind: string, rule: Rule, kept: string])[] = [
  ['allOrNone', (all) => ({ allOrNone: all }), '- ABC'],
  ['exclusive', (all) => ({ exclusive: all }), '- A B C'],
  ['requires', ([A, B, C]) => ({ requires: [B, C], when: [A] }), '- B C BC ABC'],
  ['requires of any', ([A, B, C]) => ({ requires: [C], when: [A, B] }), '- C AC BC ABC'],
  ['requires of all', ([A, B, C]) => ({ requires: [C], when: [A, B], match: 'all' }), '- A B C AC BC ABC'],
  ['atLeastOne', ([A, B, C]) => ({ atLeastOne: [B, C], when: [A] }), '- B C AB AC BC ABC'],
  ['atLeastOne of two', ([A, B, C]) => ({ atLeastOne: [C], when: [A, B] }), '- A B C AC BC ABC'],
]
const nameOf = (kind: string, letter: string) => `${kind.replaceAll(' ', '_').toUpperCase()}_${letter}`

/** One platform with a group for each of them. */
const own = contractOf({
  preset: 'base',
  services: { web: {} },
  groups: Object.fromEntries(
    RULES.map(([kind, rule], index): [string, GroupInput] => {
      const [A, B, C] = ['A', 'B', 'C'].map((letter) => nameOf(kind, letter)) as [string, string, string]
      const text = { kind: 'text' } as const
      const variables = { [A]: text, [B]: text, [C]: text }
      return [`kiln${index}`, { unlocks: 'kilns', absent: 'no kilns', variables, rules: [rule([A, B, C])] }]
    }),
  ),
})
const accepts = by(environmentSchema(own))

test.each(RULES)('the JSON Schema and validation accept the same sets of three under %s', (kind, _, kept) => {
  const setsOf = (isFine: (env: Record<string, string>) => boolean) =>
    ['-', 'A', 'B', 'C', 'AB', 'AC', 'BC', 'ABC']
      .filter((set) =>
        isFine(Object.fromEntries([...set.replace('-', '')].map((letter) => [nameOf(kind, letter), 'x']))),
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

test('the JSON Schema accepts every number, duration and size that validation accepts, whatever their range', () => {
  const unit = fc.constantFrom(...'0123456789-+. esmhdKiB')
  const number = fc.integer({ min: -1000, max: 1000 })
  fc.assert(
    fc.property(
      fc.constantFrom('integer', 'number', 'duration', 'bytes'),
      fc.tuple(number, number),
      fc.array(fc.oneof(fc.string({ unit, maxLength: 4 }), number.map(String)), { minLength: 20 }),
      (kind, [one, other], texts) => {
        const range = [Math.min(one, other), Math.max(one, other)] as const
        const of = { unlocks: 'kilns', absent: 'no kilns', variables: { KILN: { kind, range } } }
        const platform = contractOf({ preset: 'base', services: { web: {} }, groups: { kiln: of } })
        const { properties } = environmentSchema(platform) as {
          properties: Record<'KILN', Record<string, unknown>>
        }
        const fits = by(properties.KILN)
        for (const KILN of [...texts, ...range.map(String), '-5', '-0'])
          if (checkEnvironment(platform, { KILN }).ok) expect(fits(KILN), `${KILN} in ${range}`).toBe(true)
      },
    ),
    { numRuns: 50 },
  )
})

test('the JSON Schema wants what is required, of a secret the file that holds it as well', () => {
  const needed = contractOf({
    preset: 'base',
    services: { web: {} },
    groups: {
      kiln: {
        unlocks: 'kilns',
        absent: 'no kilns',
        variables: {
          KILN_KEY: { kind: 'secret', required: true },
          KILN_REGION: { kind: 'text', required: true },
        },
      },
    },
  })
  const { properties } = environmentSchema(needed) as { properties: Record<string, object> }
  expect(['KILN_KEY', 'KILN_REGION'].map((name) => properties[name])).toEqual([
    { type: 'string', description: '', writeOnly: true },
    { type: 'string', description: '' },
  ])
  const fits = by(environmentSchema(needed))
  expect(fits({ KILN_KEY: 'x', KILN_REGION: 'eu' })).toBe(true)
  expect(fits({ KILN_KEY_FILE: '/run/secrets/kiln', KILN_REGION: 'eu' })).toBe(true)
  expect(fits({ KILN_REGION: 'eu' })).toBe(false)
  expect(fits({ KILN_KEY: 'x' })).toBe(false)
})
