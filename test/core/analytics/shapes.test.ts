import fc from 'fast-check'
import { expect, test } from 'vitest'
import { createSanitiser, isPersonalNumber, isPersonalValue } from '../../../src/core/analytics/sanitise.ts'
import { anyText } from '../../support/any-text.ts'

const sanitiseEvent = createSanitiser([{ name: 'page.viewed' }])

const b64 = (text: string) => Buffer.from(text).toString('base64')
const jwt = `${Buffer.from('{"alg":"HS256"}').toString('base64url')}.${Buffer.from('{"sub":"1"}').toString('base64url')}.c2ln`

test.each([
  // Addresses: encoded, spelt out, apart.
  ...['anna%40example.com', 'anna%252540example.com', 'anna&#64;example.com', 'anna&#x40;example.com'],
  ...['anna&commat;example.com', 'anna\\u0040example.com', 'anna﹫example.com'],
  ...['anna (at) example (dot) com', 'anna [at] example.com', 'anna\u200b@\u200bexample.com'],
  ...[`id=${b64('anna@example.com')}`, b64('to:anna@example.com').replace(/=+$/, '')],
  ...[
    encodeURIComponent(b64('anna%40example.com')),
    `${b64('lesson of the day 12')}${b64('anna@example.com')}`,
  ],
  `https://a.example/${b64('anna@example.com').replace(/=+$/, '')}`.slice(18),
  // Numbers of telephones, cards and accounts.
  ...['0049 170 1234567', '+1 (415) 555-2671', '415-555-2671', '0171 1234567', 'tel:+491701234567'],
  ...['%2B49%20170%201234567', '＋４９ １７０ １２３４５６７', '4111 1111 1111 1111', '5555-5555-5555-4444'],
  ...['378282246310005', 'card 6011111111111117 ok', 'DE89 3704 0044 0532 0130 00', '123-45-6789'],
  ...['fr1420041010050500013m02606', 'pay NL91ABNA0417164300 now', b64('4111111111111111')],
  // Keys.
  ...[jwt, `Bearer ${jwt}`, 'rk_test_4eC39HqLyjWDarjt', 'whsec_0123456789abcdef', 'AKIAIOSFODNN7EXAMPLE'],
  ...['ghp_0123456789abcdefghij0123456789abcdef', 'xoxb-123456789012-abcdef', '-----BEGIN PRIVATE KEY-----'],
  ...['AIzaSyA1234567890abcdefghijklmnopqrstuv', '(NL91ABNA0417164300'],
  // Each other network of cards, issuer of keys, form of a phone and way to hide an address.
  ...['30569309025904', '36227206271667', '3530111333300000', '2223003122003222', '4222222222222'],
  ...['341111111111111', '6799990100000000019', '(415) 555-2671', '415.555.2671', '415 555 2671'],
  ...['glpat', 'npm', 'hf', 'shpat', 'dop_v1', 'github_pat'].map(
    (issuer) => `${issuer}_${'abcdefgh'.repeat(2)}`,
  ),
  ...[
    'ASIAIOSFODNNAEXAMPLE',
    'ya29.abcdefghijkl',
    'SG.abcdefghijklmnop',
    'sk-ant-abcdefgh',
    'sk-proj-abcdefgh',
  ],
  ...['anna {at} example', 'anna <chez> example', 'anna (arroba) example', 'anna [ät] example'],
  'anna\\x40example.com',
])('the value %j is personal', (value) => {
  expect(isPersonalValue(value)).toBe(true)
})

test.each([
  ...['simulator', '1024', '0.5234567891', '-3.25', '2026-11-21', '2026-11-21T12:00:00.000Z', '12:34:56'],
  ...['1.2.3', '0110101001101', '00000000', '1763700000000', 'v1.24.0-rc.1', 'lesson 3 of 7', '40%'],
  '#9a3412',
  ...['H 0; CNOT 0 1; M', 'qubit[5]', '3/4', 'a @ b', 'half past 5', '4111 1111 1111 1112', 'DE00'],
  ...['ÄNL91ABNA0417164300', `x${b64('anna@example.com')}`],
  ...['550e8400-e29b-41d4-a716-446655440000', 'Zm9yIGV4YW1wbGU', 'https://www.example.com/lessons/3?x=1'],
])('the value %j is not', (value) => {
  expect(isPersonalValue(value)).toBe(false)
})

test('a card is one as a number, a time and a count are none', () => {
  expect(isPersonalNumber(4111111111111111)).toBe(true)
  for (const value of [1763700000000, 1024, 0.5, -4111111111111111, 4111111111111112, Number.MAX_VALUE])
    expect(isPersonalNumber(value)).toBe(false)
})

test('an address is found in base64, whatever printable text is encoded with it', () => {
  const printable = fc.string({ unit: 'grapheme-ascii', maxLength: 40 })
  fc.assert(
    fc.property(printable, printable, (before, behind) => {
      expect(isPersonalValue(b64(`${before}anna@example.com${behind}`))).toBe(true)
    }),
  )
})

/** Ways to write the same text so that a list of words and one pattern would miss it. */
const DISGUISES: readonly ((text: string) => string)[] = [
  (text) => text,
  encodeURIComponent,
  (text) => encodeURIComponent(encodeURIComponent(text)),
  (text) => [...text].map((one) => `%${one.charCodeAt(0).toString(16).padStart(2, '0')}`).join(''),
  (text) => [...text].map((one) => `&#${one.charCodeAt(0)};`).join(''),
  b64,
  (text) => Buffer.from(text).toString('base64url'),
  (text) => b64(encodeURIComponent(text)),
  (text) =>
    [...text]
      .map((one) => (/[!-~]/.test(one) ? String.fromCharCode(one.charCodeAt(0) + 0xfee0) : one))
      .join(''),
  (text) => [...text].join('\u200b'),
  (text) => `before ${text} behind`,
]

const luhn = (digits: string) => {
  for (let check = 0; check < 10; check += 1) {
    const all = `${digits}${check}`
    const sum = [...all].reverse().reduce((total, one, at) => {
      const doubled = at % 2 === 1 ? Number(one) * 2 : Number(one)
      return total + (doubled > 9 ? doubled - 9 : doubled)
    }, 0)
    if (sum % 10 === 0) return all
  }
  throw new RangeError('one of ten digits fits')
}
const digits = (length: number) =>
  fc
    .array(fc.integer({ min: 0, max: 9 }), { minLength: length, maxLength: length })
    .map((all) => all.join(''))
const personal = fc.oneof(
  fc
    .tuple(fc.stringMatching(/^[a-z]{2,10}$/), fc.stringMatching(/^[a-z]{2,10}$/))
    .map(([a, b]) => `${a}@${b}.example`),
  digits(14).map((rest) => luhn(`4${rest}`)),
  digits(9).map((rest) => `+491${rest}`),
  fc.stringMatching(/^[A-Za-z0-9]{24}$/).map((rest) => `sk_live_${rest}`),
)

test('no disguise of an address, a card, a phone or a key passes, whatever its property is called', () => {
  fc.assert(
    fc.property(
      personal,
      fc.constantFrom(...DISGUISES),
      fc.constantFrom('note', 'topic', 'query'),
      (text, hide, key) => {
        const event = sanitiseEvent(
          { kind: 'page.viewed', at: 0, properties: { [key]: hide(text) } },
          () => {},
        )
        expect(event?.properties).toEqual({})
      },
    ),
    { numRuns: 200 },
  )
})

test('sanitising twice changes nothing, also where cutting would make a number of digits', () => {
  const piece = fc.oneof(
    digits(4),
    personal,
    anyText({ maxLength: 20 }),
    fc.constantFrom(' ', '-', '+', '%40'),
  )
  fc.assert(
    fc.property(fc.array(piece, { maxLength: 20 }), (pieces) => {
      const once = sanitiseEvent(
        { kind: 'page.viewed', at: 0, properties: { note: pieces.join('') } },
        () => {},
      )
      const dropped: string[] = []
      const again = sanitiseEvent(JSON.parse(JSON.stringify(once)), (reason) => dropped.push(reason))
      expect(again).toEqual(once)
      expect(dropped).toEqual([])
    }),
    { numRuns: 200 },
  )
})

test('a long run of anything is judged at once', { timeout: 5000 }, () => {
  for (const text of ['1', '+1', '(1)', 'A1', 'DE89', '1-', '0 1', '&#1', '\\x1', 'eyJ', 'a.', '+49 '])
    isPersonalValue(text.repeat(500_000 / text.length))
})
