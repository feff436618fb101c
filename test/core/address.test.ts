import fc from 'fast-check'
import { expect, test } from 'vitest'
import { asciiAddress, formsOf, parseAddress, parseMailbox } from '../../src/core/address.ts'
import { anyText } from '../support/any-text.ts'
import { timeOf } from '../support/growth.ts'

const identity = (text: string) => {
  const parsed = parseAddress(text)
  return parsed.ok ? parsed.identity : undefined
}

test('addresses that differ only in ASCII case or in how the domain is written are one', () => {
  expect(identity('Ada@Example.COM')).toBe(identity('ada@example.com'))
  expect(identity('ada@bücher.example')).toBe(identity('ada@xn--bcher-kva.example'))
})

test('quotes and backslashes that an address does not need are no part of it', () => {
  for (const spelt of ['"ada"@example.com', '"a\\da"@example.com', '"\\A\\d\\a"@EXAMPLE.com'])
    expect(identity(spelt)).toBe('ada@example.com')
  expect(parseAddress('"Ada"@example.com')).toMatchObject({ mailbox: { address: 'Ada@example.com' } })
  expect(identity('"a\\ b"@example.com')).toBe('"a b"@example.com')
  for (const needed of [
    '"a\\"b"@example.com',
    '"a\\\\b"@example.com',
    '""@example.com',
    '"a..b"@example.com',
  ])
    expect(identity(needed)).toBe(needed)
})

test('the Kelvin sign is not a k', () => {
  expect(identity('\u212Aim@example.com')).not.toBe(identity('kim@example.com'))
})

test('an address is sent to as it was spelt', () => {
  expect(parseAddress(' Ada@Example.COM ')).toMatchObject({
    ok: true,
    mailbox: { address: 'Ada@Example.COM' },
  })
})

test.each([
  '',
  'ada',
  'ada@localhost',
  'a da@example.com',
  'ada@127.0.0.1',
  'a..b@example.com',
  `${'a'.repeat(65)}@example.com`,
  // Octets, not letters.
  `${'ö'.repeat(33)}@example.com`,
  `ada@${'ö'.repeat(120)}.example.com`,
  `ada@${'a.'.repeat(126)}com`,
  'ada@example.com\r\nBcc: x@example.com',
  'ada@example.com/x',
  'ada@ex%61mple.com',
  'ada@example.com:25',
  'ada@example.com.',
  'ada@\uff0fexample.com',
  'ada@example.com\uff0fx',
])('refuses %j with a reason', (text) => {
  expect(parseAddress(text)).toMatchObject({ ok: false, reason: expect.stringMatching(/\w/) })
})

test.each(['"quoted local"@example.com', 'ada+tag@example.com', 'jörg@example.com', 'o’hara@example.com'])(
  'accepts %j',
  (text) => {
    expect(parseAddress(text).ok).toBe(true)
  },
)

test('a domain is compared whole: nothing can stand after it, or be decoded into it', () => {
  const binary = anyText({ minLength: 1 })
  const punctuated = fc
    .tuple(fc.constantFrom(...`!"#$%&'()*+,-./:;<=>?@[\\]^_\`{|}~`), fc.string())
    .map((parts) => parts.join(''))
  fc.assert(
    fc.property(
      fc.oneof(binary, punctuated),
      fc.constantFrom('example.com', 'a.de'),
      fc.nat(),
      (inserted, domain, at) => {
        const place = at % (domain.length + 1)
        const written = `${domain.slice(0, place)}${inserted}${domain.slice(place)}`
        const parsed = parseAddress(`ada@${written}`)
        // UTS-46 drops some characters (a soft hyphen, say), so they are not sent either; any other makes another
        // domain.
        if (parsed.ok && parsed.identity === `ada@${domain}`)
          expect(asciiAddress(parsed.mailbox.address).toLowerCase()).toBe(`ada@${domain}`)
      },
    ),
    { numRuns: 500 },
  )
})

test('a letter is one letter however it is composed: the address is kept, compared and sent in its composed form', () => {
  const composed = 'j\u00f6rg@example.com'
  const decomposed = 'jo\u0308rg@example.com'
  expect(identity(decomposed)).toBe(identity(composed))
  expect(parseAddress(decomposed)).toMatchObject({ mailbox: { address: composed } })
})

test('all forms of an identity name the same person, and nobody else', () => {
  expect(formsOf('j\u00f6rg@example.com')).toEqual(['j\u00f6rg@example.com', 'jo\u0308rg@example.com'])
  expect(formsOf('jorg@example.com')).toEqual(['jorg@example.com'])
  expect(formsOf('\u212aelvin@example.com')).toEqual(['\u212aelvin@example.com'])
})

test('an accepted address contains no line end and exactly the given parts', () => {
  fc.assert(
    fc.property(anyText(), fc.domain(), (local, domain) => {
      const parsed = parseAddress(`${local}@${domain}`)
      if (parsed.ok) expect(parsed.mailbox.address).not.toMatch(/[\r\n\0]/)
    }),
  )
})

test('a configured sender may have a display name', () => {
  expect(parseMailbox('"Course, the" <course@example.com>')).toMatchObject({
    ok: true,
    mailbox: { name: 'Course, the', address: 'course@example.com' },
  })
  expect(parseMailbox('Course <course@example.com')).toMatchObject({ ok: false })
})

test.each([
  ['spaces', (size: number) => `Ada${' '.repeat(size)}x`],
  ['spaces before an address without its end', (size: number) => `${' '.repeat(size)}<ada@example.com`],
  ['opened brackets', (size: number) => `${'<'.repeat(size)}>`],
  ['quotes and backslashes', (size: number) => `"${'\\"'.repeat(size)}<ada@example.com>`],
  ['dots', (size: number) => `ada@${'a.'.repeat(size)}`],
])('an address of any length takes no time: %s', (_, text) => {
  for (const parse of [parseAddress, parseMailbox]) {
    expect(parse(text(20_000))).toMatchObject({ ok: false, reason: expect.stringContaining('at most') })
    // The second is at the limit, where everything is looked at.
    for (const one of [text(100_000), text(500).slice(0, 1024)])
      expect(timeOf(() => parse(one))).toBeLessThan(10)
  }
})

test('a display name fills an address up to 1,024 characters and no further', () => {
  const named = (length: number) => `${'a'.repeat(length - 18)} <ada@example.com>`
  expect(parseMailbox(named(1024))).toMatchObject({ ok: true, identity: 'ada@example.com' })
  expect(parseMailbox(named(1025))).toMatchObject({ ok: false })
})
