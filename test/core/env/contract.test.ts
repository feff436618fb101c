import { expect, test } from 'vitest'
import { createContract } from '../../../src/core/env/contract.ts'
import { exampleFile } from '../../../src/core/env/schema.ts'

const contract = createContract({
  services: ['web', 'bookings'],
  groups: {
    kiln: {
      services: 'all',
      unlocks: 'kiln bookings',
      absent: 'bookings are shown as unavailable',
      variables: {
        KILN_API_KEY: { kind: 'secret' },
        KILN_API_SECRET: { kind: 'secret', services: ['web'] },
        KILN_SHELVES: { kind: 'integer', range: [3, 9] },
        KILN_CONES: { kind: 'integer', range: [1, 9], default: 7 },
        KILN_SPAN: { kind: 'duration', range: [60_000, 99_999] },
        KILN_CACHE: { kind: 'bytes', range: [20_000_000_000, 30_000_000_000] },
        KILN_COUNTRY: { kind: 'enum', of: ['de', 'dk'] },
        KILN_NOTE: { kind: 'text' },
        KILN_REGION: { kind: 'enum', of: ['eu', 'us'], default: 'eu', pattern: '[a-z]+' },
      },
      rules: [
        { allOrNone: ['KILN_API_KEY', 'KILN_API_SECRET'] },
        { requires: ['KILN_API_KEY'], when: ['KILN_REGION'] },
        {
          requires: ['KILN_API_SECRET'],
          when: ['KILN_REGION'],
          id: 'kiln-region',
          cause: 'No.',
          fix: 'Set it.',
        },
        { requires: ['KILN_API_SECRET'], when: ['KILN_NOTE'] },
      ],
    },
  },
})

test('a variable gets the readers of its group, the secrecy of its kind and an example, which the example file shows with its bounds', () => {
  expect(contract.find('KILN_API_KEY')).toMatchObject({
    group: 'kiln',
    secret: true,
    services: ['web', 'bookings'],
  })
  expect(contract.find('KILN_API_SECRET')?.services).toEqual(['web'])
  expect(contract.find('KILN_REGION')).toMatchObject({ example: 'eu', default: 'eu', secret: false })
  expect(
    ['SHELVES', 'CONES', 'SPAN', 'CACHE', 'COUNTRY', 'NOTE'].map(
      (of) => contract.find(`KILN_${of}`)?.example,
    ),
  ).toEqual(['3', '7', '1m', '20000000000', 'de', ''])
  expect(contract.find('KILN_REGION')?.pattern?.test('eu1')).toBe(false)
  const file = exampleFile(contract)
  expect(file).toContain('# Read by web, bookings. From 1 to 9. Default: 7.\n# KILN_CONES=7\n')
  expect(file).toContain('# Read by web, bookings. One of de, dk.\n# KILN_COUNTRY=de\n')
  expect(contract.find('KILN_COLOR')).toBeUndefined()
})

test('a rule without texts gets an id and sentences that name its variables', () => {
  expect(contract.rules.map(({ id }) => id)).toEqual([
    'kiln-all-or-none',
    'kiln-requires',
    'kiln-region',
    'kiln-requires-2',
  ])
  expect(contract.rules[0]).toMatchObject({
    cause: 'KILN_API_KEY and KILN_API_SECRET work only together.',
    fix: 'Set both, or neither.',
  })
  expect(contract.rules[2]).toMatchObject({ cause: 'No.', fix: 'Set it.' })
})
