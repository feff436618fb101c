import fc from 'fast-check'
import { expect, test } from 'vitest'
import { readAs } from '../../../src/core/env/dialects/read.ts'
import { portability } from '../../../src/core/env/portability.ts'
import { parseEnvFile } from '../../../src/core/env/reader.ts'

const READERS = ['node', 'compose', 'docker', 'systemd'] as const

/** Mostly plain lines, so that whole files of them come up, with now and then a character that readers argue about. */
const line = fc.oneof(
  { weight: 6, arbitrary: fc.stringMatching(/^[A-Z_]{1,3}=[!-~]{0,8}$/) },
  { weight: 3, arbitrary: fc.stringMatching(/^[A-Z_]{1,3}=[a-z !-~]{1,8}$/) },
  {
    weight: 1,
    arbitrary: fc.constantFrom('', '# note', '#=', '# a \\', '#"', 'A=', 'A= ', 'export A=b', '__proto__=x'),
  },
)

test('a file without a portability warning gives every reader of a deployment the same values', () => {
  let silent = 0
  fc.assert(
    fc.property(fc.array(line, { maxLength: 4 }), fc.constantFrom('', '\n'), (lines, end) => {
      const text = lines.join('\n') + end
      const { assignments } = parseEnvFile(text, 'x')
      if (portability(text, 'x', assignments).length > 0) return
      silent += 1
      const read = READERS.map((dialect) => readAs(dialect, text))
      expect(read.some(({ rejected }) => rejected)).toBe(false)
      for (const { name } of assignments) {
        const seen = new Set(read.map(({ values }) => values.get(name)?.trim() ?? ''))
        expect([...seen], JSON.stringify(text)).toHaveLength(1)
      }
    }),
    { numRuns: 5000 },
  )
  expect(silent).toBeGreaterThan(1000)
})
