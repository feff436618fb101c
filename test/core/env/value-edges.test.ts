import { expect, test } from 'vitest'
import { type Kind, parseValue } from '../../../src/core/env/kinds.ts'
import {
  parseBaseUrl,
  parseEach,
  parseHttpUrl,
  parseInteger,
  parseOrigin,
  parseProxies,
  parseStoreAddress,
} from '../../../src/core/env/values.ts'

const x = (length: number) => 'x'.repeat(length)

test.each<[Kind, string, boolean]>([
  ['text', 'a b', true],
  ['text', 'a\u001fb', false],
  ['text', 'a b\u007e', true],
  ['text', 'a\u007fb', false],
  ['path', 'C:\\a', true],
  ['path', 'a\nb', false],
  ['url', 'ftp://a', false],
  ['url', 'https://', false],
  ['url', 'https://a b', false],
  ['url', 'https://a/b,https://c/d', false],
  ['dsn', 'https://key@host/1', true],
  ['dsn', 'https://key:old@host:1/path/12', true],
  ['dsn', 'https://host/1', false],
  ['dsn', 'https://key@host/x', false],
  ['dsn', 'https://key@host:123456/1', false],
  ['dsn', 'ftp://key@host/1', false],
  ['smtp-url', 'smtps://user:pass@host:465', true],
  ['smtp-url', 'http://host', false],
  ['smtp-url', 'smtp://host/#a', false],
  ['smtp-url', 'smtp://', false],
  ['integer', '9'.repeat(15), true],
  ['integer', '9'.repeat(16), false],
  ['integer', '-0', false],
  ['integer', '', false],
  ['port', '1', true],
  ['port', '0', false],
  ['port', '65535', true],
  ['port', '65536', false],
  ['log-level', 'WARN', true],
  ['log-level', 'warning', false],
  ['table', `a${x(62)}`, true],
  ['table', `a${x(63)}`, false],
  ['table', '1a', false],
  ['table', 'sqlite_a', false],
  ['table', 'PG_a', false],
  ['table', 'sqlitea', true],
  ['price', 'abc', true],
  ['price', 'ab', false],
  ['price', x(255), true],
  ['price', x(256), false],
  ['host', x(63), true],
  ['host', x(64), false],
  ['host', `${`${x(49)}.`.repeat(5)}abc`, true],
  ['host', `${`${x(49)}.`.repeat(5)}abcd`, false],
  ['host', '-a', false],
  ['host', 'a-', false],
  ['host', '255.255.255.255', true],
  ['host', '255.255.255.256', false],
  ['host', '[::1', false],
  ['host', '[1.2.3.4]', false],
  ['list', 'a\u0000', false],
])('%s: %j is well-formed: %s', (kind, text, good) => {
  expect(parseValue({ kind }, text).ok).toBe(good)
})

test.each([
  ['abcd', true],
  ['abc', false],
  ['abcd,efgh', true],
  ['abcd,efg', false],
  ['abcd,efgh,ijkl', true],
  [',', false],
])('a rotating secret may be %j: %s', (text, good) => {
  expect(parseValue({ kind: 'secret', rotates: true }, text).ok).toBe(good)
})

test('a pattern narrows a value of any kind, and each of several while a secret is rotated', () => {
  const rotating = { kind: 'secret', rotates: true, pattern: /^wh_[a-z]+$/ } as const
  const rotated = ['wh_new,wh_old', 'wh_new,other'].map((text) => parseValue(rotating, text).ok)
  expect(rotated).toEqual([true, false])
  for (const [kind, text] of [
    ['text', 'a@b.example'],
    ['email', 'a@b.example'],
    ['secret', 'a@b.example'],
    ['json', '"a@b"'],
  ] as const)
    for (const [pattern, good] of [
      [/^.*@.*$/, true],
      [/^[^@]*$/, false],
    ] as const)
      expect(parseValue({ kind, pattern }, text).ok, `${kind} ${pattern}`).toBe(good)
})

test('bounds are included, and beyond them is malformed', () => {
  for (const [text, good] of [
    ['4', false],
    ['5', true],
    ['10', true],
    ['11', false],
  ] as const)
    expect(parseValue({ kind: 'integer', range: [5, 10] }, text).ok, text).toBe(good)
  expect(parseInteger('-5', -5, 5)).toBe(-5)
  expect(parseInteger('-6', -5, 5)).toBeUndefined()
  expect(Object.is(parseInteger('-0', -5, 5), 0)).toBe(true)
  for (const [kind, low, high, under, over] of [
    ['number', '0.5', '1.5', '0.4', '1.6'],
    ['duration', '1s', '2s', '999ms', '2001ms'],
    ['bytes', '1kB', '2kB', '999', '2001'],
  ] as const) {
    const range = kind === 'number' ? ([0.5, 1.5] as const) : ([1000, 2000] as const)
    for (const text of [low, high]) expect(parseValue({ kind, range }, text).ok, text).toBe(true)
    for (const text of [under, over]) expect(parseValue({ kind, range }, text).ok, text).toBe(false)
  }
})

test.each([
  ['https://user@a.example', undefined],
  ['https://:pass@a.example', undefined],
  ['https://a.example/?', undefined],
  ['https://a.example/#', undefined],
  ['https://ä.example/ü"', 'https://xn--4ca.example/%C3%BC%22'],
  ['a.example', undefined],
])('the address that links begin with: %j is %j', (text, base) => {
  expect(parseBaseUrl(text)).toBe(base)
})

test('an address keeps its query and its user, and loses only slashes at its end', () => {
  expect(parseHttpUrl('https://u:p@a.example/b?c=d')).toBe('https://u:p@a.example/b?c=d')
  expect(parseHttpUrl('https://a.example//')).toBe('https://a.example')
})

test.each([
  ['sqlite:a.sqlite', { kind: 'sqlite', file: 'a.sqlite' }],
  ['sqlite:///a/b', { kind: 'sqlite', file: '/a/b' }],
  ['sqlite://a/b', undefined],
  ['sqlite:', undefined],
  ['sqlite: /a/b', { kind: 'sqlite', file: '/a/b' }],
  ['sqlite: ', undefined],
  // SQLite keeps it in memory, where it ends with the process.
  ['sqlite::memory:', undefined],
  ['file: :memory:', undefined],
])('the store %j is %j', (text, address) => {
  expect(parseStoreAddress(text)).toEqual(address)
})

test.each([
  ['https://a.example', ['https://a.example']],
  ['https://a.example:443/, http://b.example:80', ['https://a.example', 'http://b.example']],
  ['https://a.example/x', undefined],
  ['https://a.example/?x', undefined],
  ['https://a.example/#x', undefined],
  ['https://u@a.example', undefined],
  ['a.example', undefined],
])('the origins %j are %j', (text, origins) => {
  expect(parseEach(text, parseOrigin)).toEqual(origins)
})

test.each([
  ['10.0.0.0/8, ::1', ['10.0.0.0/8', '::1']],
  ['10.0.0.0/0', ['10.0.0.0/0']],
  ['10.0.0.0/32', ['10.0.0.0/32']],
  ['10.0.0.0/33', undefined],
  ['10.0.0.0/', undefined],
  ['2001:db8::/128', ['2001:db8::/128']],
  ['2001:db8::/129', undefined],
  ['10.0.0.256', undefined],
  ['', undefined],
])('the proxies %j are %j', (text, proxies) => {
  expect(parseProxies(text)).toEqual(proxies)
})
