import { expect, test } from 'vitest'
import { two } from './two.ts'

test('two is what it says', () => expect(two()).toBe(2))
