import { expect, test } from 'vitest'
import { KINDS, VALUE_KINDS } from '../../src/core/env/kinds.ts'
import { contractOf } from '../../src/platform/contract.ts'
import type { GroupInput, PlatformDefinition } from '../../src/platform/definition.ts'
import { environmentTypes } from '../../src/platform/env-types.ts'
import { environmentOf } from '../../src/platform/read-env.ts'

const GROUP = { unlocks: 'firings', absent: 'no firings' }
const contractWith = (groups: Readonly<Record<string, GroupInput>>) =>
  contractOf({ preset: 'base', services: { web: {} }, groups } satisfies PlatformDefinition)
const typesOf = (groups: Readonly<Record<string, GroupInput>>) => environmentTypes(contractWith(groups))

/** Whether a value is of a type as a declaration file names it. */
function isOf(type: string, value: unknown): boolean {
  if (type === 'unknown') return value !== undefined
  if (type === 'readonly string[]')
    return Array.isArray(value) && value.every((one) => typeof one === 'string')
  if (type.startsWith('{')) return typeof value === 'object' && value !== null && 'address' in value
  if (type === 'Secret') return typeof value === 'object' && value !== null && 'reveal' in value
  return /["']/.test(type)
    ? type.split(' | ').some((one) => one.slice(1, -1) === value)
    : typeof value === type
}

test.each(VALUE_KINDS)(
  'a value of the kind %s, or its default, is of the type that is declared for it',
  (kind) => {
    const of = { kind, ...(kind === 'enum' && { of: ['eu', 'us'] }) }
    const { example } = KINDS[kind]
    const contract = contractWith({
      kiln: { ...GROUP, variables: { A_B: of, A_C: { ...of, default: example } } },
    })
    const types = environmentTypes(contract)
    const { A_B: set, A_C: unset } = environmentOf(contract, { A_B: example }).kiln ?? {}
    for (const [name, value] of Object.entries({ A_B: set, A_C: unset })) {
      const [, type = ''] = new RegExp(`readonly ${name}: (.*)$`, 'm').exec(types) ?? []
      expect(value).toBeDefined()
      expect(isOf(type, value), `${type}: ${JSON.stringify(value)}`).toBe(true)
      expect(type === 'unknown').toBe(kind === 'json')
    }
  },
)

test('declares guaranteed variables as present, and the rest as possibly undefined', () => {
  const types = typesOf({
    kiln: {
      ...GROUP,
      variables: {
        KILN_KEY: { kind: 'secret' },
        KILN_SECRET: { kind: 'secret' },
        KILN_ACCOUNT: { kind: 'text' },
        KILN_REGION: { kind: 'enum', of: ['eu', 'us'], default: 'eu' },
        KILN_HEAT: { kind: 'integer', adjusts: true },
        KILN_HOOK: { kind: 'url', secret: true, adjusts: true },
      },
      rules: [
        { allOrNone: ['KILN_KEY', 'KILN_SECRET'] },
        { requires: ['KILN_ACCOUNT'], when: ['KILN_KEY'] },
        { requires: ['KILN_KEY'], when: ['KILN_ACCOUNT'] },
      ],
    },
    oven: {
      ...GROUP,
      variables: { OVEN_A: { kind: 'text' }, OVEN_B: { kind: 'text' }, OVEN_C: { kind: 'text' } },
      rules: [
        { requires: ['OVEN_A'], when: ['OVEN_B', 'OVEN_C'], match: 'all' },
        { requires: ['OVEN_C'], when: ['OVEN_A', 'OVEN_B'], match: 'any' },
        { exclusive: ['OVEN_A', 'OVEN_B'] },
      ],
    },
    lamp: {
      ...GROUP,
      variables: { LAMP_A: { kind: 'text' }, LAMP_B: { kind: 'text' }, LAMP_C: { kind: 'text' } },
      rules: [
        { requires: ['LAMP_A'], when: ['LAMP_B', 'LAMP_C'], match: 'any' },
        { atLeastOne: ['LAMP_B', 'LAMP_C'], when: ['LAMP_A'] },
      ],
    },
    only: { ...GROUP, variables: { ONLY_X: { kind: 'text', adjusts: true } } },
  })
  const declared = (prefix: string) => types.match(new RegExp(`readonly ${prefix}\\w+: .*`, 'g'))
  expect(declared('KILN_')).toEqual([
    'readonly KILN_KEY: Secret',
    'readonly KILN_SECRET: Secret',
    'readonly KILN_ACCOUNT: string',
    'readonly KILN_REGION: "eu" | "us"',
    'readonly KILN_HEAT: number | undefined',
    'readonly KILN_HOOK: Secret | undefined',
  ])
  expect(declared('OVEN_')).toEqual([
    'readonly OVEN_A: string | undefined',
    'readonly OVEN_B: string | undefined',
    'readonly OVEN_C: string',
  ])
  expect(declared('LAMP_')).toEqual([
    'readonly LAMP_A: string',
    'readonly LAMP_B: string | undefined',
    'readonly LAMP_C: string | undefined',
  ])
  expect(declared('ONLY_')).toEqual(['readonly ONLY_X: string | undefined'])
  // Needed beside some values of another variable.
  expect(types).toContain('readonly MAILER_API_KEY: Secret | undefined')
})

test('names that are no identifiers are quoted, and no text can end the comment around it', () => {
  const types = typesOf({
    'kiln-hall': {
      unlocks: 'a */ b',
      absent: 'c */ d */',
      variables: { _A: { kind: 'text', summary: 'It */ ends.' }, A_QUIET: { kind: 'text' } },
    },
  })
  expect(types).toContain('readonly "kiln-hall":')
  expect(types).toContain('readonly _A: string')
  expect(types).toContain('/** Unlocks a *\\/ b. Undefined unless configured: c *\\/ d *\\/. */')
  expect(types).toContain('      /** It *\\/ ends. */\n      _A?: string\n      A_QUIET?: string')
})

test('a value read by a schema has an unknown type, and a secret one is a secret still', () => {
  const schema = {
    '~standard': { version: 1, vendor: 'a', validate: (value: unknown) => ({ value }) },
  } as const
  const types = typesOf({ kiln: { ...GROUP, variables: { A_B: { schema }, A_C: { schema, secret: true } } } })
  expect(types).toMatch(/readonly A_B: unknown.*\n +readonly A_C: Secret/)
})
