import { expect, test } from 'vitest'
import { type Kind, VALUE_KINDS } from '../../src/core/env/kinds.ts'
import { contractOf } from '../../src/platform/contract.ts'
import type { GroupInput, PlatformDefinition } from '../../src/platform/definition.ts'
import { environmentTypes } from '../../src/platform/env-types.ts'
import { environmentOf } from '../../src/platform/read-env.ts'

const GROUP = { unlocks: 'firings', absent: 'no firings' }
const contractWith = (groups: Readonly<Record<string, GroupInput>>) =>
  contractOf({ preset: 'base', services: { web: {} }, groups } satisfies PlatformDefinition)
const typesOf = (groups: Readonly<Record<string, GroupInput>>) => environmentTypes(contractWith(groups))

/** A value that each kind takes. */
const SOUND: Readonly<Record<Kind, string>> = {
  text: 'a text',
  secret: 'a-secret-of-some-length',
  url: 'https://a.example',
  dsn: 'https://key@errors.example/1',
  'store-url': 'sqlite:./a.sqlite',
  pem: '-----BEGIN PRIVATE KEY-----\\nMIIB\\n-----END PRIVATE KEY-----',
  urls: 'https://a.example/, http://b.example',
  emails: 'a@b.example, c@d.example',
  'postgres-url': 'postgres://a:b@db.example/c',
  'smtp-url': 'smtp://mail.example:587',
  integer: '7',
  number: '7.5',
  boolean: 'true',
  enum: 'eu',
  duration: '5m',
  bytes: '10MB',
  email: 'a@b.example',
  mailbox: 'Kiln <a@b.example>',
  host: 'db.internal',
  port: '443',
  path: './a',
  list: 'a,b',
  json: '{"a":1}',
  origins: 'https://a.example',
  proxies: '10.0.0.0/8',
  'log-level': 'debug',
  table: 'events',
  price: 'price_a',
}

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

test.each(VALUE_KINDS)('a value of the kind %s is of the type that is declared for it', (kind) => {
  const contract = contractWith({
    kiln: {
      ...GROUP,
      variables: {
        A_B: {
          kind,
          ...(kind === 'enum' && { of: ['eu', 'us'] }),
        },
      },
    },
  })
  const [, type = ''] = /readonly A_B: (.*)$/m.exec(environmentTypes(contract)) ?? []
  const value = environmentOf(contract, { A_B: SOUND[kind] }).kiln?.A_B
  expect(value).toBeDefined()
  expect(isOf(type, value), `${type}: ${JSON.stringify(value)}`).toBe(true)
  expect(type === 'unknown').toBe(kind === 'json')
})

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
    only: { ...GROUP, variables: { ONLY_X: { kind: 'text', adjusts: true } } },
  })
  const declared = (prefix: string) => types.match(new RegExp(`readonly ${prefix}\\w+: .*`, 'g'))
  expect(declared('KILN_')).toEqual([
    'readonly KILN_KEY: Secret',
    'readonly KILN_SECRET: Secret',
    'readonly KILN_ACCOUNT: string',
    'readonly KILN_REGION: "eu" | "us"',
    'readonly KILN_HEAT: number | undefined',
  ])
  expect(declared('OVEN_')).toEqual([
    'readonly OVEN_A: string | undefined',
    'readonly OVEN_B: string | undefined',
    'readonly OVEN_C: string',
  ])
  expect(declared('ONLY_')).toEqual(['readonly ONLY_X: string | undefined'])
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

test('a value read by a schema has an unknown type', () => {
  const schema = {
    '~standard': { version: 1, vendor: 'a', validate: (value: unknown) => ({ value }) },
  } as const
  expect(typesOf({ kiln: { ...GROUP, variables: { A_B: { schema } } } })).toContain('readonly A_B: unknown\n')
})
