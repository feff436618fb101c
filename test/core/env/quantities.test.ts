import { expect, test } from 'vitest'
import { parseBoolean, parseBytes, parseDuration, parseNumber } from '../../../src/core/env/values.ts'

test.each([
  ['true', true],
  ['YES', true],
  ['On', true],
  ['1', true],
  ['false', false],
  ['No', false],
  ['OFF', false],
  ['0', false],
])('%s is %s, and neither with anything around it', (text, value) => {
  expect(parseBoolean(text)).toBe(value)
  for (const other of [`x${text}`, `${text}x`, `${text} `, `${text}\n`])
    expect(parseBoolean(other), other).toBeUndefined()
})

test.each([
  ['b', 1],
  ['kB', 1000],
  ['MB', 1000 ** 2],
  ['GB', 1000 ** 3],
  ['TB', 1000 ** 4],
  ['KiB', 1024],
  ['MiB', 1024 ** 2],
  ['GiB', 1024 ** 3],
  ['TiB', 1024 ** 4],
])('a %s is %i bytes, in any case and after one space', (unit, bytes) => {
  for (const text of [`2${unit}`, `2 ${unit.toLowerCase()}`, `2.0${unit.toUpperCase()}`])
    expect(parseBytes(text), text).toBe(2 * bytes)
  for (const text of [unit, `x2${unit}`, `2${unit}x`, `2  ${unit}`])
    expect(parseBytes(text), text).toBeUndefined()
})

test('sizes are whole bytes that a number can hold', () => {
  expect(parseBytes('1.4b')).toBe(1)
  expect(parseBytes('1.5b')).toBe(2)
  expect(parseBytes('0.123456GB')).toBe(123_456_000)
  expect(parseBytes('0.1234567GB')).toBeUndefined()
  expect(parseBytes('999999999999999')).toBe(999_999_999_999_999)
  expect(parseBytes('1000000000000000')).toBeUndefined()
  expect(parseBytes('9007TB')).toBe(9_007e12)
  expect(parseBytes('9008TB')).toBeUndefined()
  for (const text of ['', '1ib', '1i', '1.', '.5kB']) expect(parseBytes(text), text).toBeUndefined()
})

test.each([
  ['ms', 1],
  ['s', 1000],
  ['m', 60_000],
  ['h', 3_600_000],
  ['d', 86_400_000],
  ['w', 604_800_000],
])('a duration of 2%s is twice %i ms, and may be a part of one', (unit, ms) => {
  expect(parseDuration(`2${unit}`)).toBe(2 * ms)
  expect(parseDuration(`0.5${unit}`)).toBe(Math.round(ms / 2))
  for (const text of [
    unit,
    `x2${unit}`,
    `2${unit}x`,
    `2${unit}1${unit}`,
    `2 ${unit}`,
    `2${unit.toUpperCase()}`,
  ])
    expect(parseDuration(text), text).toBeUndefined()
})

test('durations are whole milliseconds that a number can hold', () => {
  expect(parseDuration('')).toBeUndefined()
  expect(parseDuration('0s')).toBe(0)
  expect(parseDuration('0.0004s')).toBe(0)
  expect(parseDuration('0.0005s')).toBe(1)
  expect(parseDuration('0.123456s')).toBe(123)
  expect(parseDuration('0.1234567s')).toBeUndefined()
  expect(parseDuration('999999999999ms')).toBe(999_999_999_999)
  expect(parseDuration('1000000000000ms')).toBeUndefined()
  expect(parseDuration('14892w')).toBe(14_892 * 604_800_000)
  expect(parseDuration('15000000w')).toBeUndefined()
})

test.each([
  ['0', 0],
  ['+5', 5],
  ['5.', 5],
  ['.5', 0.5],
  ['-.5', -0.5],
  ['1.25', 1.25],
  ['1E3', 1000],
  ['1e-3', 0.001],
  ['9'.repeat(20), 1e20],
  [`0.${'3'.repeat(20)}`, 1 / 3],
  ['1e309', undefined],
  ['1e0001', undefined],
  ['9'.repeat(21), undefined],
  [`0.${'3'.repeat(21)}`, undefined],
  ['.', undefined],
  ['', undefined],
  ['x1', undefined],
  ['1x', undefined],
  ['--1', undefined],
  ['1e', undefined],
])('the number %s is %d', (text, value) => {
  expect(parseNumber(text)).toBe(value)
})
