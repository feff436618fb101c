import { expect, test } from 'vitest'
import { DIALECTS } from '../../../src/core/env/dialects/dialect.ts'
import { readAs } from '../../../src/core/env/dialects/read.ts'

/** Each line is ten times the one before: 10^30 characters at the end. */
const BOMB = [
  'A0=0123456789',
  ...Array.from({ length: 30 }, (_, at) => `A${at + 1}=${`$A${at}`.repeat(10)}`),
].join('\n')

test.each(DIALECTS)('%s does not follow values that double themselves', (dialect) => {
  const { values, rejected } = readAs(dialect, BOMB)
  const expands = dialect === 'compose' || dialect === 'dotenv-expand'
  expect(rejected).toBe(expands)
  for (const value of values.values()) expect(value.length).toBeLessThan(1000)
})

test('a value that inserts the rest of its line again and again is refused, and ends no reader', () => {
  expect(readAs('dotenv-expand', "A=$'}$A\\$\\$'$B\nB=${B:-$A$A\\\nC=$B$B$A \n").rejected).toBe(true)
})

test('many values that are each within bounds are read', () => {
  const text = ['A=0123456789', ...Array.from({ length: 1000 }, (_, at) => `B${at}=\${A}-\${A}`)].join('\n')
  for (const dialect of ['compose', 'dotenv-expand'] as const)
    expect(readAs(dialect, text).values.get('B999')).toBe('0123456789-0123456789')
})

test.each([
  // In the machine's environment; what the file's own value is, and a reference to it.
  [{}, 'file', 'file', 'file'],
  [{ A: '' }, 'file', 'file', ''],
  [{ A: 'file' }, 'file', 'file', 'file'],
  [{ A: 'machine' }, 'file', 'machine', 'machine'],
])(
  'beside the machine’s %j, a file’s value is read as its reader does',
  (machine, compose, expand, reference) => {
    for (const [dialect, own] of [
      ['compose', compose],
      ['dotenv-expand', expand],
    ] as const) {
      const { values } = readAs(dialect, 'A=file\nB=$A', machine)
      expect([values.get('A'), values.get('B')], dialect).toEqual([own, reference])
    }
  },
)

test.each([
  [':-', 'set', 'word', 'word'],
  ['-', 'set', '', 'word'],
  [':+', 'word', '', ''],
  ['+', 'word', 'word', ''],
])(
  '%s gives a word for a name that is set, empty or not there as a shell does',
  (operator, set, empty, unset) => {
    const text = [
      'S=set',
      'E=',
      ...['S', 'E', 'U'].map((name) => `X${name}=\${${name}${operator}word}`),
    ].join('\n')
    for (const dialect of ['compose', 'dotenv-expand'] as const) {
      const { values } = readAs(dialect, text)
      expect(
        ['XS', 'XE', 'XU'].map((name) => values.get(name)),
        dialect,
      ).toEqual([set, empty, unset])
    }
  },
)
