import fc from 'fast-check'
import { expect, test } from 'vitest'
import { DIALECTS, type Dialect } from '../../../src/core/env/dialects/dialect.ts'
import { readAs } from '../../../src/core/env/dialects/read.ts'
import { portability } from '../../../src/core/env/portability.ts'
import { parseEnvFile, readsAlike } from '../../../src/core/env/reader.ts'
import { timeOf } from '../../support/growth.ts'
import { HOSTILE } from '../../support/hostile-env.ts'
import { contract, SERVICES } from '../../support/learning.ts'

/** Mostly plain lines, so that whole files of them come up, with now and then a character that readers argue about. */
const line = fc.oneof(
  { weight: 6, arbitrary: fc.stringMatching(/^[A-Z_]{1,3}=[!-~]{0,8}$/) },
  { weight: 3, arbitrary: fc.stringMatching(/^[A-Z_]{1,3}=[a-z !-~]{1,8}$/) },
  {
    weight: 1,
    arbitrary: fc.constantFrom('', '# note', '#=', '# a \\', '#"', 'A=', 'A= ', 'export A=b', '__proto__=x'),
  },
)

const told = (text: string, readers?: readonly Dialect[]) =>
  portability(contract, text, 'x', parseEnvFile(contract, text, 'x').assignments, readers)

test('a file of plain lines is read alike by every reader, and has no portability warning', () => {
  let plain = 0
  fc.assert(
    fc.property(fc.array(line, { maxLength: 4 }), fc.constantFrom('', '\n'), (lines, end) => {
      const text = lines.join('\n') + end
      const { assignments } = parseEnvFile(contract, text, 'x')
      if (!readsAlike(text, assignments)) return
      plain += 1
      const read = DIALECTS.map((dialect) => readAs(dialect, text))
      expect(read.some(({ rejected }) => rejected)).toBe(false)
      for (const { name } of assignments) {
        const seen = new Set(read.map(({ values }) => values.get(name)?.trim() ?? ''))
        expect([...seen], JSON.stringify(text)).toHaveLength(1)
      }
      expect(portability(contract, text, 'x', assignments)).toEqual([])
    }),
    { numRuns: 1000, examples: [[['_==', '_='], '']] },
  )
  expect(plain).toBeGreaterThan(200)
})

test('a line of megabytes is read', () => {
  const text = `CORS_ALLOWED_ORIGINS=${'https://a.b,'.repeat(330_000)}`
  expect(readsAlike(text, parseEnvFile(contract, text, 'x').assignments)).toBe(false)
  expect(told(text)).toEqual([])
})

test.each([
  ['A="b c"', 'docker keeps the quotes', 'Remove the quotes: this value needs none.'],
  ['A="b$c"', /compose replaces .* and docker keeps the quotes/, /^No form suits all/],
  [
    'A=b # c',
    'docker and systemd take the comment as part of the value',
    'Put the comment on a line of its own.',
  ],
  ['A=b#c', 'node cuts the value at the #', /^No form suits all/],
  ['A=$2b$10$c', 'compose replaces what follows a dollar sign', /^No form suits all/],
  ['A="b\nc"', 'docker ends the value with its first line', /^Put the value on one line/],
  ['A=a\\b', /backslash/, /^No form suits all/],
])('reports %j as: %s', (text, cause, fix) => {
  const [finding] = told(text).filter(({ id }) => id === 'reader-difference')
  if (typeof cause === 'string') expect(finding?.cause).toBe(`A depends on the reader: ${cause}.`)
  else expect(finding?.cause ?? 'x').toMatch(cause)
  expect(finding?.fix ?? 'x').toMatch(fix)
})

test.each([
  ['docker, a name with a space', 'A=b\nexport C=d', ['docker'], 2],
  ['compose, a name that it cannot read', '# note\n\nA=b\nC D=e', ['compose'], 4],
  ['compose, a quote that nothing closes', "A=b\nC='d\n", ['compose'], 2],
] as const)('a refusal points at the line that it is for: %s', (_, text, readers, line) => {
  const findings = told(text, readers)
  expect(findings).toMatchObject([{ id: 'refused-by-reader', location: { line } }])
})

test('reports a known name within another value’s quotes if some readers take it for an assignment', () => {
  const text = 'A="b\nLOG_LEVEL=info\nOTHER=c"\n'
  const findings = told(text)
  expect(findings.map(({ present, location }) => [...present, location?.line])).toEqual([
    ['A', 1],
    ['LOG_LEVEL', 2],
  ])
  expect(findings[1]?.cause).toBe(
    'LOG_LEVEL depends on the reader: docker reads an assignment of it here, and node, compose and systemd do not.',
  )
})

test('reports a byte order mark even if only readers that lose the first name to it accept the file', () => {
  const causes = (...readers: Dialect[]) =>
    told('\uFEFFLOG_LEVEL=info\nA="b\n', readers).flatMap(({ present, cause }) =>
      present[0] === 'LOG_LEVEL' ? [cause] : [],
    )
  expect(causes('node', 'systemd', 'compose')).toEqual([
    'LOG_LEVEL depends on the reader: node and systemd take the byte order mark before it as a part of the name.',
  ])
  expect(causes('compose')).toEqual([])
})

test('a reader that takes no value of several lines is helped by one line, and not by another form of that line', () => {
  const text = 'HARDWARE_A_TOKEN="-----BEGIN A KEY-----\nMIIB=\n-----END A KEY-----"'
  const refused = told(text).find(({ id }) => id === 'refused-by-reader')
  expect(refused).toMatchObject({ location: { line: 3 }, fix: expect.stringContaining('on one line') })
})

test('without docker among the readers, quotes are the fix', () => {
  expect(told('A=b#c', ['node', 'systemd'])[0]?.fix).toBe('Put the value in single quotes.')
})

test('a refusal quotes its line as far as it may be shown', () => {
  const quoted = (text: string) => told(text, ['docker'])[0]?.excerpt
  expect(quoted('A =canary')).toBe('A=••••')
  expect(quoted('canary canary=canary')).toBe('••••')
})

test('findings about readers concern every service, and say where and about what', () => {
  const common = { severity: 'warning', services: SERVICES, group: 'file', missing: [] }
  expect(told('A=b\r\n  LOG_LEVEL=$b\n')).toMatchObject([
    {
      ...common,
      id: 'reader-difference',
      present: ['LOG_LEVEL'],
      location: { file: 'x', line: 2, column: 3 },
      excerpt: '  LOG_LEVEL=••••',
    },
  ])
  expect(told('BUILD_STAMP = a')).toContainEqual({
    ...common,
    id: 'refused-by-reader',
    present: [],
    cause: 'docker would refuse the whole file because of this line.',
    fix: 'Write it as NAME=value, without export, without white space around the equals sign, and with every quote closed.',
    location: { file: 'x', line: 1, column: 1 },
    excerpt: 'BUILD_STAMP=••••',
  })
  expect(told('A="b\nLOG_LEVEL=info\nOTHER=c"\n')[1]).toMatchObject({
    ...common,
    present: ['LOG_LEVEL'],
    fix: 'Write it as NAME=value on a line of its own, and close every quote above it.',
    location: { line: 2, column: 1 },
    excerpt: 'LOG_LEVEL ••••',
  })
})

// What is not linear takes minutes of a megabyte, and seconds of an eighth.
test.each(Object.entries(HOSTILE))(
  '%s without end end no reader, and hold none up',
  { retry: 2 },
  (_, text) => {
    const hostile = text(128 * 1024)
    const spent = timeOf(() => {
      const { assignments } = parseEnvFile(contract, hostile, 'x')
      portability(contract, hostile, 'x', assignments, DIALECTS)
    })
    expect(spent).toBeLessThan(700)
  },
)
