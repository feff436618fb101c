import fc from 'fast-check'
import { expect, test } from 'vitest'
import { z } from 'zod'
import { createContract } from '../../../src/core/env/contract.ts'
import { DIALECTS } from '../../../src/core/env/dialects/dialect.ts'
import { readAs } from '../../../src/core/env/dialects/read.ts'
import {
  KINDS,
  type Kind,
  parseValue,
  type Reading,
  type StandardSchema,
  VALUE_KINDS,
} from '../../../src/core/env/kinds.ts'
import { portability } from '../../../src/core/env/portability.ts'
import { parseEnvFile } from '../../../src/core/env/reader.ts'
import { evaluateGroups } from '../../../src/core/env/settings.ts'
import { anyText } from '../../support/any-text.ts'

const KEY = '-----BEGIN PRIVATE KEY-----\nMIIB\nAQ==\n-----END PRIVATE KEY-----'

test.each(DIALECTS)(
  'a PEM on one line in double quotes is read alike by %s, without a warning',
  (dialect) => {
    const file = `SHOP_PEM="${KEY.replaceAll('\n', '\\n')}"\n`
    const contract = createContract({
      services: ['web'],
      groups: {
        shop: { services: 'all', unlocks: 'a', absent: 'b', variables: { SHOP_PEM: { kind: 'pem' } } },
      },
    })
    const env = Object.fromEntries(readAs(dialect, file).values)
    expect(evaluateGroups(contract, env).usable.get('SHOP_PEM')?.text).toBe(KEY)
    const { assignments } = parseEnvFile(contract, file, '.env')
    expect(portability(contract, file, '.env', assignments, DIALECTS)).toEqual([])
  },
)

test.each(DIALECTS)('a PEM on several lines is a key wherever %s takes one', (dialect) => {
  const { values, rejected } = readAs(dialect, `SHOP_PEM="${KEY}"\n`)
  expect(rejected).toBe(dialect === 'docker')
  if (!rejected) expect(read({ kind: 'pem' }, values.get('SHOP_PEM') ?? '')).toBe(KEY)
})

test('a PEM of any length that is none is refused in a moment', () => {
  for (const long of ['A'.repeat(64_000), '\\n'.repeat(32_000), 'a: b\n'.repeat(12_000), ' '.repeat(64_000)])
    expect(parseValue({ kind: 'pem' }, `-----BEGIN A-----\n${long}`).ok).toBe(false)
})

test('a schema of JSON gets the parsed value, and that of any other kind the text', () => {
  const seen: unknown[] = []
  const schema: StandardSchema = {
    '~standard': { version: 1, vendor: 'test', validate: (value) => ({ value: seen.push(value) }) },
  }
  expect(read({ kind: 'json', schema }, '{"seats":[12]}')).toBe(1)
  expect(read({ kind: 'json', schema }, '{')).toBeUndefined()
  for (const text of ['12', '"a"', 'false', 'null']) read({ kind: 'json', schema }, text)
  read({ kind: 'integer', schema }, '12')
  read({ kind: 'pem', schema }, KEY.replaceAll('\n', '\\n'))
  expect(seen).toEqual([{ seats: [12] }, 12, 'a', false, null, '12', KEY])
})

test.each(VALUE_KINDS)('the example of %s is a value of it', (kind) => {
  expect(parseValue({ kind, of: ['eu'] }, KINDS[kind].example).ok).toBe(true)
})

function malformed(reading: Reading, text: string): string | undefined {
  const parsed = parseValue(reading, text)
  return parsed.ok ? undefined : parsed.expected
}

const read = (reading: Reading, text: string) => {
  const parsed = parseValue(reading, text)
  return parsed.ok ? parsed.value : undefined
}

test.each<[Kind, string, unknown]>([
  ['number', '-1.5', -1.5],
  ['boolean', 'Yes', true],
  ['duration', '1w2d3h4m5s6ms', 788_645_006],
  ['bytes', '1.5 GiB', 1_610_612_736],
  ['email', 'help@example.com', 'help@example.com'],
  ['mailbox', 'Help <help@example.com>', { name: 'Help', address: 'help@example.com' }],
  ['host', 'db.internal', 'db.internal'],
  ['host', '[::1]', '::1'],
  ['list', 'a, b,,c', ['a', 'b', 'c']],
  ['json', '{"a":[1]}', { a: [1] }],
  ['url', 'https://a.example/', 'https://a.example'],
  ['urls', 'https://a.example/, http://b.example/c', ['https://a.example', 'http://b.example/c']],
  ['emails', 'a@b.example,c@d.example', ['a@b.example', 'c@d.example']],
  ['pem', `${KEY}\n\n${KEY}\n`.replaceAll('\n', '\r\n'), `${KEY}\n\n${KEY}`],
  ['pem', KEY.replace('MIIB', 'Proc-Type: 4,ENCRYPTED\nDEK-Info: AES-256-CBC,8A\n\nMIIB'), expect.anything()],
])('%s: %s is read', (kind, text, value) => {
  expect(read({ kind }, text)).toEqual(value)
  expect(malformed({ kind }, text)).toBeUndefined()
})

test.each<[Kind, string]>([
  ['number', 'Infinity'],
  ['duration', '30'],
  ['duration', '30m1h'],
  ['email', 'Help <help@example.com>'],
  ['host', 'https://db.internal'],
  ['host', 'db.internal:5432'],
  ['list', ' , '],
  ['urls', 'https://a.example,b.example'],
  ['emails', 'a@b.example,c'],
  ['postgres-url', 'sqlite:./a'],
  ['pem', KEY.slice(0, -5)],
  ['pem', KEY.replace('END PRIVATE', 'END PUBLIC')],
  ['pem', KEY.replace('MIIB\nAQ==\n', '')],
  ['pem', `${KEY}\ncanary`],
  ['pem', `"${KEY}'`],
  ['json', "{'a': 1}"],
])('%s: %s is malformed', (kind, text) => {
  expect(read({ kind }, text)).toBeUndefined()
  expect(malformed({ kind }, text)).toBeDefined()
})

test('no kind throws on any text, and what it asks for never repeats the text', () => {
  fc.assert(
    fc.property(fc.constantFrom(...VALUE_KINDS), anyText({ minLength: 8 }), (kind, text) => {
      const sentence = malformed({ kind, of: ['one', 'two'] }, text)
      if (sentence !== undefined) expect(sentence).not.toContain(text)
    }),
    { numRuns: 300 },
  )
})

test('range, values and pattern narrow a kind', () => {
  expect(malformed({ kind: 'integer', range: [1, 5] }, '6')).toBe('a whole number from 1 to 5')
  expect(read({ kind: 'integer', range: [-5, 5] }, '-5')).toBe(-5)
  expect(malformed({ kind: 'number', range: [0, 1] }, '1.5')).toBe('a number from 0 to 1')
  expect(malformed({ kind: 'duration', range: [1000, 60_000] }, '2m')).toMatch(/from 1s to 1m$/)
  expect(malformed({ kind: 'enum', of: ['eu', 'us'] }, 'de')).toBe('one of eu, us')
  expect(malformed({ kind: 'text', pattern: /^(?:[a-z]+)$/ }, 'a1')).toContain('[a-z]+')
})

test('a Standard Schema parses; its messages, which may quote the value, are not repeated', () => {
  const schema = (validate: (value: unknown) => unknown): Reading => ({
    kind: 'text',
    schema: { '~standard': { version: 1, vendor: 'test', validate } },
  })
  expect(
    read(
      schema((value) => ({ value: `${value}!` })),
      'hi',
    ),
  ).toBe('hi!')
  const wrong = [
    () => ({ issues: [{ message: 'canary is wrong' }] }),
    (value: unknown) => ({ value, issues: [{ message: 'canary is wrong' }] }),
    () => {
      throw new Error('canary')
    },
    async () => ({ value: 1 }),
    () => undefined,
  ]
  for (const validate of wrong) expect(malformed(schema(validate), 'canary')).toBe('what its schema accepts')
})

const NIGHTS = z.array(z.object({ day: z.enum(['fri', 'sat']), hours: z.record(z.string(), z.number()) }))
const ECHO = z.unknown().superRefine((value, context) => {
  context.addIssue({ code: 'custom', path: [String(value)], message: 'canary' })
})

test.each<[z.ZodType, unknown, string]>([
  [
    NIGHTS,
    [
      { day: 'fri', hours: {} },
      { day: 'canary', hours: {} },
    ],
    ': it refuses [1].day',
  ],
  [NIGHTS, [{ hours: {} }], ': it refuses [0].day'],
  [NIGHTS, [{ day: 'fri', hours: { canary: 'x' } }], ': it refuses [0].hours'],
  [NIGHTS, ['canary'], ': it refuses [0]'],
  [NIGHTS, { canary: 1 }, ''],
  [
    z.object({ tariff: z.object({ adult: z.number() }) }),
    { tariff: { adult: 'canary' } },
    ': it refuses tariff.adult',
  ],
  [z.record(z.string(), z.number()), { canary: 'x' }, ''],
  [z.strictObject({}), { canary: 'x' }, ''],
  [ECHO, 'canary', ''],
])('a schema refuses JSON by a place that holds no name of the file (%#)', (schema, value, place) => {
  expect(malformed({ kind: 'json', schema }, JSON.stringify(value))).toBe(`what its schema accepts${place}`)
})
