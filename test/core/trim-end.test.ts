import { expect, test } from 'vitest'
import { trimEnd } from '../../src/core/trim-end.ts'
import { growthOf, LINEAR } from '../support/growth.ts'

test('takes one character off the end, however often it is there, and nothing else', () => {
  expect(['a//', '//', '/a', 'a', ''].map((text) => trimEnd(text, '/'))).toEqual(['a', '', '/a', 'a', ''])
})

test('a run that does not end the text costs linear time', () => {
  expect(
    growthOf(
      (size) => `${'/'.repeat(size)}x`,
      (text) => trimEnd(text, '/'),
    ),
  ).toBeLessThan(LINEAR)
})
