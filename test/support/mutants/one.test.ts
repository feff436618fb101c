import { expect, test } from 'vitest'
import { one } from './one.ts'

test('one is what it says', () => expect(one()).toBe(1))
