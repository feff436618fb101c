import { expect, test } from 'vitest'
import { duration, port, reason, repeatable, text, wholeNumber, words } from '../../src/cli/inputs.ts'
import { or } from '../../src/core/sentences.ts'

test.each([
  ['500ms', 500],
  ['5', 5000],
  ['5s', 5000],
  ['1.5m', 90_000],
  ['0.001s', 1],
  ['24h', 86_400_000],
  ['86401s', undefined],
  ['0', undefined],
  ['-1s', undefined],
  ['1h30m', 5_400_000],
  ['30m1h', undefined],
  ['', undefined],
  ['1d', 86_400_000],
])('the duration %j is %s ms', (text, ms) => {
  if (ms === undefined) expect(() => duration(text)).toThrow('A duration such as')
  else expect(duration(text)).toBe(ms)
})

test.each([
  ['10', 10],
  ['0', undefined],
  ['11', undefined],
  ['1e1', undefined],
  [' 1', undefined],
  ['', undefined],
])('%j as a whole number from 1 to 10 is %s', (text, number) => {
  if (number === undefined) expect(() => wholeNumber(1, 10)(text)).toThrow('from 1 to 10')
  else expect(wholeNumber(1, 10)(text)).toBe(number)
})

test('a port is from 0 to 65,535', () => {
  expect([port('0'), port('65535')]).toEqual([0, 65_535])
  expect(() => port('65536')).toThrow('from 0 to 65535')
})

test('services are taken together or one by one, each once and in the order of the platform', () => {
  const input = words('which', 'service', ['web', 'api', 'agent'])
  const parse = (text: string, before?: typeof input.byDefault) => input.parse?.(text, before)
  expect(parse('agent, web')).toEqual(['web', 'agent'])
  expect(parse('web', parse('api,web'))).toEqual(['web', 'api'])
  expect(() => parse('web,apy')).toThrow("unknown service 'apy'. Did you mean api?")
})

test('a repeated option is a list, and words are told apart by commas and or', () => {
  const { parse } = repeatable('again')
  expect(parse?.('b', parse('a'))).toEqual(['a', 'b'])
  expect([or([]), or(['a']), or(['a', 'b']), or(['a', 'b', 'c'])]).toEqual(['', 'a', 'a or b', 'a, b or c'])
})

test('a reason is one line, and longer texts keep their lines but no other control character', () => {
  expect(reason('disk full\r\nmail  held:\tall\u001b[31m\u2028now ')).toBe(
    'disk full mail  held: all [31m now',
  )
  expect(text(50, '', { lines: true })('first\r\n\nsecond\u0000\u009b\n')).toBe('first\n\nsecond')
  expect(() => reason('\u0000\n')).toThrow('A reason of 1 to 200')
})
