import fc from 'fast-check'
import { expect, test } from 'vitest'
import { parseEnvFile } from '../../../src/core/env/reader.ts'
import { anyText } from '../../support/any-text.ts'
import { contract } from '../../support/learning.ts'

const values = (text: string) =>
  Object.fromEntries(parseEnvFile(contract, text, '.env').assignments.map(({ name, value }) => [name, value]))

test.each([
  ['a plain value', 'A=b', { A: 'b' }],
  ['spaces around it', '  A = b  ', { A: 'b' }],
  ['an empty value before another line', 'A=  \nB=c', { A: '', B: 'c' }],
  ['export', 'export A=b', { A: 'b' }],
  ['a comment after the value', 'A=b # c', { A: 'b' }],
  ['a hash inside a value', 'A=b#c', { A: 'b#c' }],
  ['a hash inside quotes', 'A="b # c" # d', { A: 'b # c' }],
  ['escapes in double quotes only', `A="x\\ny"\nB='x\\ny'`, { A: 'x\ny', B: 'x\\ny' }],
  ['a backslash before the end of single quotes', `A='C:\\dir\\'\nB=c`, { A: 'C:\\dir\\', B: 'c' }],
  ['several lines in quotes', 'A="one\ntwo"\nB=c', { A: 'one\ntwo', B: 'c' }],
  ['a BOM and CRLF', '\uFEFFA=b\r\nC=d\r\n', { A: 'b', C: 'd' }],
  ['dollars, which are not expanded', 'A=$2b$10$abc\nB=$(touch x)', { A: '$2b$10$abc', B: '$(touch x)' }],
])('reads %s', (_, text, expected) => {
  expect(values(text)).toEqual(expected)
})

test('every finding points at its line and column, and quotes the line with all but a name of ours or of an assignment masked', () => {
  const { findings } = parseEnvFile(
    contract,
    'canary1\nLOG_LEVEL canary2\nexport A="canary3" canary4\n  export A=canary5\nB=-----BEGIN KEY-----\ncanary6\n-----END KEY-----\nC="canary7',
    'x',
  )
  expect(
    findings.map(({ id, excerpt, location }) => [id, excerpt, location?.line, location?.column]),
  ).toEqual([
    ['unreadable-line', '••••', 1, 1],
    ['unreadable-line', 'LOG_LEVEL ••••', 2, 1],
    ['text-after-quote', 'export A=••••', 3, 8],
    ['unquoted-lines', 'B=••••', 5, 1],
    ['unterminated-quote', 'C=••••', 8, 1],
    ['duplicate-name', '  export A=••••', 4, 10],
  ])
  const thrice = parseEnvFile(contract, 'A=1\nA=2\nA=3\n', 'x').findings
  expect(thrice.map(({ cause }) => cause.replace(/ of the same .*/, ''))).toEqual([
    ...['A is set again: line 1', 'A is set again: line 2'],
  ])
})

test('no line of a secret that was wrapped is repeated, as a name or otherwise', () => {
  fc.assert(
    fc.property(
      fc.uint8Array({ minLength: 24, maxLength: 96 }),
      fc.constantFrom('base64', 'base64url'),
      fc.integer({ min: 12, max: 76 }),
      (bytes, alphabet, columns) => {
        const padded = `${Buffer.from(bytes).toString(alphabet).replace(/=*$/, '')}=`
        const lines = padded.match(new RegExp(`.{1,${columns}}`, 'g')) ?? []
        const file = parseEnvFile(contract, `HEALTH_DEEP_TOKEN=${lines.join('\n')}\nLOG_LEVEL=info\n`, 'x')
        expect(file.assignments.map(({ name }) => name)).toEqual(['HEALTH_DEEP_TOKEN', 'LOG_LEVEL'])
        for (const rest of lines.slice(1).filter((line) => line.length > 8))
          expect(JSON.stringify(file.findings)).not.toContain(rest.replace(/=$/, ''))
      },
    ),
  )
})

test('an empty value keeps its name, also right after another', () => {
  const text = 'LOG_LEVEL=\nEMPTY=\nhttp_proxy=\nHEALTH_DEEP_TOKEN=x\nAPI_URL=\n'
  expect(parseEnvFile(contract, text, 'x').findings).toEqual([])
})

test('reports where a stray quote closes a value', () => {
  const text = 'API_URL="https://api.example\nLOG_LEVEL=info\nDEPLOY_ENVIRONMENT="production"\n'
  expect(parseEnvFile(contract, text, 'x').findings).toMatchObject([
    { id: 'text-after-quote', location: { line: 1 }, cause: expect.stringContaining('closed on line 3') },
  ])
})

test('reads any text without throwing, and returns quoted values unchanged', () => {
  fc.assert(fc.property(anyText(), (text) => void parseEnvFile(contract, text, 'x')))
  fc.assert(
    fc.property(anyText(), (value) => {
      const quotable = value.replace(/['\r]/g, '').replace(/[\n\u2028\u2029]/g, ' ')
      expect(values(`A='${quotable}'`).A).toBe(quotable)
    }),
  )
})
