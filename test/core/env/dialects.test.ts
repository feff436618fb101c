import { readFileSync } from 'node:fs'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { DIALECTS, type Dialect } from '../../../src/core/env/dialects/dialect.ts'
import { readAs } from '../../../src/core/env/dialects/read.ts'
import { readEnv } from '../../../src/env.ts'
import { anyText } from '../../support/any-text.ts'

interface Expected {
  readonly value?: Readonly<Record<string, string | null>>
  readonly error?: unknown
}

// Parsed here: imported as a module, the case with __proto__ would set a prototype.
const fixture = JSON.parse(
  readFileSync(new URL('../../fixtures/dotenv-dialects.json', import.meta.url), 'utf8'),
) as {
  readonly cases: readonly {
    readonly name: string
    readonly input: string
    readonly expect: Partial<Record<string, Expected>>
  }[]
}

const sources = JSON.parse(
  readFileSync(new URL('../../fixtures/dotenv-sources.json', import.meta.url), 'utf8'),
) as {
  readonly cases: readonly {
    readonly dialect: Dialect
    readonly input: string
    readonly value: Readonly<Record<string, string>> | null
  }[]
}

const MACHINE = { MACHINE: 'machine' }
/** Differences by design: dotenv-expand runs $(…), and ours never runs anything. */
const DELIBERATE = new Set(['dotenv-expand: command subst'])

const cases = fixture.cases.flatMap(({ name, input, expect: readers }) =>
  DIALECTS.flatMap((dialect) => {
    const expected = readers[dialect]
    return expected === undefined || DELIBERATE.has(`${dialect}: ${name}`)
      ? []
      : [{ dialect, name, input, expected }]
  }),
)

test.each(cases)('$dialect: $name', ({ dialect, input, expected }) => {
  const { values, rejected } = readAs(dialect, input, MACHINE)
  expect(rejected).toBe(expected.error !== undefined)
  if (!rejected) expect([...values].sort()).toEqual(Object.entries(expected.value ?? {}).sort())
})

test.each(sources.cases)('$dialect reads $input as its source says', ({ dialect, input, value }) => {
  const { values, rejected } = readAs(dialect, input, MACHINE)
  expect(rejected ? null : Object.fromEntries(values)).toEqual(value)
})

test.each(DIALECTS)('%s reads two quotes as nothing, unless it keeps quotes', (dialect) => {
  expect(readAs(dialect, 'A=""\n').values.get('A')).toBe(dialect === 'docker' ? '""' : '')
})

test('never runs a command in a value, and keeps it as written', () => {
  expect(readAs('dotenv-expand', 'A=$(echo hi)\n').values.get('A')).toBe('$(echo hi)')
})

test('no reader throws, whatever the text is', () => {
  const text = fc
    .array(fc.constantFrom(...['export ', '${', ':-'], ...'A= "\'`#\n\r\\$}:\uFEFF\u0000é'))
    .map((parts) => parts.join(''))
  fc.assert(
    fc.property(fc.constantFrom(...DIALECTS), fc.oneof(text, anyText()), (dialect, given) => {
      const { values } = readAs(dialect, given)
      for (const value of values.values()) expect(typeof value).toBe('string')
    }),
    { numRuns: 500 },
  )
})

test('a dialect that there is not is refused with those that there are', () => {
  expect(() => readEnv('A=1', { dialect: JSON.parse('"bash"') })).toThrow(
    /^there is no such dialect; there are node, dotenv, .*systemd$/,
  )
})
