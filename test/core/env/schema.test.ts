import { Ajv2020 } from 'ajv/dist/2020.js'
import { expect, test } from 'vitest'
import { environmentSchema } from '../../../src/core/env/schema.ts'
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

test('the JSON Schema accepts an empty environment and refuses a wildcard origin', () => {
  expect(validate({})).toBe(true)
  expect(validate({ CORS_ALLOWED_ORIGINS: 'https://*.example.com' })).toBe(false)
  expect(validate({ RATE_LIMIT_PER_MINUTE: 'many' })).toBe(false)
})
